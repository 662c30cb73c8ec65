"""The command line: `recalld`. This module only puts the commands together and turns errors into exit codes.

    0  done
    1  it failed
    2  wrong usage: an option, a setting or an input is not valid
    3  not found: no such home, bank, document or memory
    4  the daemon cannot be reached or is busy, or another process has the home

Everything heavy is imported by the command that needs it, so that `--help` and completion answer at once.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from recalld.daemon.bench import commands as bench
from recalld.daemon.commands import home, mcp, memory, serve, verify
from recalld.daemon.commands.common import code_of, note

EPILOG = """Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 daemon unreachable or home busy.

Commands talk to the daemon that owns the home, and open the home themselves when none runs."""

app = typer.Typer(
    name="recalld",
    help="A memory daemon for AI agents: retain what happened, recall what matters.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"recalld {version('recalld')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """A memory daemon for AI agents: retain what happened, recall what matters."""


DAEMON, MEMORY, HOME = "The daemon", "Memories", "The home"

app.command(rich_help_panel=DAEMON)(serve.serve)
app.command(rich_help_panel=DAEMON)(mcp.mcp)
app.command(rich_help_panel=DAEMON)(home.status)
app.command(rich_help_panel=DAEMON)(home.stop)
app.command(rich_help_panel=MEMORY)(memory.retain)
app.command(rich_help_panel=MEMORY)(memory.recall)
app.command(rich_help_panel=HOME)(home.init)
app.command(rich_help_panel=HOME)(home.doctor)
app.command(rich_help_panel=HOME)(verify.verify)
app.command(rich_help_panel=HOME)(home.compact)
app.command(rich_help_panel=HOME)(home.backup)
app.command(rich_help_panel=HOME)(home.restore)
app.add_typer(bench.app, name="bench", rich_help_panel=DAEMON)


def run(arguments: list[str] | None = None) -> int:
    """Run one command line; its exit code. Arguments default to those of the process."""
    try:
        app(arguments, prog_name="recalld")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    except Exception as error:
        known = code_of(error)
        if known is None:
            raise
        code, text = known
        if text:
            note(f"error: {text}")
        return code
    return 0


def main() -> None:
    """The console script."""
    sys.exit(run())
