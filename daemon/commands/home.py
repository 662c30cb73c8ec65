"""Commands about a home and its daemon: init, status, stop, doctor, compact, backup, restore."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from recalld.daemon.commands.common import (
    FAILURE,
    USAGE,
    CommandError,
    ConfigOption,
    HomeOption,
    JsonOption,
    UrlOption,
    note,
    settings_of,
)


def init(
    home: HomeOption = None,
    partitions: Annotated[
        int | None, typer.Option(help="Partitions; fixed for the life of the home. Default: 4.")
    ] = None,
    embedding_model: Annotated[
        str | None, typer.Option(help="Model the home is made for: default, a folder or a hub name.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a home.

    `recalld serve` does it too; this is for choosing what cannot be changed later.

    Examples:

      recalld init

      recalld init --home /srv/memory --partitions 64
    """
    from recalld.daemon.commands import output
    from recalld.storage.home import Home

    settings = settings_of(home, config, partitions=partitions, embedding_model=embedding_model)
    if Home.exists(settings.home_path):
        raise CommandError(f"{settings.home_path} is a recalld home already.", FAILURE)
    from recalld.daemon.lifecycle import init_home

    made = init_home(settings)
    if as_json:
        output.print_json(made)
    else:
        count = output.plural(made["partitions"], "partition")
        print(f"Made a home at {made['home']} with {count} for the model {made['model']}.")


