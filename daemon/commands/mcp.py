"""`recalld mcp`: the tools of MCP over stdin and stdout, for clients that start a program."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from recalld.daemon.commands.common import (
    UNREACHABLE,
    CommandError,
    ConfigOption,
    HomeOption,
    UrlOption,
    one_blas_thread,
    settings_of,
)


def mcp(
    bank: Annotated[
        str | None, typer.Option("--bank", "-b", help="Serve this bank alone; without it tools may name any bank.")
    ] = None,
    home: HomeOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
) -> None:
    """Serve MCP over stdin and stdout.

    Passes everything on to the daemon that owns the home, and opens the home itself when none runs. Several clients at
    once need a daemon: start it with recalld serve. Nothing but the protocol is written to stdout.

    Examples:

      recalld mcp

      recalld mcp --bank notes --url http://127.0.0.1:9000
    """
    settings = settings_of(home, config, mcp_enabled=True)
    one_blas_thread()
    from recalld.daemon.mcp.stdio import serve
    from recalld.daemon.routes.system import API_VERSION
    from recalld.daemon.routing import bank_id
    from recalld.storage.errors import HomeInUse

    named = None if bank is None else bank_id(bank)
    try:
        asyncio.run(serve(settings, url, named, API_VERSION))
    except HomeInUse as error:
        text = f"{error.message} Several MCP clients share a home through a daemon: start one with recalld serve."
        raise CommandError(text, UNREACHABLE) from None
