"""Rows of the settings table about MCP."""

from __future__ import annotations

from dataclasses import dataclass

from recalld.daemon.settings_llm import LlmRows
from recalld.daemon.settings_rows import row


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRows(LlmRows):
    """What is served under `/mcp`, and to whom."""

    mcp_enabled: bool = row(True, "Serve MCP under /mcp.", alias="MCP_ENABLED")
    mcp_stateless: bool = row(False, "Serve MCP without sessions: every request stands alone.", alias="MCP_STATELESS")
    mcp_auth_token: str | None = row(
        None, "Token that MCP needs instead of api_key.", secret=True, alias="MCP_AUTH_TOKEN"
    )
    mcp_auth_disabled: bool = row(
        False, "Serve MCP without a key even where api_key is set.", alias="TENANT_MCP_AUTH_DISABLED"
    )
    mcp_enabled_tools: tuple[str, ...] = row((), "MCP tools to offer; all when empty.", alias="MCP_ENABLED_TOOLS")
    mcp_instructions: str = row(
        "", "Text added to what models are told about the tools retain and recall.", alias="MCP_INSTRUCTIONS"
    )
    mcp_bank_id: str = row("default", "Bank of MCP calls under /mcp that name none.", alias="HINDSIGHT_MCP_BANK_ID")
    mcp_max_sessions: int = row(1000, "Most MCP sessions at once; beyond it 503.", minimum=1)
    mcp_session_idle: float = row(1800.0, "Seconds without a request after which an MCP session ends.", minimum=0.05)
