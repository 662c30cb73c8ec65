"""Actors in processes of their own, on Ray. The only module that imports ray, and only when a runtime starts.

A local instance is the smallest Ray we can start: a GCS server, a raylet with its two agents (it refuses to run
without them), and one worker for each actor. No dashboard server, autoscaler monitor, log monitor, metrics, usage
reports or prestarted workers. It listens on 127.0.0.1 alone, and asks every peer for a random token.

Blocking Ray calls run in one thread that lives as long as the runtime: Ray ties its processes to the *thread* that
started them (parent-death signal), so a thread of a pool that shrinks would take the instance down.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import structlog

from recalld.actors.hosting import Host, answer, failure, log_unexpected
from recalld.actors.processes import ProcessRecord, role_of
from recalld.actors.runtime import ActorRef, ActorSpec, load_factory
from recalld.actors.watcher import FOLDER_PREFIX
from recalld.actors.wirecodec import pack, unpack
from recalld.storage.errors import Conflict, DeadlineExceeded, RecalldError, Unavailable

log = structlog.get_logger("recalld.actors.ray")
T = TypeVar("T")

NAMESPACE = "recalld"
MINIMUM_VERSION = (2, 52)  # the first with token authentication
INLINE_LIMIT = 2 << 20  # bytes of an answer that travel with the reply instead of through the object store
_HOST_CONCURRENCY = 1000  # Ray's own bound; `ActorSpec.max_concurrency` is kept by the host, so pings always pass
_SWITCH_SECONDS = 0.0005
_ALIVE_SECONDS = 2.0
_REFRESH_SECONDS = 5.0

# Each name was checked in the installed release; an unknown one is ignored by Ray.
_LEAN = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_enable_open_telemetry": "0",
    "RAY_task_events_report_interval_ms": "0",
    "RAY_event_stats": "0",
    "RAY_enable_timeline": "0",
    "RAY_LOG_TO_DRIVER": "0",
    "RAY_max_direct_call_object_size": str(INLINE_LIMIT),
}
# Ray's switch for "one machine only": the node is 127.0.0.1 everywhere instead of the outward address.
_LOOPBACK_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_TOKEN = "RAY_AUTH_TOKEN"
_MODE = "RAY_AUTH_MODE"


@dataclass(frozen=True, slots=True)
class RayOptions:
    """How to start or reach Ray.

    `address`: join this cluster instead of starting an instance; its token is taken from Ray's own settings.
    `run_folder`: where `processes.json` stands (the home's `run/`); None records nothing and starts no watcher.
    `node_ip_address`: a local instance listens there; anything but 127.0.0.1 opens it to that network.
    `object_store_memory`: bytes, a ceiling and not a reservation; Ray's least is 75 MiB.
    `allow_unauthenticated`: run although token authentication is missing.
    `worker_setup`: "module:function" called in each hosted process before its actor is built (logging, say).
    `patience`: seconds that running calls get when an actor stops.
    `begin_seconds`: the most an actor's process and its `start` may take, loading of models included.
    """

    address: str | None = None
    run_folder: Path | None = None
    node_ip_address: str = "127.0.0.1"
    object_store_memory: int = 80 << 20
    temp_root: Path = Path("/tmp")
    allow_unauthenticated: bool = False
    worker_setup: str | None = None
    patience: float = 1.5
    begin_seconds: float = 300.0


class RayHost:
    """The class behind every Ray actor: a `Host` that speaks bytes."""

    def __init__(
        self, name: str, factory: str, kwargs: bytes, max_concurrency: int, setup: str | None, path: tuple[str, ...]
    ) -> None:
        # Factories may live where only the driver looks: beside a script, say. Ours are found without.
        sys.path.extend(entry for entry in path if entry not in sys.path)
        # A busy thread must not keep the event loop from the interpreter lock for the default 5 ms.
        sys.setswitchinterval(_SWITCH_SECONDS)
        if setup is not None:
            load_factory(setup)()
        self._host = Host(ActorSpec(name, factory, unpack(kwargs), max_concurrency), _RayResolver())
        self._first: asyncio.Task[bytes] | None = None
        with contextlib.suppress(RuntimeError):
            # After a crash nobody calls at once, yet recovery should begin: `start` does not wait for a message.
            self._first = asyncio.get_running_loop().create_task(self.begin())

    async def begin(self) -> bytes:
        """Wait for the actor's `start`; an envelope with this process's id."""
        try:
            await self._host.ready()
        except RecalldError as error:
            return b"\x01" + pack(error)
        return b"\x00" + pack(os.getpid())

    async def handle(self, data: bytes) -> bytes:
        return await self._host.handle_bytes(data)

    async def ping(self) -> int:
        return os.getpid()

    async def stop(self, patience: float) -> None:
        await self._host.stop(patience)


class _RayResolver:
    """Finds actors from inside an actor. Handles are kept: a name means the same actor for the instance's life."""

    def __init__(self) -> None:
        self._refs: dict[str, RayRef] = {}

    async def lookup(self, name: str) -> ActorRef:
        ref = self._refs.get(name)
        if ref is None:
            ref = self._refs[name] = RayRef(name, await asyncio.to_thread(_find, name))
        return ref


def _find(name: str) -> Any:
    import ray

    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError as error:
        raise Unavailable(f"No actor named {name} runs yet.") from error


class RayRef:
    """An actor's address on Ray."""

    def __init__(self, name: str, handle: Any, on_death: Callable[[], None] = lambda: None) -> None:
        self._name = name
        self.handle = handle
        self._on_death = on_death

    @property
    def name(self) -> str:
        return self._name

    async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - ends the waiting only
        data = pack(message)
        try:
            future = asyncio.ensure_future(self._reply(self.handle.handle.remote(data)))
        except Exception as error:
            raise self._typed(error) from error
        # Nobody waits any more for what a cancelled or timed-out caller asked; its failure is no news then.
        future.add_done_callback(_retrieve)
        # `wait` and not `wait_for`: neither a time-out nor a cancelled caller may cancel the task inside the actor.
        done, _ = await asyncio.wait({future}, timeout=timeout)
        if not done:
            raise DeadlineExceeded(f"The actor {self._name} did not answer within {timeout:g} s.")
        try:
            reply = future.result()
        except Exception as error:
            raise self._typed(error) from error
        return answer(reply)

    @staticmethod
    async def _reply(reference: Any) -> bytes:
        data: bytes = await reference
        return data

    def _typed(self, error: BaseException) -> RecalldError:
        """Ray's exceptions in our words. All of those about the actor mean: it is gone or coming back."""
        import ray.exceptions as ray_errors

        if isinstance(error, (ray_errors.RayActorError, ray_errors.WorkerCrashedError, ray_errors.TaskCancelledError)):
            self._on_death()
            return Unavailable(f"The actor {self._name} is restarting; try again shortly.")
        if isinstance(error, (ray_errors.RaySystemError, ray_errors.RayChannelError, ray_errors.ObjectLostError)):
            return Unavailable("The actors cannot be reached; try again shortly.")
        log_unexpected("call_failed", self._name, error)
        return RecalldError()

    def tell(self, message: Any) -> None:
        try:
            reference = self.handle.handle.remote(pack(message))
        except Exception as error:
            log_unexpected("tell_failed", self._name, error)
            return
        # Called in one of Ray's threads; the reference is kept alive by the future.
        reference.future().add_done_callback(self._log_failure)

    def _log_failure(self, future: Future[bytes]) -> None:
        error = future.exception() or failure(future.result())
        if error is not None:
            log_unexpected("tell_failed", self._name, error)

    async def alive(self) -> bool:
        try:
            await asyncio.wait_for(self.pid(), _ALIVE_SECONDS)
        except Exception:
            return False
        return True

    async def pid(self) -> int:
        """The id of the process that hosts the actor now."""
        pid: int = await self.handle.ping.remote()
        return pid

    def __repr__(self) -> str:
        return f"RayRef({self._name!r})"


def _retrieve(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


class RayRuntime:
    """A local Ray instance owned by this process, or a place in a cluster. `await start()` before anything else."""

    def __init__(self, options: RayOptions | None = None) -> None:
        self._options = options or RayOptions()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recalld-ray")
        self._record = ProcessRecord(self._options.run_folder) if self._options.run_folder is not None else None
        self._node: Any = None
        self._folder: Path | None = None
        self._host_class: Any = None
        self._refs: dict[str, RayRef] = {}
        self._refresher: asyncio.Task[None] | None = None
        self._names: dict[int, str] = {}
        self._stale = asyncio.Event()
        self._started = False
        self._closing: asyncio.Task[None] | None = None
        self._facts: dict[str, Any] = {"runtime": "ray"}

    async def start(self) -> None:
        """End what a dead daemon left, start (or join) Ray, start the watcher. Raises typed errors; cleans up then."""
        try:
            await self._in_thread(self._start)
        except BaseException:
            await self._in_thread(self._stop)
            self._thread.shutdown(wait=False)
            raise
        self._started = True
        if self._record is not None and self._options.address is None:
            self._refresher = asyncio.create_task(self._keep_record(), name="process record")

    async def spawn(self, spec: ActorSpec) -> ActorRef:
        if not self._started:
            raise Unavailable("Ray is not running yet; call start() first.")
        if spec.name in self._refs:
            raise Conflict(f"An actor named {spec.name} runs already; stop it first.")
        load_factory(spec.factory)  # a wrong path is an error here, not a worker that dies again and again
        handle = await self._in_thread(lambda: self._create(spec))
        ref = RayRef(spec.name, handle, self._stale.set)
        self._refs[spec.name] = ref
        try:
            reply: bytes = await asyncio.wait_for(_awaited(handle.begin.remote()), self._options.begin_seconds)
            self._names[answer(reply)] = spec.name
        except BaseException as error:
            self._refs.pop(spec.name, None)
            await self._in_thread(lambda: _kill(handle))
            if isinstance(error, (RecalldError, asyncio.CancelledError)):
                raise
            if isinstance(error, TimeoutError):
                seconds = self._options.begin_seconds
                raise DeadlineExceeded(f"The actor {spec.name} did not start within {seconds:g} s.") from None
            log_unexpected("actor_start_failed", spec.name, error)
            raise RecalldError(f"The actor {spec.name} did not start; the daemon's log says why.") from error
        await self._refresh()
        return ref

    async def lookup(self, name: str) -> ActorRef:
        ref = self._refs.get(name)
        if ref is None:
            ref = RayRef(name, await self._in_thread(lambda: _find(name)), self._stale.set)
        return ref

    async def stop(self, ref: ActorRef) -> None:
        known = self._refs.pop(ref.name, None)
        handle = known.handle if known is not None else getattr(ref, "handle", None)
        if handle is None:
            return
        patience = self._options.patience
        # A dead or stuck actor cannot stop itself; the kill below ends it all the same.
        with contextlib.suppress(Exception):
            await asyncio.wait_for(_awaited(handle.stop.remote(patience)), 2 * patience)
        await self._in_thread(lambda: _kill(handle))
        self._stale.set()

    async def shutdown(self) -> None:
        """Everything we started is gone afterwards: actors (detached ones in a cluster stay), Ray, folder, watcher."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._shutdown())
        await asyncio.shield(self._closing)

    async def _shutdown(self) -> None:
        if self._refresher is not None:
            self._refresher.cancel()
        if self._started:
            # The latest workers too, so that nothing that a last restart brought up is missed.
            await self._refresh()
            if self._options.address is None:
                await asyncio.gather(*(self.stop(ref) for ref in list(self._refs.values())))
        self._started = False
        await self._in_thread(self._stop)
        self._thread.shutdown(wait=False)

    def describe(self) -> dict[str, Any]:
        facts = {**self._facts, "actors": sorted(self._refs), "healthy": self.healthy()}
        if self._record is not None:
            facts["processes"] = self._record.processes
            facts["watcher"] = self._record.watcher_pid
        return facts

    def healthy(self) -> bool:
        """Whether a local Ray's own processes run. Without its raylet nothing restarts: the daemon should stop then."""
        if self._node is None:
            return self._started
        return all(info.process.poll() is None for infos in self._node.all_processes.values() for info in infos)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # What follows runs in the runtime's own thread, apart from the two coroutines that keep the record.

    def _start(self) -> None:
        options = self._options
        if self._record is not None and options.address is None:
            for entry in self._record.recover():
                log.info("ended_leftover_process", pid=entry["pid"], role=entry["role"])
        already = sys.modules.get("ray")
        if already is not None and already.is_initialized():
            raise Conflict("This process uses Ray already; shut that down first or pass its address.")
        self._prepare_environment()
        import ray

        self._check_version(ray.__version__)
        _keep_quiet()
        # An instance on loopback is joined there: Ray would look for it at the outward address otherwise.
        host = options.node_ip_address if options.address is None else options.address.rpartition(":")[0]
        _forget_cached_settings(loopback=_is_loopback(host))
        if options.address is None:
            self._start_local(ray)
        else:
            ray.init(address=options.address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
        authenticated = _is_authenticated()
        if not authenticated and not options.allow_unauthenticated:
            raise RecalldError(
                "Ray runs without token authentication, so anyone who reaches its ports could run code here. "
                "Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN for the cluster, or use --runtime inline."
            )
        # Later children of this process have no use for the token; Ray keeps its own copy.
        if options.address is None:
            os.environ.pop(_TOKEN, None)
        self._host_class = ray.remote(RayHost)
        self._facts |= {
            "version": ray.__version__,
            "address": options.address or self._node.gcs_address,
            "local": options.address is None,
            "authentication": "token" if authenticated else "none",
            "folder": str(self._folder) if self._folder is not None else None,
        }

    def _prepare_environment(self) -> None:
        """Ray reads its settings from the environment, and hands ours to every process it starts."""
        for name, value in _LEAN.items():
            os.environ.setdefault(name, value)
        if self._options.address is not None:
            return
        os.environ[_MODE] = "token"
        os.environ[_TOKEN] = secrets.token_hex(32)
        os.environ.pop("RAY_AUTH_TOKEN_PATH", None)
        # A RAY_ADDRESS in the user's shell must not send our driver to another instance.
        os.environ.pop("RAY_ADDRESS", None)
        if _is_loopback(self._options.node_ip_address):
            os.environ[_LOOPBACK_ONLY] = "0"
        else:
            os.environ.pop(_LOOPBACK_ONLY, None)

    def _check_version(self, version: str) -> None:
        number = tuple(int(part) for part in version.split(".")[:2])
        if number < MINIMUM_VERSION and not self._options.allow_unauthenticated:
            raise RecalldError(
                f"Ray {version} has no token authentication; install ray>=2.52, use --runtime inline, "
                "or force it knowing that anyone who reaches its ports can run code here."
            )

    def _start_local(self, ray: Any) -> None:
        options = self._options
        self._folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=options.temp_root))
        if self._record is not None:
            self._record.add_folder(self._folder)
            self._record.start_watcher()
        # Ray opens its own folder to everyone (mode 0777); inside ours (0700) nobody else gets to it.
        inner = self._folder / "r"
        self._node = _lean_node(options, inner)
        if self._record is not None:
            # Before the driver connects: from here on a crash leaves nothing that is not on record.
            self._record.refresh(self._roots())
        ray.init(
            address=self._node.gcs_address,
            namespace=NAMESPACE,
            log_to_driver=False,
            configure_logging=False,
            _temp_dir=str(inner),
        )

    def _roots(self) -> list[int]:
        if self._node is None:
            return []
        return [info.process.pid for infos in self._node.all_processes.values() for info in infos]

    def _create(self, spec: ActorSpec) -> Any:
        cluster = self._options.address is not None
        remote = self._host_class.options(
            name=spec.name,
            namespace=NAMESPACE,
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=_HOST_CONCURRENCY,
            lifetime="detached" if cluster else "non_detached",
            get_if_exists=cluster,
        )
        try:
            return remote.remote(
                spec.name,
                spec.factory,
                pack(spec.kwargs),
                spec.max_concurrency,
                self._options.worker_setup,
                () if cluster else tuple(sys.path),
            )
        except ValueError as error:
            raise Conflict(f"An actor named {spec.name} runs already; stop it first.") from error

    def _stop(self) -> None:
        ray = sys.modules.get("ray")
        if (ray is not None and self._host_class is not None) or self._node is not None:
            with contextlib.suppress(Exception):
                ray.shutdown()  # type: ignore[union-attr]
        if self._node is not None:
            with contextlib.suppress(Exception):
                self._node.kill_all_processes(check_alive=False, allow_graceful=True)
            self._node = None
        if self._record is not None and self._options.address is None:
            for entry in self._record.close():
                log.error("process_would_not_end", pid=entry["pid"], role=entry["role"])
        elif self._folder is not None:
            from recalld.actors.watcher import remove_folder

            remove_folder(str(self._folder))
        self._folder = None
        # A cluster's token is the user's, and stays.
        if self._options.address is None:
            os.environ.pop(_TOKEN, None)

    async def _refresh(self) -> None:
        if self._record is not None and self._node is not None:
            record, roots = self._record, self._roots()
            await self._in_thread(lambda: record.refresh(roots, self._role))

    def _role(self, process: Any) -> str:
        name = self._names.get(process.pid)
        if name is not None:
            return f"actor {name}"
        return role_of(process).replace(RayHost.__name__, "actor")

    async def _keep_record(self) -> None:
        """Follow restarts: at once when a call met a dead actor, else every few seconds."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stale.wait(), _REFRESH_SECONDS)
                self._stale.clear()
                await asyncio.sleep(0.5)
                for ref in list(self._refs.values()):
                    with contextlib.suppress(Exception):
                        self._names[await asyncio.wait_for(ref.pid(), _ALIVE_SECONDS)] = ref.name
            await self._refresh()


async def _awaited(reference: Any) -> Any:
    return await reference


def _kill(handle: Any) -> None:
    import ray

    with contextlib.suppress(Exception):
        ray.kill(handle, no_restart=True)


def _is_loopback(address: str) -> bool:
    return address in {"127.0.0.1", "localhost", "::1"}


def _is_authenticated() -> bool:
    try:
        from ray import _raylet

        core: Any = _raylet
        return bool(core.get_authentication_mode() == core.AuthenticationMode.TOKEN)
    except (ImportError, AttributeError):
        return False


def _forget_cached_settings(loopback: bool) -> None:
    """Make Ray read the environment again: it may have been imported, or have run, earlier in this process."""
    with contextlib.suppress(ImportError, AttributeError):
        from ray import _raylet

        core: Any = _raylet
        core.Config.initialize("")
        core.AuthenticationTokenLoader.instance().reset_cache()
    with contextlib.suppress(ImportError, AttributeError):
        from ray._private import ray_constants

        ray_constants.ENABLE_RAY_CLUSTER = not loopback


def _keep_quiet() -> None:
    """Keep Ray off the terminal: stdout may be a protocol (`recalld mcp`), and its advice is not for our users.

    Its logger is set up when ray is imported, so this comes after. Errors of the cluster ("a worker died") are
    printed to stdout by a thread that no setting turns off; they go to our log instead.
    """
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    with contextlib.suppress(ImportError):
        from ray._private import worker

        worker.print_to_stdstream = _note_cluster_message


def _note_cluster_message(data: dict[str, Any], *_: Any, **__: Any) -> None:
    # The first sentence says what happened; the rest is Ray's advice on its own tools.
    first = " ".join(str(line) for line in data.get("lines", ()))[:300].split(". ")[0]
    log.warning("ray_message", message=first)


def _lean_node(options: RayOptions, folder: Path) -> Any:
    """A head node without dashboard server, autoscaler monitor and log monitor: 170 MB and three processes less.

    `ray.init` cannot leave them out; its own building block can. Should a later Ray change that block, this is the
    place to fall back to `ray.init(include_dashboard=False)`.
    """
    from ray._private.node import Node
    from ray._private.parameter import RayParams

    class LeanNode(Node):
        def start_api_server(self, **_: Any) -> None:
            """Started even with `include_dashboard=False`, and of no use to us."""

    make: Any = RayParams  # its own annotations are off
    parameters = make(
        node_ip_address=options.node_ip_address,
        num_cpus=0,
        num_gpus=0,
        include_dashboard=False,
        no_monitor=True,
        include_log_monitor=False,
        object_store_memory=options.object_store_memory,
        temp_dir=str(folder),
    )
    # Ray's processes end with this thread, whatever happens to us: the first net, the watcher is the second.
    assert threading.current_thread() is not threading.main_thread()
    return LeanNode(parameters, head=True, shutdown_at_exit=False, spawn_reaper=True, ray_init_cluster=True)
