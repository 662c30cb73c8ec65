"""One file into text, inside limits of memory, time and size. Runs as a process of its own (`python -m`), because what
a library makes of a damaged or hostile file is nobody's to foresee: it may only end this process.

    python -m recalld.actors.files.convert PATH NAME CONTENT_TYPE MEMORY_MB CPU_SECONDS MAX_CHARACTERS

Standard output holds the text as UTF-8, or on exit code 3 one sentence that says why there is none. Standard input is
never written to: when it ends, whoever asked is gone, and so is this process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import zipfile
from pathlib import Path
from typing import Final

from recalld.actors.files import formats
from recalld.storage.errors import FileUnreadable

REFUSED: Final = 3
HEAD: Final = 4096
MOST_ENTRIES: Final = 20_000
MOST_UNPACKED: Final = 400 << 20
MOST_RATIO: Final = 200
"""Bytes that one byte of a zip may unpack to, once it unpacks to more than 20 MB: real documents stay below 50."""
NO_LIBRARY: Final = "Reading {kind} files needs a converter that is not installed; run: pip install 'recalld[files]'."


def convert(path: Path, name: str, content_type: str, most: int) -> str:
    """The text of a file. Raises `FileUnreadable` with a sentence that holds nothing of the file."""
    with path.open("rb") as handle:
        head = handle.read(HEAD)
    if not head.strip(b"\0"):
        raise FileUnreadable("The file is empty.")
    entries = _entries(path) if head.startswith(b"PK\x03\x04") else b""
    kind = formats.format_of(name, content_type, head, entries)
    if kind in formats.OWN:
        text = formats.decode(path.read_bytes()).replace("\0", "")
        if kind == formats.JSON:
            formats.check_json(text)
        text = formats.from_own(kind, text)
    else:
        text = _by_library(path, kind).replace("\f", "\n\n")
    if not text.strip():
        raise FileUnreadable("No text was found in the file; it may be a scan, or hold pictures alone.")
    if len(text) > most:
        raise FileUnreadable(f"The file holds {len(text):,} characters and at most {most:,} are taken; split it.")
    return text


def _entries(path: Path) -> bytes:
    """Names in a zip, as bytes. Raises `FileUnreadable` for one that is damaged or unpacks to too much."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise FileUnreadable("The file is damaged: it begins as a document and does not end as one.") from None
    unpacked = sum(info.file_size for info in infos)
    packed = max(1, path.stat().st_size)
    if (
        len(infos) > MOST_ENTRIES
        or unpacked > MOST_UNPACKED
        or (unpacked > 20 << 20 and unpacked / packed > MOST_RATIO)
    ):
        raise FileUnreadable("The file unpacks to far more than a document holds, and was not opened.")
    return b"\n".join(info.filename.encode("utf-8", "replace") for info in infos)


def _by_library(path: Path, kind: str) -> str:
    try:
        from markitdown import StreamInfo, converters
    except ImportError:
        raise FileUnreadable(NO_LIBRARY.format(kind=kind.upper())) from None
    converter = getattr(converters, f"{kind.capitalize()}Converter")()
    try:
        with path.open("rb") as stream:
            found = converter.convert(stream, StreamInfo(extension=f".{kind}"))
    except MemoryError:
        raise
    except Exception as error:
        raise FileUnreadable(_reason(kind, error)) from None
    text: str = found.markdown
    return text


def _reason(kind: str, error: Exception) -> str:
    """A sentence for a library's failure. The library's own words may quote the file, so they are not passed on."""
    name = type(error).__name__
    if name == "MissingDependencyException":
        return NO_LIBRARY.format(kind=kind.upper())
    if "Password" in name or "Encrypt" in name or "Password" in repr(error.__cause__ or error.__context__ or ""):
        return f"The {kind.upper()} file is protected by a password; save it without one."
    return f"The {kind.upper()} file cannot be read ({name}); it may be damaged."


def _limit(memory_mb: int, cpu_seconds: int) -> None:
    import resource

    bounds = [
        (resource.RLIMIT_AS, memory_mb << 20),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 64 << 20),
    ]
    for what, most in bounds:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))
    with contextlib.suppress(OSError):
        os.nice(10)


def _end_with_parent() -> None:
    with contextlib.suppress(OSError, ValueError):
        while os.read(0, 1024):
            pass
    os._exit(9)


def main(arguments: list[str]) -> int:
    path, name, content_type, memory_mb, cpu_seconds, most = arguments
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit(int(memory_mb), int(cpu_seconds))
    # What libraries print belongs to nobody's log: it may quote the file.
    out = os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        text, code = convert(Path(path), name, content_type, int(most)), 0
    except FileUnreadable as error:
        text, code = error.message, REFUSED
    except (MemoryError, RecursionError):
        text, code = "The file takes more memory to read than it may.", REFUSED
    except Exception as error:
        text, code = f"The file cannot be read ({type(error).__name__}).", REFUSED
    out.write(text.encode("utf-8", "replace"))
    out.flush()
    # Without the interpreter's own end: threads of a library may hang, and the answer is out.
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
