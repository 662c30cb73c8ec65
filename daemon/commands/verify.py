"""The command that has banks count their tables against each other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from recalld.daemon.commands.common import (
    FAILURE,
    ConfigOption,
    HomeOption,
    JsonOption,
    UrlOption,
    settings_of,
)

if TYPE_CHECKING:
    from recalld.daemon.commands.connection import Connection

BANKS = "/v1/default/banks"
PAGE = 500


def verify(
    bank: Annotated[str | None, typer.Option("--bank", help="Only this bank; without it, every bank.")] = None,
    home: HomeOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the tables of a bank against each other.

    Says ok, or which row of which table is off. Changes nothing, and lets recalls go first. Ends with 1 when something
    is off, and with 3 when there is no such bank.

    Examples:

      recalld verify

      recalld verify --bank notes --json
    """
    from recalld.daemon.commands import output
    from recalld.daemon.commands.connection import connect

    settings = settings_of(home, config)

    async def work() -> list[dict[str, Any]]:
        async with connect(settings, url=url, seconds=86_400) as link:
            names = [bank] if bank is not None else await _banks(link)
            found = []
            with output.progress("Counting", len(names), quiet=as_json or len(names) == 1) as advance:
                for name in names:
                    found.append(await link.client.request("GET", f"{BANKS}/{quote(name, safe='')}/verify"))
                    advance(1)
            return found

    found = asyncio.run(work())
    ok = all(one["ok"] for one in found)
    if as_json:
        output.print_json({"ok": ok, "banks": found})
    else:
        for one in found:
            print(_told(one))
        if not found:
            print("There are no banks.")
    if not ok:
        raise typer.Exit(FAILURE)


async def _banks(link: Connection) -> list[str]:
    names: list[str] = []
    while True:
        page = await link.client.request("GET", BANKS, params={"limit": PAGE, "offset": len(names)})
        names += [one["bank_id"] for one in page["banks"]]
        if not page["banks"] or len(names) >= page["total"]:
            return names


def _told(one: dict[str, Any]) -> str:
    counted = ", ".join(f"{count} {table}" for table, count in one["checked"].items() if count)
    if one["ok"]:
        return f"{one['bank_id']}: ok ({counted or 'empty'})"
    lines = [f"{one['bank_id']}: {one['problems_total']} rows are off"]
    lines += [f"  {problem['table']} {problem['row']}: {problem['what']}" for problem in one["problems"]]
    if one["problems_total"] > len(one["problems"]):
        lines.append(f"  and {one['problems_total'] - len(one['problems'])} more")
    return "\n".join(lines)