def status(
    home: HomeOption = None, url: UrlOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Show what a home or its daemon runs with, as `serve` does.

    Examples:

      recalld status

      recalld status --json --url http://127.0.0.1:9000
    """
    from recalld.daemon.commands import output
    from recalld.daemon.commands.connection import connect

    settings = settings_of(home, config)

    async def work() -> dict[str, Any]:
        async with connect(settings, url=url) as link:
            return await link.status()

    found = asyncio.run(work())
    if as_json:
        output.print_json(found)
    else:
        output.console().print(output.screen(found))


def stop(
    home: HomeOption = None,
    within: Annotated[float, typer.Option(help="Seconds to wait for it to end.")] = 10.0,
    force: Annotated[bool, typer.Option("--force", help="Kill it when it has not ended by then.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop the daemon of a home, and wait until it is gone.

    Nothing is lost: every acknowledged write is on disk. Ends with 0 when no daemon runs, and with 1 when it is still
    there after the wait.
    """
    from recalld.daemon.commands import output
    from recalld.daemon.owner import find_owner, forget_dead, is_alive

    settings = settings_of(home, config)
    owner = find_owner(settings.home_path)
    if owner is None:
        forget_dead(settings.home_path)
        outcome: dict[str, Any] = {"stopped": False, "pid": None, "detail": f"No daemon runs on {settings.home_path}."}
    else:
        os.kill(owner.pid, signal.SIGTERM)
        begun = time.monotonic()
        killed = False
        while is_alive(owner.pid, owner.start_time):
            waited = time.monotonic() - begun
            if waited > within and not force:
                raise CommandError(
                    f"The daemon (pid {owner.pid}) is still running after {within:g} s; try again with --force.",
                    FAILURE,
                )
            if waited > within and not killed:
                os.kill(owner.pid, signal.SIGKILL)
                killed = True
            if waited > within + 5:
                raise CommandError(
                    f"The daemon (pid {owner.pid}) cannot be killed; look at its state with ps.", FAILURE
                )
            time.sleep(0.05)
        how = "Killed" if killed else "Stopped"
        outcome = {"stopped": True, "pid": owner.pid, "detail": f"{how} the daemon (pid {owner.pid})."}
    if as_json:
        output.print_json(outcome)
    else:
        print(outcome["detail"])


def doctor(
    home: HomeOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    llm: Annotated[
        bool, typer.Option("--llm", help="Read twenty labelled texts with the configured model; costs some calls.")
    ] = False,
) -> None:
    """Check a home and this machine, and say what to do.

    Looks at the home and its rights, the file system, disk space, the owner, indexes, models, the date parser, Ray and
    open ports. Ends with 1 when a check failed; warnings alone end with 0. With --llm it also compares the model with
    the rules.
    """
    from rich.markup import escape

    from recalld.daemon.commands import output
    from recalld.daemon.doctor import examine

    settings = settings_of(home, config)
    checks = asyncio.run(examine(settings, llm=llm))
    failed = [one for one in checks if one.outcome == "fail"]
    if as_json:
        output.print_json({"ok": not failed, "checks": [one.to_wire() for one in checks]})
    else:
        out = output.console()
        colours = {"ok": "green", "warn": "yellow", "fail": "red"}
        for one in checks:
            colour = colours[one.outcome]
            out.print(f"[{colour}]{one.outcome:>4}[/]  [bold]{one.name}[/]  {escape(one.found)}", soft_wrap=True)
            if one.advice:
                out.print(f"      -> {escape(one.advice)}", soft_wrap=True)
    if failed:
        raise typer.Exit(FAILURE)


def compact(
    home: HomeOption = None, url: UrlOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Rewrite the store without its free pages.

    What was erased leaves the disk, and the files shrink. Works while the daemon serves.
    """
    from recalld.daemon.commands import output
    from recalld.daemon.commands.connection import connect

    settings = settings_of(home, config)

    async def work() -> dict[str, Any]:
        async with connect(settings, url=url, seconds=86_400) as link:
            with output.progress("Compacting", None, quiet=as_json):
                return await link.compact()

    done = asyncio.run(work())
    if as_json:
        output.print_json(done)
    else:
        sizes = done["partitions"].values()
        before, after = sum(one["before"] for one in sizes), sum(one["after"] for one in sizes)
        print(f"Compacted {output.plural(len(sizes), 'partition')}: {output.size(before)} -> {output.size(after)}.")


def backup(
    file: Annotated[Path, typer.Argument(help="File to write; must not exist.")],
    home: HomeOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the whole home into one file.

    Consistent, also while the daemon serves. The file is written by the process that owns the home; read it back with
    `recalld restore`.

    Example:

      recalld backup ~/memory-2026-05-01.recalld
    """
    from recalld.daemon.commands import output
    from recalld.daemon.commands.connection import connect

    settings = settings_of(home, config)
    path = file.expanduser().absolute()
    if path.exists():
        raise CommandError(f"{path} exists already; choose another name.", FAILURE)

    async def work() -> dict[str, Any]:
        async with connect(settings, url=url, seconds=86_400) as link:
            with output.progress("Writing the backup", None, quiet=as_json):
                return await link.backup(path)

    done = asyncio.run(work())
    if as_json:
        output.print_json(done)
    else:
        count = f" ({output.size(done['bytes'])})" if done.get("bytes") is not None else ""
        print(f"Wrote {path}{count}.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file written by `recalld backup`.")],
    home: HomeOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what the home holds now.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a home out of a backup.

    The home must be new or empty, unless --force is given, and no daemon may run on it.

    Example:

      recalld restore ~/memory-2026-05-01.recalld --home ./restored
    """
    from recalld.daemon.archive import restore as read_back
    from recalld.daemon.commands import output

    settings = settings_of(home, config)
    target, path = settings.home_path.absolute(), file.expanduser().absolute()
    if path.is_dir():
        raise CommandError(f"{path} is a folder; name the file that recalld backup wrote.", USAGE)
    if not path.is_file():
        raise CommandError(f"There is no file {path}.", USAGE)
    with output.progress("Restoring", None, quiet=as_json), _set_aside(target, force):
        done = read_back(target, path)
    if as_json:
        output.print_json(done)
    else:
        print(f"Restored {path} into {target}.")
        note("Start it with: recalld serve" + (f" --home {shlex.quote(str(home))}" if home is not None else ""))


@contextmanager
def _set_aside(home: Path, force: bool) -> Iterator[None]:
    """Move what `home` holds out of the way while the block runs; it comes back when the block fails.

    Raises when a process owns the home, and when it holds something and `force` was not given.
    """
    from recalld.storage.errors import RecalldError
    from recalld.storage.home import Home

    if not home.is_dir() or not any(home.iterdir()):
        yield
        return
    try:
        held = Home(home)
    except RecalldError:
        held = None  # not a home, or one whose home.json is damaged: nobody can run on it
    if held is not None:
        held.acquire({"pid": os.getpid(), "command": "restore"})
    try:
        if not force:
            raise CommandError(f"{home} is not empty; restore into a new folder, or replace it with --force.", FAILURE)
        if held is None and not (home / "partitions").is_dir():
            raise CommandError(f"{home} holds other things than a recalld home; choose another folder.", FAILURE)
        aside = home.with_name(f"{home.name}.before-restore-{os.getpid()}")
        home.rename(aside)
        try:
            yield
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            aside.rename(home)
            raise
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        if held is not None:
            held.release()


__all__ = ["backup", "compact", "doctor", "init", "restore", "status", "stop"]
