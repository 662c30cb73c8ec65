"""The list of tools is the contract's table: names, arguments, defaults, kinds, and which bank they are for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mcp_daemon import INSTRUCTIONS, KEY, STRICT_TOOLS, client

from recalld.daemon.mcp import catalog
from recalld.daemon.mcp.tool import input_schema
from recalld.daemon.sandbox import Sandbox

TABLE = Path(__file__).parent / "contract_tools.txt"
KINDS = {"read-only": (True, False), "write": (False, False), "destructive": (False, True)}
JSON_TYPES = {"string": "string", "int": "integer", "bool": "boolean", "object": "object", "[string]": "array"}


def rows() -> dict[str, tuple[str, str, dict[str, tuple[str, bool, Any, str]]]]:
    """{tool: (mode, kind, {argument: (type, nullable, default or the class `str` for none, bounds)})}."""
    found = {}
    for line in TABLE.read_text().splitlines():
        name, mode, kind, arguments = (part.strip() for part in line.split(" | "))
        found[name] = (mode, kind, dict(_argument(one) for one in _split(arguments)))
    return found


def _split(text: str) -> list[str]:
    return [] if text == "-" else re.split(r", (?=\w+: )", text)


def _argument(text: str) -> tuple[str, tuple[str, bool, Any, str]]:
    name, _, rest = text.partition(": ")
    kind, equals, default = rest.partition(" = ")
    kind, _, bounds = kind.partition(" ")
    values = {"null": None, "true": True, "false": False}
    given: Any = str
    if equals:
        given = values.get(default, default.strip('"') if '"' in default else None)
        if re.fullmatch(r"-?\d+", default):
            given = int(default)
    return name, (kind.rstrip("?"), kind.endswith("?"), given, bounds)


def of_type(schema: dict[str, Any], kind: str, nullable: bool) -> bool:
    options = schema.get("anyOf", [schema])
    types = {one.get("type") for one in options}
    if "/" in kind:
        return set(kind.split("/")) <= {word for one in options for word in one.get("enum", [])}
    wanted = "array" if kind.startswith("[") else JSON_TYPES[kind]
    return types == ({wanted, "null"} if nullable else {wanted})


def test_the_table_of_the_tests_is_whole() -> None:
    assert len(rows()) == 39
    assert sum(mode == "both" for mode, _, _ in rows().values()) == 36
    assert tuple(rows()) == catalog.ORDER


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_both_paths_list_the_contract(daemon: Sandbox, mode: str) -> None:
    async with client(daemon, "/mcp/", mode=mode) as session:
        several = {tool.name: tool for tool in (await session.list_tools()).tools}
    async with client(daemon, "/mcp/one", mode=mode) as session:
        single = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert list(several) == list(rows())
    assert list(single) == [name for name, (mode, _, _) in rows().items() if mode == "both"]
    for name, (_, kind, arguments) in rows().items():
        for tools, bound in ((several, False), (single, True)):
            if name not in tools:
                continue
            tool = tools[name]
            properties = tool.input_schema["properties"]
            expected = dict(arguments)
            if not bound and name not in ("list_banks", "create_bank"):
                expected["bank_id"] = ("string", True, None, "")
            assert set(properties) == set(expected), name
            required = {argument for argument, (_, _, default, _) in expected.items() if default is str}
            assert set(tool.input_schema.get("required", [])) == required, name
            for argument, (type_, nullable, default, bounds) in expected.items():
                schema = properties[argument]
                assert of_type(schema, type_, nullable), (name, argument, schema)
                if default is not str:
                    assert schema["default"] == default, (name, argument)
                if bounds:
                    low, high = (int(part) if part else None for part in bounds.split(".."))
                    assert schema["minimum"] == low, (name, argument)
                    assert high is None or schema["maximum"] == high, (name, argument)
            hints = tool.annotations
            assert (hints.read_only_hint, hints.destructive_hint) == KINDS[kind], name
            assert hints.open_world_hint is False
            assert hints.title == tool.title == name.replace("_", " ").title()
            assert tool.description
            wrapped = not bound and name not in ("retain", "sync_retain")
            assert ("x-fastmcp-wrap-result" in tool.output_schema) is wrapped


async def test_an_operator_hides_tools_and_adds_instructions(strict_daemon: Sandbox) -> None:
    bearer = {"Authorization": f"Bearer {KEY}"}
    async with client(strict_daemon, "/mcp", headers=bearer) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        hidden = await session.call_tool("reflect", {"query": "anything"})
    async with client(strict_daemon, "/mcp/one", headers=bearer) as session:
        single = {tool.name for tool in (await session.list_tools()).tools}
    assert set(tools) == set(STRICT_TOOLS.split(","))
    assert single == set(tools) - {"list_banks"}
    assert hidden.is_error and "Unknown tool" in hidden.content[0].text
    assert tools["retain"].description.endswith(INSTRUCTIONS)
    assert tools["recall"].description.endswith(INSTRUCTIONS)
    assert INSTRUCTIONS not in tools["get_bank"].description


def test_every_tool_says_which_role_it_needs() -> None:
    for tool in catalog.TOOLS:
        assert tool.role == "read" if tool.reads and tool.name != "reflect" else tool.role == "write", tool.name
        assert not (tool.reads and tool.destructive)


def test_schemas_are_made_once_and_hold_no_reference_to_a_bank() -> None:
    for tool in catalog.TOOLS:
        assert input_schema(tool, False) is not None
        assert "bank_id" not in input_schema(tool, True)["properties"] or tool.multi_only
