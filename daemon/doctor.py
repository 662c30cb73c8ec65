"""`recalld doctor`: checks of a home and this machine, each with what to do when it is not well.

A check is a plain function from settings to a `Check`; none changes anything, all work while a daemon runs.
"""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import json
import os
import shutil
import socket
import stat
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import psutil

from recalld.daemon.commands.output import plural
from recalld.daemon.owner import Owner, find_owner, recorded_owner
from recalld.daemon.settings import Settings, is_loopback
from recalld.storage.errors import HomeInUse, RecalldError

NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "fuse.s3fs", "afs", "ceph", "glusterfs", "lustre")
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")
LEAST_RAY = (2, 52)  # the first release line with token authentication


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found. `outcome` is ok, warn or fail; `advice` is what to do, "" when all is well."""

    name: str
    outcome: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""

    def to_wire(self) -> dict[str, str]:
        return asdict(self)


async def examine(settings: Settings, *, llm: bool = False) -> list[Check]:
    """All checks, in the order a person would look. A check that breaks is a failed check, not a broken doctor.

    With `llm` the configured model is tried as well, which makes some twenty calls.
    """
    quick: list[Callable[[Settings], Check]] = [
        check_home,
        check_rights,
        check_file_system,
        check_disk,
        check_owner,
        check_embedding,
        check_dates,
        check_ray,
        check_leftovers,
        check_port,
    ]
    found = [await _run(check.__name__, asyncio.to_thread(check, settings)) for check in quick]
    bad = [one.name for one in found if one.name in ("home", "embedding") and one.outcome == "fail"]
    if bad:
        # It would only say the same again.
        found.append(Check("store", "warn", f"not looked at; see {bad[0]}"))
    else:
        status: dict[str, Any] = {}
        found.append(await _run("check_store", check_store(settings, status)))
        if gap := status.get("ledger", {}).get("gap"):
            found.append(check_bill(gap))
    found += await _models(settings)
    if llm:
        from recalld.daemon.doctor_llm import check_model

        try:
            found += await check_model(settings)
        except RecalldError as error:
            found.append(Check("model", "fail", error.message, "Do what it says."))
    return found


async def _models(settings: Settings) -> list[Check]:
    from recalld.daemon.doctor_models import check_models

    try:
        return await check_models(settings)
    except RecalldError as error:
        return [Check("model", "fail", error.message, "Do what it says.")]


def check_bill(gap: dict[str, Any]) -> Check:
    """Whether model providers bill what they were sent, by the ledger of the last days."""
    from recalld.daemon.doctor_llm import gap_check

    return gap_check(gap["reported_input_tokens"], gap["counted_input_tokens"], gap["calls"])


async def _run(name: str, work: Awaitable[Check]) -> Check:
    title = name.removeprefix("check_").replace("_", " ")
    try:
        return await work
    except RecalldError as error:
        return Check(title, "fail", error.message, "Do what it says, or report it with the daemon's log.")
    except Exception as error:
        text = str(error) or type(error).__name__
        return Check(title, "fail", f"the check itself failed: {text}", "Report this with the daemon's log.")


def check_home(settings: Settings) -> Check:
    from recalld.storage.home import FORMAT, Home

    home = settings.home_path
    if not home.exists():
        return Check("home", "warn", f"{home} does not exist", "`recalld serve` or `recalld init` makes it.")
    if not home.is_dir():
        return Check("home", "fail", f"{home} is a file, and a home is a folder", "Choose another with --home.")
    try:
        facts: Any = json.loads((home / "home.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        held = {path.name for path in home.iterdir()} - {"run"}
        if "partitions" in held:
            return Check("home", "fail", f"{home} has no home.json", "Bring home.json back from a backup.")
        if held:
            advice = "recalld makes no home among other files: choose another folder with --home."
            return Check("home", "fail", f"{home} is not empty and not a recalld home", advice)
        return Check("home", "warn", f"{home} is empty", "`recalld serve` or `recalld init` makes it a home.")
    except (OSError, ValueError):
        facts = None
    if isinstance(facts, dict) and isinstance(facts.get("format"), int) and facts["format"] > FORMAT:
        found = f"{home} was made by a newer recalld (format {facts['format']})"
        return Check("home", "fail", found, "Update recalld: pip install --upgrade recalld")
    try:
        info = Home(home).info
    except RecalldError:
        advice = "Bring home.json back from a backup; the data in partitions/ is untouched."
        return Check("home", "fail", f"{home}/home.json cannot be read", advice)
    return Check("home", "ok", f"{home} (format {info.format}, partitions {info.partitions})")


def check_rights(settings: Settings) -> Check:
    """0700 for the folder and 0600 for what is in it, except what libraries make for others on purpose."""
    home = settings.home_path
    if not (home / "home.json").exists() and not (home / "partitions").exists():
        return Check("rights", "ok", "nothing to check: there is no home yet")
    open_paths = []
    for path in [home, *home.rglob("*")]:
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if not stat.S_ISLNK(mode) and not stat.S_ISSOCK(mode) and mode & 0o077:
            open_paths.append(path)
    if open_paths:
        first = open_paths[0]
        return Check(
            "rights",
            "warn",
            f"{plural(len(open_paths), 'path')} can be read by others, {first} for one",
            f"chmod -R go-rwx {home}",
        )
    if home.stat().st_uid != os.getuid():
        return Check("rights", "fail", f"{home} belongs to another user", f"chown -R {os.getuid()} {home}")
    return Check("rights", "ok", "only you can read the home")


def check_file_system(settings: Settings) -> Check:
    """LMDB maps its file: a network file system corrupts it, and one in memory forgets it."""
    folder = _existing(settings.home_path)
    kind = file_system_of(folder)
    if kind.startswith(NETWORK_FILE_SYSTEMS):
        return Check(
            "file system", "fail", f"{folder} is on {kind}, a network file system", "Move the home to a local disk."
        )
    if kind in MEMORY_FILE_SYSTEMS:
        return Check("file system", "warn", f"{folder} is on {kind}, in memory", "A restart of the machine loses it.")
    return Check("file system", "ok", kind or "unknown")


def file_system_of(folder: Path, mounts: str | None = None) -> str:
    """The type of the file system `folder` is on, "" where the system does not tell. `mounts` is for tests."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    best, kind = -1, ""
    target = folder.resolve()
    for line in mounts.splitlines():
        parts = line.split()
        if len(parts) < 3:
            continue
        point = Path(parts[1].encode().decode("unicode_escape"))
        # Later lines cover earlier ones, so an equal depth wins too.
        if (target == point or point in target.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), parts[2]
    return kind


