"""Health, version, metrics, and the API's own description."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from recalld.daemon.consolidating import consolidation_by
from recalld.daemon.exchange import Call, Reply
from recalld.daemon.metrics import CONTENT_TYPE
from recalld.daemon.openapi import docs_html, document
from recalld.daemon.routing import Route
from recalld.daemon.wire import responses

API_VERSION = "1.1.0"
"""The wire this daemon speaks; clients gate features on it."""


@cache
def package_version() -> str:
    """The installed release of recalld."""
    try:
        return version("recalld")
    except PackageNotFoundError:
        return "0"


async def health(call: Call) -> Reply:
    answer = await call.service.health()
    return Reply(answer, status=200 if answer.get("status") == "healthy" else 503)


async def live(call: Call) -> dict[str, Any]:
    return {"status": "alive", "version": package_version(), "uptime_seconds": round(call.uptime, 3)}


async def show_version(call: Call) -> dict[str, Any]:
    features = {
        "observations": call.settings.enable_observations and consolidation_by(call.settings) != "none",
        "mcp": call.settings.mcp_enabled,
        "worker": True,
        "bank_config_api": call.settings.enable_bank_config_api,
        "bank_llm_health": False,
        "file_upload_api": call.settings.enable_file_upload_api,
        "document_export_api": False,
        "document_import_api": False,
        "audit_log": True,
        "llm_trace": False,
        "store_document_text": call.settings.store_document_text,
    }
    return {"api_version": API_VERSION, "features": features, "recalld_version": package_version()}


async def metrics(call: Call) -> Reply:
    snapshot = await call.service.metrics_snapshot()
    return Reply(call.metrics.render(snapshot), content_type=CONTENT_TYPE)


async def openapi(call: Call) -> dict[str, Any]:
    return document(call.routes, API_VERSION, call.settings.base_path)


async def docs(call: Call) -> Reply:
    page = docs_html(document(call.routes, API_VERSION, call.settings.base_path))
    return Reply(page.encode(), content_type="text/html; charset=utf-8")


def _public(path: str, operation: str, handler: Any, summary: str, response: Any = None) -> Route:
    return Route("GET", path, operation, handler, summary, response=response, public=True, tag="monitoring")


ROUTES = (
    _public("/health", "health_endpoint_health_get", health, "Readiness", responses.HealthResponse),
    _public("/health/ready", "get_readiness", health, "Readiness", responses.HealthResponse),
    _public("/health/live", "get_liveness", live, "The process is up; touches nothing", responses.LivenessResponse),
    _public("/version", "get_version", show_version, "Version and features", responses.VersionResponse),
    _public("/v1/version", "get_version_v1", show_version, "Version and features", responses.VersionResponse),
    _public("/metrics", "metrics_endpoint_metrics_get", metrics, "Prometheus metrics"),
    _public("/openapi.json", "get_openapi", openapi, "This description"),
    _public("/docs", "get_docs", docs, "This description as a page"),
)
