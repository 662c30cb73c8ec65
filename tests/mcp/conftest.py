"""Fixtures of the MCP tests: daemons in processes of their own."""

from __future__ import annotations

from mcp_daemon import daemon, short_daemon, strict_daemon

__all__ = ["daemon", "short_daemon", "strict_daemon"]