def check_disk(settings: Settings) -> Check:
    usage = shutil.disk_usage(_existing(settings.home_path))
    reserve = settings.store_disk_reserve_mb << 20
    free = f"{usage.free / 1e9:.1f} GB free"
    if usage.free <= reserve:
        return Check(
            "disk", "fail", free, "Writes are refused (507). Free some space, or delete and `recalld compact`."
        )
    if usage.free < 10 * reserve:
        return Check("disk", "warn", free, "Little is left; writes stop when the reserve is reached.")
    return Check("disk", "ok", free)


def check_owner(settings: Settings) -> Check:
    owner = find_owner(settings.home_path)
    if owner is not None:
        since = datetime.fromtimestamp(owner.start_time, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return Check("owner", "ok", f"a daemon, pid {owner.pid}, at {owner.url} since {since}")
    dead = recorded_owner(settings.home_path)
    if dead is not None:
        return Check("owner", "ok", f"none; the last daemon (pid {dead.pid}) did not end cleanly, the next takes over")
    return Check("owner", "ok", "no daemon runs on this home")


def check_embedding(settings: Settings) -> Check:
    """The model loads, and is the one the home was made with."""
    from recalld.actors.embedding import Embedder
    from recalld.actors.models import ModelIdentity, find_model

    embedder = Embedder(
        find_model(settings.embedding_model), device=settings.embedding_device, force_cpu=settings.embedding_force_cpu
    )
    identity = embedder.identity
    found = f"{identity.name}, {identity.dim} dimensions, {embedder.providers[0]}"
    recorded = _recorded_model(settings.home_path)
    if recorded is not None and not ModelIdentity.from_plain(recorded).same_space(identity):
        advice = "Set embedding.model to the home's own model, or use another home: two models never mix in one index."
        return Check("embedding", "fail", f"{found}, but the home was made with {recorded.get('name')}", advice)
    if embedder.warning:
        return Check("embedding", "warn", found, embedder.warning)
    return Check("embedding", "ok", found)


def _recorded_model(home: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads((home / "home.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    for name in ("model", "embedding", "embedding_model"):
        if isinstance(facts.get(name), dict) and "sha256" in facts[name]:
            return dict(facts[name])
    return None


def check_dates(settings: Settings) -> Check:
    """The date parser finds a date: were its answers to change shape, the temporal arm would fall silent."""
    from dateparser.search import search_dates

    base = datetime(2026, 3, 10, 12, 0)  # noqa: DTZ001 - the parser wants naive time
    hits = search_dates("what did we decide on 5 March 2026", settings={"RELATIVE_BASE": base}) or []
    days = [part for hit in hits for part in hit if isinstance(part, datetime)]
    if not any((day.year, day.month, day.day) == (2026, 3, 5) for day in days):
        advice = "Install the dateparser release this version was tested with: pip install --force-reinstall recalld"
        return Check("date parser", "fail", "it does not find a plain date", advice)
    return Check("date parser", "ok", "finds dates")


def check_ray(settings: Settings) -> Check:
    from importlib.metadata import PackageNotFoundError, version

    try:
        release = version("ray")
    except PackageNotFoundError:
        outcome: Literal["ok", "fail"] = "fail" if settings.runtime == "ray" else "ok"
        return Check(
            "ray", outcome, "not installed", "Install it, or use --runtime inline." if outcome == "fail" else ""
        )
    if importlib.util.find_spec("ray") is None:
        return Check("ray", "fail", f"{release} is damaged", "pip install --force-reinstall ray")
    numbers = tuple(int(part) for part in release.split(".")[:2] if part.isdigit())
    if numbers < LEAST_RAY and settings.runtime == "ray":
        advice = "It cannot authenticate its peers: upgrade Ray, or use --runtime inline."
        return Check("ray", "warn" if settings.ray_allow_tokenless else "fail", release, advice)
    if settings.runtime != "ray":
        return Check("ray", "ok", f"{release}, not used (runtime {settings.runtime})")
    advice = ""
    return Check("ray", "ok", f"{release}; its processes ask every peer for a token", advice)


def check_leftovers(settings: Settings) -> Check:
    """Processes an earlier daemon started and that outlived it: known by pid and start, never by name."""
    try:
        record = json.loads((settings.home_path / "run" / "processes.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Check("leftovers", "ok", "none recorded")
    daemon = record.get("daemon") or {}
    if _lives(daemon):
        count = len(record.get("processes", []))
        belonging = "1 process belongs" if count == 1 else f"{count} processes belong"
        return Check("leftovers", "ok", f"{belonging} to the running daemon")
    alive = [one for one in record.get("processes", []) if _lives(one)]
    if not alive:
        return Check("leftovers", "ok", "none")
    names = ", ".join(f"{one.get('role', 'process')} {one['pid']}" for one in alive)
    return Check("leftovers", "warn", f"alive after their daemon: {names}", "The next `recalld serve` ends them.")


def _lives(entry: dict[str, Any]) -> bool:
    try:
        started = float(psutil.Process(int(entry["pid"])).create_time())
        return abs(started - float(entry["created"])) < 1.0
    except (psutil.Error, KeyError, TypeError, ValueError):
        return False


def check_port(settings: Settings) -> Check:
    """Which sockets the daemon's processes listen on; without a daemon, whether the port is free."""
    owner = find_owner(settings.home_path)
    if owner is None:
        if settings.port == 0 or _is_free(settings.host, settings.port):
            return Check("port", "ok", f"{settings.host}:{settings.port} is free")
        who = "another recalld, which serves another home" if _is_recalld(settings) else "another program"
        other = settings.port + 1 if settings.port < 65535 else 0
        advice = f"Stop what listens there, or choose another: recalld serve --port {other}"
        return Check("port", "fail", f"{settings.host}:{settings.port} is taken by {who}", advice)
    sockets = listening(owner.pid)
    text = ", ".join(sockets) or "none that this user may see"
    outside = [one for one in sockets if not is_loopback(one.rpartition(":")[0])]
    if outside:
        advice = "Reachable from other machines: use a firewall, or --runtime inline and a loopback host."
        return Check("port", "warn", f"listening on {text}", advice)
    return Check("port", "ok", f"listening on {text}, on this machine only")


def listening(pid: int) -> list[str]:
    """`address:port` of every socket on which a process or its descendants listen, sorted."""
    found = set()
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []
    for process in processes:
        try:
            connections = process.net_connections(kind="tcp")
        except psutil.Error:
            continue
        for one in connections:
            if one.status == psutil.CONN_LISTEN:
                address = f"[{one.laddr.ip}]" if ":" in one.laddr.ip else one.laddr.ip
                found.add(f"{address}:{one.laddr.port}")
    return sorted(found)


def _is_free(host: str, port: int) -> bool:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError:
        return False
    return True


def _is_recalld(settings: Settings) -> bool:
    url = Owner(0, 0.0, settings.host, settings.port, settings.base_path.rstrip("/")).url + "/version"
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2) as answer:
            return b"recalld_version" in answer.read(100_000)
    except (OSError, ValueError, http.client.HTTPException):
        return False


async def check_store(settings: Settings, seen: dict[str, Any] | None = None) -> Check:
    """Every partition opens, and no bank is quarantined: asked of the daemon, or of the home itself."""
    from recalld.client import ApiError
    from recalld.daemon.commands.connection import connect

    if not (settings.home_path / "home.json").exists():
        return Check("store", "ok", "nothing stored yet")
    try:
        async with connect(settings) as link:
            status = await link.status()
        if seen is not None:
            seen.update(status)
    except HomeInUse as error:
        return Check("store", "warn", error.message, "Look again when it has ended.")
    except ApiError as error:
        if error.status != 401:
            raise
        advice = "Set RECALLD_API_KEY to the daemon's key and look again."
        return Check("store", "warn", "a daemon answers and asks for its key", advice)
    quarantined = status.get("quarantined") or []
    if quarantined:
        advice = "These banks are read from the store alone and take no work; see the log, then restart the daemon."
        return Check("store", "warn", f"quarantined: {', '.join(map(str, quarantined))}", advice)
    banks = status.get("banks")
    return Check("store", "ok", f"opens, {plural(banks, 'bank')}" if banks is not None else "opens")


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
