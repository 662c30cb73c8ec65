"""Texts and queries as vectors: one pooled vector a window, and one small vector a token for late interaction.

A text is embedded behind the text before it (`before`) and, if switched on, in front of its date: the pooled vector
covers all of it, the token vectors kept are the text's own. One ONNX run takes one window alone: the default model is
quantised dynamically, so company in a batch would change a vector (by up to .36), and several Python threads with one
window each are as fast as batches.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Encoding, Tokenizer

from recalld.actors import signed_weights
from recalld.actors.core_gate import CoreGate
from recalld.actors.models import ModelFiles, ModelIdentity, file_sha256, resolve_device
from recalld.actors.vocabulary import Vocabulary
from recalld.actors.windows import Window, plan
from recalld.storage.errors import ModelUnusable
from recalld.storage.quantise import quantise_unit, unit_rows

F32: TypeAlias = npt.NDArray[np.float32]
I8: TypeAlias = npt.NDArray[np.int8]
U32: TypeAlias = npt.NDArray[np.uint32]
I64: TypeAlias = npt.NDArray[np.int64]

__all__ = ["TOKEN_DIM", "Embedded", "Embedder", "QueryEmbedding", "pack_query", "projection"]

_Array = TypeVar("_Array", bound=npt.NDArray[Any])

TOKEN_DIM = 64
MAX_QUERY_TOKENS = 512
_MAX_QUERY_CHARACTERS = 20_000
_BLAS_ALONE = 2**18  # multiply-adds
_LARGEST_REWRITTEN = 2**29  # bytes; a larger file is not read into memory twice
_LEAST_OWN = 48  # a window keeps room for at least this many tokens of text and date
_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text's vectors: `vectors` f32[windows, dim] unit rows; `token_vectors` i8[n, 64] (127 = 1.0) and `token_ids`
    u32[n] of its own tokens that carry meaning; `tokens` counts all its own tokens."""

    vectors: F32
    token_vectors: I8
    token_ids: U32
    tokens: int
    windows: int


@dataclass(frozen=True, slots=True)
class QueryEmbedding:
    """A query's vectors: `vector` f32[dim] and `token_vectors` f32[q, 64] of unit length, `token_ids` u32[q] and
    `token_priors` f32[q]; tokens without meaning for the model are left out, so q may be 0. `unknown_share` is the
    share (0 to 1) of the query's characters, spaces and punctuation aside, that the model cannot read."""

    vector: F32
    token_vectors: F32
    token_ids: U32
    token_priors: F32
    unknown_share: float


def pack_query(query: QueryEmbedding) -> dict[str, Any]:
    """The fields of a recall message that come from a query's embedding: bytes, ints and a float."""
    return {
        "vector": query.vector.astype("<f4").tobytes(),
        "token_vectors": query.token_vectors.astype("<f4").tobytes(),
        "token_ids": tuple(query.token_ids.tolist()),
        "token_priors": query.token_priors.astype("<f4").tobytes(),
        "unknown_share": query.unknown_share,
    }


def projection(dim: int) -> tuple[F32, str]:
    """(the fixed orthonormal matrix f32[dim, 64] that cuts token vectors, its name).

    Drawn from a seed, so that every machine has the same one without a file. The name ends in a checksum of coarse
    values: should a future numpy draw other numbers, stored vectors are refused instead of compared wrongly.
    """
    if dim < TOKEN_DIM:
        raise ModelUnusable(f"The embedding model has {dim} dimensions; at least {TOKEN_DIM} are needed.")
    matrix = np.linalg.qr(np.random.default_rng(0).normal(size=(dim, dim)))[0][:, :TOKEN_DIM].astype(np.float32)
    coarse = np.rint(matrix[:4].astype(np.float64) * 50).astype(np.int8)
    return matrix, f"orthonormal-{TOKEN_DIM}-seed0-{hashlib.sha256(coarse.tobytes()).hexdigest()[:8]}"


