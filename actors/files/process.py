"""Runs the converter: a process for each file, ended when it takes too long, says too much, or nobody waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from recalld.actors.files.convert import REFUSED
from recalld.storage.errors import FileUnreadable, Unavailable

_READ = 1 << 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What one conversion may take: seconds on the clock, memory in MB, characters of the text."""

    seconds: float = 120.0
    memory_mb: int = 2048
    characters: int = 10_000_000


async def to_text(path: Path, name: str, content_type: str, limits: Limits) -> str:
    """The text of a file. Raises `FileUnreadable`; `Unavailable` when no process could be started."""
    command = (
        *(sys.executable, "-B", "-m", "recalld.actors.files.convert", str(path), name, content_type),
        *(str(limits.memory_mb), str(max(1, int(limits.seconds))), str(limits.characters)),
    )
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # Ctrl+C is the daemon's, which then ends this one
        )
    except OSError:
        raise Unavailable("The converter could not be started; it is tried again.") from None
    try:
        async with asyncio.timeout(limits.seconds):
            said = await _read(process, limits.characters * 4 + 4096)
            code = await process.wait()
    except TimeoutError:
        raise FileUnreadable(f"Reading the file took more than {limits.seconds:g} seconds.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
    if code == 0:
        return said
    if code == REFUSED:
        raise FileUnreadable(said)
    raise FileUnreadable("The converter ended while it read the file: it took too much time or memory, or is damaged.")


async def _read(process: asyncio.subprocess.Process, most: int) -> str:
    assert process.stdout is not None
    parts: list[bytes] = []
    size = 0
    while part := await process.stdout.read(_READ):
        size += len(part)
        if size > most:
            raise FileUnreadable("The file turns into more text than is taken; split it.")
        parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


def _environment() -> dict[str, str]:
    """Ours without secrets, and with one thread a library: each would reserve memory of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RECALLD_", "HINDSIGHT_", "AWS_", "OPENAI_"))}
    kept = {k: v for k, v in kept.items() if not any(word in k.upper() for word in ("KEY", "TOKEN", "SECRET", "PASS"))}
    single = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {**kept, **dict.fromkeys(single, "1"), "MALLOC_ARENA_MAX": "2"}
