"""Starting and ending: a home opened in this process, or a daemon that serves one until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import psutil
import structlog

from recalld.actors.embedding import Embedder
from recalld.actors.inline_runtime import InlineRuntime
from recalld.actors.runtime import ActorRef, Runtime
from recalld.daemon import composition, logs
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings
from recalld.storage.errors import BadRequest, DeadlineExceeded, HomeInUse, RecalldError
from recalld.storage.home import Home

log = structlog.get_logger(__name__)

OWNER_WAIT_SECONDS = 10.0
SWITCH_SECONDS = 0.0005
STOP_PATIENCE = 1.0
"""Seconds actors get for running calls when the daemon ends; requests had `shutdown_grace` before."""
HEALTH_SECONDS = 2.0


def init_home(settings: Settings) -> dict[str, Any]:
    """Make a home for the configured model, or describe the one that is there."""
    # First, so that a model which cannot be loaded leaves no home without one.
    embedder = composition.make_embedder(composition.embedding_values(settings))
    home = _made_home(settings)
    home.bind_model(embedder.identity.to_plain())
    return {"home": str(home.path), "partitions": home.info.partitions, "model": home.info.model.get("name")}


async def _load(settings: Settings) -> Embedder:
    load = asyncio.to_thread(composition.make_embedder, composition.embedding_values(settings))
    try:
        return await asyncio.wait_for(load, settings.model_init_timeout)
    except TimeoutError:
        raise BadRequest("The embedding model took too long to load; see model_init_timeout.") from None


def _made_home(settings: Settings) -> Home:
    path = settings.home_path
    try:
        return Home.create(path, composition.clock(), settings.partitions)
    except OSError as error:
        if path.exists() and not path.is_dir():
            raise BadRequest(f"{path} is a file, and a home is a folder; choose another with --home.") from None
        reason = (error.strerror or type(error).__name__).lower()
        raise BadRequest(f"No home can be made or opened at {path} ({reason}); choose another with --home.") from None


async def open_service(settings: Settings, *, work: bool = True) -> MemoryService:
    """The service over the home in this process, or with Ray, started. Close it with `await service.close()`.

    Without `work` stored operations are left alone: who is about to close again would only cut them short.
    Raises `HomeInUse` when another process has the home, `ModelMismatch` when it was made with another model.
    """
    if not Home.exists(settings.home_path):
        await _load(settings)  # first, so that a model which cannot be loaded leaves no home without one
    home = _made_home(settings)
    me = psutil.Process()
    home.acquire({"pid": me.pid, "start_time": me.create_time()})
    # Who has the home knows that the daemon which wrote this is gone.
    (home.run / "daemon.json").unlink(missing_ok=True)
    started: list[Runtime] = []
    loading = asyncio.create_task(_load(settings))
    try:
        actors, local = await _runtimes(settings, home, started)
        embedder = await loading
        home.bind_model(embedder.identity.to_plain())
        service = await _assemble(settings, home, actors, local, embedder, started)
    except BaseException:
        loading.cancel()
        await _end(started, home)
        raise
    if work:
        await service.files.sweep()
        service.start()
    return service


async def _runtimes(settings: Settings, home: Home, started: list[Runtime]) -> tuple[Runtime, Runtime]:
    if settings.runtime == "inline":
        inline = InlineRuntime(patience=STOP_PATIENCE)
        started.append(inline)
        return inline, inline
    from recalld.actors.ray_runtime import RayOptions, RayRuntime

    ray = RayRuntime(
        RayOptions(
            address=settings.ray_address,
            run_folder=home.run,
            object_store_memory=settings.ray_memory_mb << 20,
            allow_unauthenticated=settings.ray_allow_tokenless,
            patience=STOP_PATIENCE,
            begin_seconds=settings.model_init_timeout,
        )
    )
    started.append(ray)
    await asyncio.wait_for(ray.start(), settings.ray_start_timeout)
    # The Directory needs no process of its own: it lives in the gateway and watches the actors of the other runtime.
    local = InlineRuntime(patience=STOP_PATIENCE, resolver=ray)
    started.append(local)
    return ray, local


class _Resolver:
    """Finds the Directory in this process, and every other actor in the runtime that hosts them."""

    def __init__(self, actors: Runtime, local: Runtime) -> None:
        self._actors = actors
        self._local = local

    async def lookup(self, name: str) -> ActorRef:
        return await (self._local if name == composition.DIRECTORY else self._actors).lookup(name)


async def _assemble(
    settings: Settings, home: Home, actors: Runtime, local: Runtime, embedder: Any, started: list[Runtime]
) -> MemoryService:
    from recalld.actors.directory import Assignment

    assignment = Assignment(home.info.partitions, settings.shard_count)
    specs = composition.shard_specs(settings, home, assignment)
    await asyncio.gather(
        *(_spawn_shard(actors, spec) for spec in specs), actors.spawn(composition.encoder_spec(settings))
    )
    resolver = _Resolver(actors, local)
    await local.spawn(composition.directory_spec(settings, home))
    worker = _LazyWorker(settings, home, actors)

    async def close() -> None:
        await _end(started, home)

    return MemoryService(
        settings,
        home,
        resolver,
        embedder,
        worker.ref,
        composition.clock,
        composition.new_id,
        close,
        actors.describe,
    )


async def _spawn_shard(actors: Runtime, spec: Any) -> ActorRef:
    """Start a shard; the partitions of one that was just killed are free a moment later."""
    deadline = asyncio.get_running_loop().time() + OWNER_WAIT_SECONDS
    while True:
        try:
            return await actors.spawn(spec)
        except HomeInUse:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.2)


class _LazyWorker:
    """Starts the Worker when it is first needed. A start that failed is tried again by the next caller."""

    def __init__(self, settings: Settings, home: Home, actors: Runtime) -> None:
        self._spec = composition.worker_spec(settings, home)
        self._seconds = settings.model_init_timeout
        self._actors = actors
        self._starting: asyncio.Task[ActorRef] | None = None

    async def ref(self) -> ActorRef:
        """Raises `DeadlineExceeded` when the start lasts longer than models may take to load; it goes on meanwhile."""
        start = self._starting
        if start is None or (start.done() and (start.cancelled() or start.exception() is not None)):
            start = self._starting = asyncio.create_task(self._actors.spawn(self._spec), name="start the worker")
        # `wait` leaves the start alone when this caller gives up: others wait for it too.
        done, _ = await asyncio.wait({start}, timeout=self._seconds)
        if not done:
            raise DeadlineExceeded("The worker did not start in time; see model_init_timeout.")
        return start.result()


async def _end(started: list[Runtime], home: Home) -> None:
    for runtime in reversed(started):
        with contextlib.suppress(Exception):
            await runtime.shutdown()
    home.release()


# -- the daemon ------------------------------------------------------------------------------------------------------


async def run_daemon(settings: Settings, on_ready: Callable[[Mapping[str, Any]], None]) -> int:
    """Serve the home over HTTP until SIGINT or SIGTERM; a second signal ends the process at once. The exit code."""
    from aiohttp import web

    from recalld.daemon.app import build_app

    logs.configure(settings.log_level, settings.log_format)
    logging.captureWarnings(True)
    # A thread that computes must give the event loop the interpreter back sooner than the default 5 ms.
    sys.setswitchinterval(SWITCH_SECONDS)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def listen() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _on_signal, stopping)

    listen()
    if not Home.exists(settings.home_path):
        _check_port(settings)  # before a home is made for a daemon that cannot serve it
    service = await open_service(settings)
    listen()  # again: Ray puts a handler of its own before ours, which prints the stack
    try:
        # The runner waits this long twice: for running requests to end, and for cancelled ones.
        grace = settings.shutdown_grace / 2
        runner = web.AppRunner(build_app(service, settings), access_log=None, shutdown_timeout=grace)
        await runner.setup()
        try:
            site = web.TCPSite(runner, settings.host, settings.port)
            try:
                await site.start()
            except OSError as error:
                raise _bind_problem(settings, error) from error
            port = _port_of(runner)
            service.url = f"http://{settings.host}:{port}{settings.base_path}"
            _write_record(service.home, settings, port)
            on_ready({**await service.status(), "running": True})
            return await _until_told(stopping, service)
        finally:
            (service.home.run / "daemon.json").unlink(missing_ok=True)
            await runner.cleanup()
    finally:
        await service.close()


async def _until_told(stopping: asyncio.Event, service: MemoryService) -> int:
    """Wait for a signal; the exit code. Without its process manager a runtime cannot bring a dead actor back: end then,
    so that whatever supervises the daemon starts a whole one."""
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), HEALTH_SECONDS)
        if not service.runtime_facts().get("healthy", True):
            log.error("a process of Ray is gone; the daemon ends, start it again")
            return 1
    return 0


def _on_signal(stopping: asyncio.Event) -> None:
    if stopping.is_set():
        os._exit(130)
    stopping.set()


def _bind_problem(settings: Settings, error: OSError) -> RecalldError:
    if error.errno == errno.EADDRINUSE:
        return HomeInUse(f"Port {settings.port} on {settings.host} is in use; choose another with --port.")
    if error.errno == errno.EACCES:
        return BadRequest(f"Port {settings.port} needs more rights; choose one above 1023 with --port.")
    return BadRequest(f"{settings.host}:{settings.port} cannot be listened on; check --host and --port.")


def _check_port(settings: Settings) -> None:
    """Raise when nothing can listen where the settings say."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, proto) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except OSError as error:
        raise _bind_problem(settings, error) from error


def _port_of(runner: Any) -> int:
    for address in runner.addresses:
        return int(address[1])
    return 0


def _write_record(home: Home, settings: Settings, port: int) -> None:
    """`run/daemon.json`, by which commands find this daemon."""
    me = psutil.Process()
    record = {
        "pid": me.pid,
        "start_time": me.create_time(),
        "host": settings.host,
        "port": port,
        "base_path": settings.base_path,
    }
    scratch = home.run / "daemon.json.tmp"
    scratch.write_text(json.dumps(record))
    scratch.chmod(0o600)
    scratch.replace(home.run / "daemon.json")