class Embedder:
    """One loaded embedding model. Thread-safe; the threads that call it do the work, one ONNX thread each.

    `date_suffix` lets `embed_text` put the date behind the text. Off by default: on five conversations with session
    dates the ranking found the same evidence with and without (recall@10 .812 on three, .857 on two) and cosine alone
    lost .012 to .019. `gate`, when several callers share the cores, keeps one free for queries. `warning` says what
    was not as asked (None when all is well). Raises `ModelUnusable`.
    """

    def __init__(
        self,
        files: ModelFiles,
        *,
        device: str = "auto",
        force_cpu: bool = False,
        date_suffix: bool = False,
        gate: CoreGate | None = None,
    ) -> None:
        self.date_suffix = date_suffix
        self.gate = gate or CoreGate()
        providers, self.warning = resolve_device(device, force_cpu=force_cpu)
        self._session = _open_session(files, providers)
        self.providers: tuple[str, ...] = tuple(self._session.get_providers())
        if self.providers[0] != providers[0]:
            self.warning = (
                f"The ONNX provider {providers[0]} is installed but could not start (driver or libraries missing?); "
                "using the CPU."
            )
        self._run_lock = None if self.providers[0] == "CPUExecutionProvider" else threading.Lock()
        self._inputs = _check_inputs(files, self._session)
        self._output = _token_output(files, self._session)
        self._tokenizer = _open_tokenizer(files)
        self.vocabulary = Vocabulary(self._tokenizer)
        self._head, self._tail = _marks(self._tokenizer)
        self._pooling, self._max_tokens = files.pooling, files.max_tokens
        self._query_head = self._head + self._ids(files.query_prefix)
        self._passage_head = self._head + self._ids(files.passage_prefix)
        if self._capacity(max(self._query_head, self._passage_head, key=len), self._tail) < _LEAST_OWN:
            raise ModelUnusable(
                f"The prefixes set for the embedding model '{files.name}' leave no room for text in its window of "
                f"{files.max_tokens} tokens. Shorten them."
            )
        self.dim = int(self._hidden(self._head + self._tail).shape[1])
        self._projection, projection_id = projection(self.dim)
        self.identity = ModelIdentity(
            name=files.name,
            sha256=files.sha256(),
            tokenizer=file_sha256(files.tokenizer),
            dim=self.dim,
            pooling=files.pooling,
            projection=projection_id,
            max_tokens=files.max_tokens,
            query_prefix=files.query_prefix,
            passage_prefix=files.passage_prefix,
        )

    def embed_text(self, text: str, before: str = "", date: str = "") -> Embedded:
        """The vectors of `text` behind `before`; `date` is YYYY-MM-DD or "".

        A text beyond the window is embedded in overlapping windows, one row each. `before` gives way from its front
        so that the text stays whole where it can. The date's and `before`'s tokens have no token vectors.
        """
        own, context = self._ids(text), self._ids(before) if before else []
        tail = (self._ids(f"[date: {date}]") if date and self.date_suffix else []) + self._tail
        windows = plan(len(own), len(context), self._capacity(self._passage_head, tail))
        pooled, parts = [], []
        for window in windows:
            with self.gate.text():
                vector, tokens = self._window(self._passage_head, context, own, tail, window)
            pooled.append(vector)
            parts.append(tokens)
        ids = np.asarray(own, dtype=np.int64)
        readable = self.vocabulary.readable(ids)
        vectors = self._cut(np.concatenate(parts)[readable])
        return Embedded(
            unit_rows(np.stack(pooled)), quantise_unit(vectors), ids[readable].astype(np.uint32), len(own), len(windows)
        )

    def embed_query(self, text: str) -> QueryEmbedding:
        """The vectors of a query. Its first 512 tokens count; beyond one window `vector` is the windows' mean."""
        clean = _clean(text[:_MAX_QUERY_CHARACTERS])
        encoding = self._tokenizer.encode(clean, add_special_tokens=False)
        own = encoding.ids[:MAX_QUERY_TOKENS]
        pooled, parts = [], []
        with self.gate.query():
            for window in plan(len(own), 0, self._capacity(self._query_head, self._tail)):
                vector, tokens = self._window(self._query_head, [], own, self._tail, window)
                pooled.append(vector)
                parts.append(tokens)
        ids = np.asarray(own, dtype=np.int64)
        readable = self.vocabulary.readable(ids)
        heavy = ids[readable]
        return QueryEmbedding(
            vector=_frozen(unit_rows(unit_rows(np.stack(pooled)).mean(axis=0))),
            token_vectors=_frozen(self._cut(np.concatenate(parts)[readable])),
            token_ids=_frozen(heavy.astype(np.uint32)),
            token_priors=_frozen(self.vocabulary.prior_share(heavy)),
            unknown_share=_unknown_share(clean, encoding, self.vocabulary.is_weightless(ids)),
        )

    def count_tokens(self, text: str) -> int:
        """Tokens of a text by this model's tokenizer, special tokens not counted."""
        return len(self._ids(text))

    def token_prior(self, token_ids: Sequence[int] | npt.NDArray[np.integer[Any]]) -> F32:
        """f32[n]: the share of units expected to contain each token, before a bank has counts of its own."""
        return self.vocabulary.prior_share(np.asarray(token_ids, dtype=np.int64))

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(_clean(text), add_special_tokens=False).ids) if text else []

    def _capacity(self, head: list[int], tail: list[int]) -> int:
        return self._max_tokens - len(head) - len(tail)

    def _window(
        self, head: list[int], context: list[int], own: list[int], tail: list[int], window: Window
    ) -> tuple[F32, F32]:
        """(pooled f32[dim], f32[n, dim] of the own tokens this window keeps) from one pass."""
        front = head + context[window.context_from :]
        hidden = self._hidden(front + own[window.start : window.stop] + tail)
        shift = len(front) - window.start
        kept = hidden[window.keep_from + shift : window.keep_to + shift]
        if self._pooling == "cls":
            return hidden[0], kept
        return (hidden[-1] if self._pooling == "last" else hidden.mean(axis=0)), kept

    def _hidden(self, ids: list[int]) -> F32:
        """f32[n, dim]: the model's last hidden state for these token ids, run alone."""
        row = np.asarray([ids], dtype=np.int64)
        feed = {"input_ids": row}
        if "attention_mask" in self._inputs:
            feed["attention_mask"] = np.ones_like(row)
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(row)
        if "position_ids" in self._inputs:
            feed["position_ids"] = np.arange(row.shape[1], dtype=np.int64)[None]
        if self._run_lock is None:
            output = self._session.run([self._output], feed)[0]
        else:
            with self._run_lock:  # GPU providers do not promise concurrent runs of one session
                output = self._session.run([self._output], feed)[0]
        return np.asarray(output[0], dtype=np.float32)

    def _cut(self, rows: F32) -> F32:
        # In slices below the size from which BLAS brings in threads of its own: those fight with our threads over
        # the cores (70 tokens with two callers: 0.04 ms in slices, 0.1 to 0.5 ms in one product).
        step = max(1, _BLAS_ALONE // self._projection.size)
        parts = [rows[i : i + step] @ self._projection for i in range(0, len(rows), step)]
        return unit_rows(np.concatenate(parts)) if parts else np.zeros((0, TOKEN_DIM), dtype=np.float32)


def _frozen(array: _Array) -> _Array:
    array.flags.writeable = False  # queries are cached and shared
    return array


def _clean(text: str) -> str:
    """What is tokenised: compatibility forms folded (full-width letters are letters), lone surrogates replaced."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode("utf-8"))


def _unknown_share(text: str, encoding: Encoding, weightless: npt.NDArray[np.bool_]) -> float:
    if not weightless.any():
        return 0.0
    # Korean letters share their syllable's place, so places are counted, not tokens.
    unknown, known = set[int](), set[int]()
    for (start, stop), odd in zip(encoding.offsets, weightless.tolist(), strict=False):
        (unknown if odd else known).update(range(start, stop))
    unknown = {i for i in unknown if unicodedata.category(text[i])[0] not in "ZCP"}
    known = {i for i in known if unicodedata.category(text[i])[0] not in "ZCP"} - unknown
    return len(unknown) / max(1, len(unknown) + len(known))


def _open_session(files: ModelFiles, providers: list[str]) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(_model(files.model, providers), options, providers=providers)
    except Exception:  # the runtime raises a dozen unrelated classes here
        raise ModelUnusable(
            f"The ONNX file of the embedding model '{files.name}' cannot be loaded; it is incomplete, damaged, or "
            "needs a newer onnxruntime. Fetch or export it again."
        ) from None
    # It keeps a model given as bytes, to start again on another provider; ours are chosen already.
    session._model_bytes = None
    _give_back()
    return session


def _model(path: Path, providers: list[str]) -> str | bytes:
    """What the session is made of: the file, or its bytes with weights that this processor multiplies faster."""
    if providers[0] != "CPUExecutionProvider" or not signed_weights.pays() or path.stat().st_size > _LARGEST_REWRITTEN:
        return str(path)
    plain = path.read_bytes()
    signed = signed_weights.with_signed_weights(plain)
    return str(path) if signed is plain else signed


def _give_back() -> None:
    """Return what loading a model needed for a moment to the system; glibc alone would keep some 40 MB."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)


def _check_inputs(files: ModelFiles, session: Any) -> frozenset[str]:
    names = frozenset(node.name for node in session.get_inputs())
    if "input_ids" not in names or not names <= _INPUTS:
        raise ModelUnusable(
            f"The ONNX file of '{files.name}' takes the inputs {', '.join(sorted(names))}; an embedding model takes "
            f"input_ids and at most {', '.join(sorted(_INPUTS - {'input_ids'}))}. Export it for feature extraction."
        )
    return names


def _token_output(files: ModelFiles, session: Any) -> str:
    outputs: dict[str, int] = {node.name: len(node.shape or ()) for node in session.get_outputs()}
    for name in ("last_hidden_state", "token_embeddings"):
        if name in outputs:
            return name
    for name, rank in outputs.items():
        if rank == 3:
            return name
    raise ModelUnusable(
        f"The ONNX file of '{files.name}' gives no vector per token (last_hidden_state), which ranking needs. "
        "Export it for feature extraction, without the pooling layer."
    )


def _open_tokenizer(files: ModelFiles) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
    except Exception:  # the binding raises bare Exception
        raise ModelUnusable(
            f"The tokenizer.json of the embedding model '{files.name}' cannot be read. Fetch or save it again."
        ) from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a user's text is text, not a mark
    return tokenizer


def _marks(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The special tokens that the model expects in front of and behind a text."""
    encoding = tokenizer.encode("a")
    own = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    return encoding.ids[: own[0]], encoding.ids[own[-1] + 1 :]
