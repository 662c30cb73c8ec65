"""`/openapi.json` and `/docs`, made from the route table and the wire models."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from recalld.daemon.routing import Route
from recalld.daemon.wire.responses import ErrorResponse

_REF = "#/components/schemas/{model}"


def document(routes: Sequence[Route], version: str, base_path: str = "") -> dict[str, Any]:
    """The OpenAPI 3.1 document of `routes`."""
    used: list[tuple[type[BaseModel], Any]] = [(ErrorResponse, "serialization")]
    for route in routes:
        used += [(route.body, "validation")] if route.body else []
        used += [(route.response, "serialization")] if route.response else []
    refs, definitions = models_json_schema(list(dict.fromkeys(used)), ref_template=_REF, by_alias=True)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "recalld",
            "version": version,
            "description": "A memory daemon for AI agents, on the Hindsight REST wire.",
        },
        "servers": [{"url": base_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, refs: Any) -> dict[str, Any]:
    error = {"content": {"application/json": {"schema": refs[(ErrorResponse, "serialization")]}}}
    answer: dict[str, Any] = {"description": "Success"}
    if route.response:
        answer["content"] = {"application/json": {"schema": refs[(route.response, "serialization")]}}
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in route.parameters
        ]
        + _query_parameters(route),
        "responses": {"200": answer, "default": {"description": "Error"} | error},
    }
    if route.body:
        schema = refs[(route.body, "validation")]
        content = {"application/json": {"schema": schema}}
        if route.upload:
            files = {"type": "array", "items": {"type": "string", "format": "binary"}}
            parts = {"files": files, "request": schema}
            content = {
                "multipart/form-data": {"schema": {"type": "object", "required": ["files"], "properties": parts}}
            }
        operation["requestBody"] = {"required": not route.body_optional, "content": content}
    if not route.public:
        operation["security"] = [{"key": []}, {}]
    return operation


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    schema = route.query.model_json_schema()
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": one}
        for name, one in schema.get("properties", {}).items()
    ]


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.05rem;margin:2rem 0 .3rem;text-transform:capitalize}
details{border:1px solid #ccd;border-radius:6px;margin:.3rem 0;padding:.35rem .7rem}summary{cursor:pointer}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f4f5f8;padding:.6rem;overflow:auto;border-radius:4px}
b{display:inline-block;min-width:4.2rem}td,th{text-align:left;padding:.1rem .8rem .1rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#16181d;color:#dde}pre{background:#22252c}details{border-color:#3a3f4a}}
"""


def docs_html(described: dict[str, Any]) -> str:
    """The document as one page that needs neither script nor network."""
    groups: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append(_entry(method, path, operation, described))
    body = "".join(f"<h2>{html.escape(tag)}</h2>{''.join(entries)}" for tag, entries in groups.items())
    title = f"recalld, wire {html.escape(described['info']['version'])}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1><p>{html.escape(described['info']['description'])} "
        f'The same as <a href="openapi.json">openapi.json</a>.</p>{body}</body></html>'
    )


def _entry(method: str, path: str, operation: dict[str, Any], described: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{html.escape(one['name'])}</code></td><td>{one['in']}</td>"
        f"<td><code>{html.escape(json.dumps(_brief(one['schema'])))}</code></td></tr>"
        for one in operation["parameters"]
    )
    body = operation.get("requestBody")
    answer = operation["responses"]["200"].get("content")
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{html.escape(path)}</code><br>"
        f"{html.escape(operation['summary'])}</summary>"
        + (f"<table>{rows}</table>" if rows else "")
        + (_schema("Body", body["content"], described) if body else "")
        + (_schema("Answer", answer, described) if answer else "")
        + "</details>"
    )


def _schema(title: str, content: dict[str, Any], described: dict[str, Any]) -> str:
    schema = next(iter(content.values()))["schema"]
    name = schema.get("$ref", "").rpartition("/")[2]
    shown = described["components"]["schemas"].get(name, schema).get("properties", {})
    lines = {field: _brief(one) for field, one in shown.items()}
    return f"<p>{title}: <code>{html.escape(name)}</code></p><pre>{html.escape(json.dumps(lines, indent=1))}</pre>"


def _brief(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in ("title", "description")}
