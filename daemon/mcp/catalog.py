"""The table of tools: which there are, in the contract's order, and which of them a caller is offered."""

from __future__ import annotations

from collections.abc import Iterator

from recalld.daemon.mcp import bank_tools, memory_tools, page_tools
from recalld.daemon.mcp.tool import Caller, Tool

ORDER = (
    "retain", "sync_retain", "recall", "reflect", "list_banks", "create_bank", "list_mental_models",
    "get_mental_model", "create_mental_model", "update_mental_model", "delete_mental_model", "refresh_mental_model",
    "clear_mental_model", "list_directives", "create_directive", "delete_directive", "list_memories", "get_memory",
    "update_memory", "invalidate_memory", "list_documents", "get_document", "delete_document", "list_operations",
    "get_operation", "cancel_operation", "list_tags", "get_bank", "get_bank_stats", "update_bank", "delete_bank",
    "clear_memories", "get_knowledge_base_tree", "search_knowledge_base", "get_knowledge_page",
    "create_knowledge_folder", "create_knowledge_page", "update_knowledge_node", "delete_knowledge_node",
)  # fmt: skip

_BY_NAME = {tool.name: tool for tool in (*memory_tools.TOOLS, *bank_tools.TOOLS, *page_tools.TOOLS)}
TOOLS: tuple[Tool, ...] = tuple(_BY_NAME[name] for name in ORDER)


def offered(caller: Caller) -> Iterator[Tool]:
    """The tools a caller may see."""
    for tool in TOOLS:
        if (tool.multi_only and caller.bound) or (caller.enabled is not None and tool.name not in caller.enabled):
            continue
        yield tool


def find(caller: Caller, name: str) -> Tool | None:
    """The tool of that name if the caller may see it."""
    return next((tool for tool in offered(caller) if tool.name == name), None)


def unknown(names: tuple[str, ...]) -> list[str]:
    """The names that no tool has."""
    return [name for name in names if name not in _BY_NAME]


def description(tool: Tool, caller: Caller) -> str:
    """What a model is told about a tool, with the operator's instructions where those belong."""
    if tool.instructed and caller.instructions:
        return f"{tool.description}\n\n{caller.instructions}"
    return tool.description
