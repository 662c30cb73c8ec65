"""`recalld serve`: run the daemon in the foreground until Ctrl+C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from recalld.daemon.commands.common import ConfigOption, HomeOption, JsonOption, one_blas_thread, settings_of


def serve(
    home: HomeOption = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one. Default: 8888.")] = None,
    runtime: Annotated[
        str | None, typer.Option(help="ray: actors in processes of their own; inline: one process. Default: ray.")
    ] = None,
    ray_address: Annotated[str | None, typer.Option(help="Ray cluster to join, instead of a local instance.")] = None,
    shards: Annotated[int | None, typer.Option(help="Shard processes; 0 means half the cores. Default: 0.")] = None,
    embedding_model: Annotated[
        str | None, typer.Option(help="default, a folder with an ONNX model, or a hub name. Default: default.")
    ] = None,
    durability: Annotated[
        str | None, typer.Option(help="local, or none: no flush, for benchmarks. Default: local.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="critical, error, warning, info, debug or trace.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; see docs/settings.md.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the daemon in the foreground until Ctrl+C.

    Prints what it runs with when it is ready. Every option is also a setting: --log-level is RECALLD_LOG_LEVEL in the
    environment and log_level in the file. A second Ctrl+C ends at once.

    Examples:

      recalld serve

      recalld serve --home ./memory --port 9000 --runtime inline

      recalld serve --set recall.max_ms=200 --set bank_memory_mb=1024
    """
    flags: dict[str, Any] = {
        "host": host,
        "port": port,
        "runtime": runtime,
        "ray_address": ray_address,
        "shards": shards,
        "embedding_model": embedding_model,
        "durability": durability,
        "log_level": log_level,
    }
    settings = settings_of(home, config, assigned=assignments(set_ or []), **flags)

    def ready(status: Mapping[str, Any]) -> None:
        from recalld.daemon.commands import output

        if as_json:
            output.print_json(status)
        else:
            out = output.console()
            out.print(output.screen(status))
            out.print("\nReady. Stop with Ctrl+C.")
        sys.stdout.flush()

    # Imported once the settings are known to be right: it takes a second, a wrong flag should not.
    one_blas_thread()
    from recalld.daemon.lifecycle import run_daemon

    code = asyncio.run(run_daemon(settings, ready))
    if code:
        raise typer.Exit(code)


def assignments(pairs: list[str]) -> dict[str, str]:
    """`["a.b=1"]` as `{"a.b": "1"}`. Raises a usage error for a pair without an equals sign."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--set")
        found[name.strip()] = value
    return found
