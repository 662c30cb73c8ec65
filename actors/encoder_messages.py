"""What crosses to and from the Encoder. Fields are bytes, numbers, strings and tuples of them: msgpack packs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recalld.actors.embedding import Embedded
from recalld.storage.quantise import pack_rows

__all__ = ["EmbedQuery", "EmbedTexts", "EmbeddedTexts", "ModelDescription", "ModelInfo"]


@dataclass(frozen=True, slots=True)
class EmbedTexts:
    """Embed each text behind its `before` ("" for none) with its date (YYYY-MM-DD or ""); parallel tuples.

    `befores` and `dates` may be empty, which means "" for every text.
    """

    texts: tuple[str, ...]
    befores: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """The answer, in the order of the texts. For text i: `vectors[i]` int8 [windows, dim] in C order with float32
    `scales[i]` [windows]; `token_vectors[i]` int8 [n, 64] with uint32 `token_ids[i]` [n]; all little-endian."""

    dim: int
    vectors: tuple[bytes, ...]
    scales: tuple[bytes, ...]
    token_vectors: tuple[bytes, ...]
    token_ids: tuple[bytes, ...]
    tokens: tuple[int, ...]
    windows: tuple[int, ...]

    @classmethod
    def of(cls, dim: int, texts: list[Embedded]) -> EmbeddedTexts:
        """Packs embedded texts."""
        rows = [pack_rows(text.vectors) for text in texts]
        return cls(
            dim=dim,
            vectors=tuple(vectors for vectors, _ in rows),
            scales=tuple(scales for _, scales in rows),
            token_vectors=tuple(text.token_vectors.tobytes() for text in texts),
            token_ids=tuple(text.token_ids.astype("<u4").tobytes() for text in texts),
            tokens=tuple(text.tokens for text in texts),
            windows=tuple(text.windows for text in texts),
        )


@dataclass(frozen=True, slots=True)
class EmbedQuery:
    """Embed a query that is asked outside the gateway. Answer: `pack_query` of it, the fields of a recall."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Which model does the Encoder run, and on what?"""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """The answer: `ModelIdentity.to_plain()`, ONNX providers in order, worker threads, a warning ("" for none)."""

    identity: dict[str, Any]
    providers: tuple[str, ...]
    threads: int
    date_suffix: bool
    warning: str = ""
