"""Logs: one form for every line, whoever writes it, and all of them on standard error.

Standard output belongs to what a command prints.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, TextIO

import structlog

if TYPE_CHECKING:
    from structlog.typing import Processor


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at that moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, value: TextIO) -> None:
        raise AttributeError("The stream is always sys.stderr.")


def configure(level: str, form: str) -> None:
    """Set the logs of this process up, or anew; `level` as in `log_level`, `form` text or json.

    Lines of the standard library's loggers (ours of requests, asyncio's, aiohttp's) come out in the same form.
    """
    number = logging.DEBUG if level == "trace" else int(getattr(logging, level.upper(), logging.INFO))
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if form == "json":
        renderers += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    else:
        plain = structlog.dev.plain_traceback
        renderers.append(structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain))
    handler = _StandardError()
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=renderers))
    root = logging.getLogger()
    for known in list(root.handlers):
        if isinstance(known, _StandardError):
            root.removeHandler(known)
    root.addHandler(handler)
    root.setLevel(number)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
