"""What every command shares: its options, the exit codes, and how an error becomes one."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

if TYPE_CHECKING:
    from recalld.daemon.settings import Settings

OK, FAILURE, USAGE, NOT_FOUND, UNREACHABLE = 0, 1, 2, 3, 4

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="Home folder; else $RECALLD_HOME, else ~/.recalld.", show_default=False),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="Settings file, TOML or YAML; else $RECALLD_CONFIG.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", help="Daemon to talk to, whoever owns the home; else $RECALLD_URL.",
        show_default=False,
    ),
]  # fmt: skip


class CommandError(Exception):
    """Ends a command with `code` after printing `message`, a sentence that says what to do."""

    def __init__(self, message: str, code: int = FAILURE) -> None:
        super().__init__(message)
        self.code = code


def settings_of(
    home: Path | None, config: Path | None, *, assigned: Mapping[str, str] | None = None, **flags: Any
) -> Settings:
    """The settings a command works with: its flags and what `--set` gave over the environment over the file."""
    from recalld.daemon import logs
    from recalld.daemon.settings import load

    file = config or (Path(os.environ["RECALLD_CONFIG"]) if os.environ.get("RECALLD_CONFIG") else None)
    warnings: list[str] = []
    settings = load(os.environ, file, {"home": home, **flags}, assigned, warnings=warnings)
    # Of a command's own work a person wants to hear only what is wrong; `serve` sets its level itself.
    logs.configure("warning", settings.log_format)
    for text in warnings:
        if settings.log_format == "json":
            logging.getLogger("recalld.settings").warning("%s", text)
        else:
            note(f"warning: {text}")
    return settings


def checked_url(url: str) -> str:
    """The URL of a daemon. Raises a usage error for one that nobody could listen at."""
    try:
        parts = urlsplit(url)
        well = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        well = False
    if not well:
        raise CommandError(f"{url!r} is not the URL of a daemon; it looks like http://127.0.0.1:8888.", USAGE)
    return url


def read_text(path: Path) -> str:
    """The text of a file that was named on the command line. Raises a usage error for one without text."""
    try:
        text = path.expanduser().read_bytes().decode("utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {(error.strerror or 'it is no file').lower()}.", USAGE) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8 text; convert it first.", USAGE) from None
    if "\0" in text:
        raise CommandError(f"{path} is not a text file.", USAGE)
    return text


def check_readable(path: Path) -> None:
    """Raises a usage error for a file that cannot be opened."""
    try:
        with path.expanduser().open("rb"):
            return
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {(error.strerror or 'it is no file').lower()}.", USAGE) from None


def note(text: str) -> None:
    """A line for the person, on stderr: stdout is for results."""
    print(text, file=sys.stderr)


def code_of(error: BaseException) -> tuple[int, str] | None:
    """Exit code and text of an error that a command may end with; None for a fault of the program."""
    from recalld.storage.errors import HomeInUse, NotFound, RecalldError, TooManyRequests

    if isinstance(error, CommandError):
        return error.code, str(error)
    if isinstance(error, RecalldError):
        if isinstance(error, NotFound):
            return NOT_FOUND, _hinted(error.message)
        if isinstance(error, HomeInUse | TooManyRequests):
            return UNREACHABLE, error.message
        return (USAGE if error.status in (400, 422) else FAILURE), error.message
    client = sys.modules.get("recalld.client")
    if client is not None and isinstance(error, client.RecalldError):
        return _code_of_client(error)
    if isinstance(error, BrokenPipeError):
        return OK, ""
    if isinstance(error, OSError):
        named = f"{error.filename}: " if error.filename else ""
        return FAILURE, f"{named}{error.strerror or type(error).__name__}"
    return None


def _code_of_client(error: BaseException) -> tuple[int, str]:
    from recalld.client import ApiError
    from recalld.client.errors import in_words

    if not isinstance(error, ApiError):
        return UNREACHABLE, str(error)
    # The prefix is the checker's own; the wire keeps it, as clients may look for it.
    text = _hinted(in_words(error.detail).replace("Value error, ", ""))
    code = {400: USAGE, 422: USAGE, 404: NOT_FOUND, 503: UNREACHABLE}.get(error.status, FAILURE)
    if error.status == 401:
        text += " (set RECALLD_API_KEY to the daemon's key)"
    return code, text


def _hinted(text: str) -> str:
    if re.fullmatch(r"Bank '.*' not found\.?", text, re.DOTALL):
        return f"{text.rstrip('.')}; retain something into it and it is made."
    return text


def one_blas_thread() -> None:
    """Call before numpy is loaded, here or in a process that inherits this environment.

    The products of a recall are too small to gain from BLAS threads, and those would spin on the cores that embed.
    """
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
