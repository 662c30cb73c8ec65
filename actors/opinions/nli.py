"""The optional pair classifier: an ONNX model for natural language inference that a user brings, opened at first use.

A folder with `model.onnx` (or `onnx/model.onnx`), `tokenizer.json` and `config.json`, whose `id2label` names the
classes. Nothing is downloaded and nothing is loaded before a pair is judged.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recalld.storage.errors import Unprocessable

MAX_TOKENS = 512
_CLASSES = ("entailment", "contradiction", "neutral")


class PairModel:
    """One model in a folder. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None
        self._order: tuple[int, int, int] = (0, 0, 0)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]:
        """(entailment, contradiction, neutral) of each (premise, hypothesis). Raises `Unprocessable`: a bad folder."""
        self._open()
        found = []
        for premise, hypothesis in pairs:
            encoded = self._tokenizer.encode(premise, hypothesis)
            given = {
                "input_ids": np.array([encoded.ids], np.int64),
                "attention_mask": np.array([encoded.attention_mask], np.int64),
                "token_type_ids": np.array([encoded.type_ids], np.int64),
            }
            names = {one.name for one in self._session.get_inputs()}
            logits = self._session.run(None, {name: value for name, value in given.items() if name in names})[0][0]
            shares = np.exp(logits - logits.max())
            shares /= shares.sum()
            e, c, n = (float(shares[place]) for place in self._order)
            found.append((e, c, n))
        return found

    def _open(self) -> None:
        with self._lock:
            if self._session is not None:
                return
            import onnxruntime
            from tokenizers import Tokenizer

            path = next(
                (p for p in (self._folder / "model.onnx", self._folder / "onnx/model.onnx") if p.is_file()), None
            )
            if path is None:
                raise Unprocessable(f"There is no model.onnx in {self._folder}; opinions.nli_model names its folder.")
            try:
                labels = json.loads((self._folder / "config.json").read_text(encoding="utf-8"))["id2label"]
                self._order = order_of(labels)
                tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise Unprocessable(
                    f"The model in {self._folder} cannot be used: it needs tokenizer.json and a config.json whose"
                    " id2label names entailment, contradiction and neutral."
                ) from error
            tokenizer.enable_truncation(MAX_TOKENS)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            options.log_severity_level = 3
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            self._tokenizer = tokenizer


def order_of(labels: dict[str, str]) -> tuple[int, int, int]:
    """Places of entailment, contradiction and neutral among a model's classes. Raises `KeyError` for one it lacks.

    A model with two classes (entailment, not entailment) cannot tell a contradiction, and is refused.
    """
    places = {name.casefold(): int(place) for place, name in labels.items()}
    e, c, n = (places[name] for name in _CLASSES)
    return e, c, n
