"""A unit's entities and stored links as one packed value: u16 entities, u16 links, then the arrays."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recalld.storage.records import LINK_NAMES

MAX_OF_A_KIND = 20
_HEAD = Struct("<HH")


class Edges(NamedTuple):
    """`others[i]` is linked by `kinds[i]` (see `LINK_NAMES`) with `weights[i]` in (0, 1]."""

    entities: NDArray[np.uint32]
    others: NDArray[np.uint32]
    kinds: NDArray[np.uint8]
    weights: NDArray[np.float32]


NONE = Edges(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint8), np.empty(0, np.float32))


def encode(edges: Edges) -> bytes:
    return b"".join(
        (
            _HEAD.pack(len(edges.entities), len(edges.others)),
            edges.entities.astype("<u4").tobytes(),
            edges.others.astype("<u4").tobytes(),
            edges.weights.astype("<f4").tobytes(),
            edges.kinds.astype("u1").tobytes(),
        )
    )


def decode(data: bytes | memoryview) -> Edges:
    """The edges of a value, as read-only arrays over one copy of it."""
    held = bytes(data)
    entities, links = _HEAD.unpack_from(held)
    if not links:
        return NONE._replace(entities=np.frombuffer(held, "<u4", entities, 4))
    at = 4 + 4 * entities
    return Edges(
        np.frombuffer(held, "<u4", entities, 4),
        np.frombuffer(held, "<u4", links, at),
        np.frombuffer(held, "u1", links, at + 8 * links),
        np.frombuffer(held, "<f4", links, at + 4 * links),
    )


def with_links(edges: Edges, others: list[int], kind: int, weights: list[float]) -> Edges:
    """The edges with further links of one kind; of a kind the `MAX_OF_A_KIND` heaviest stay."""
    merged = {int(o): float(w) for o, k, w in zip(edges.others, edges.kinds, edges.weights, strict=True) if k == kind}
    merged.update(zip(others, weights, strict=True))
    best = sorted(merged.items(), key=lambda pair: (-pair[1], -pair[0]))[:MAX_OF_A_KIND]
    rest = edges.kinds != kind
    return Edges(
        edges.entities,
        np.concatenate([edges.others[rest], np.array([o for o, _ in best], np.uint32)]),
        np.concatenate([edges.kinds[rest], np.full(len(best), kind, np.uint8)]),
        np.concatenate([edges.weights[rest], np.array([w for _, w in best], np.float32)]),
    )


def without(edges: Edges, gone: set[int]) -> Edges:
    """The edges with no link to a unit in `gone`."""
    keep = ~np.isin(edges.others, list(gone))
    return Edges(edges.entities, edges.others[keep], edges.kinds[keep], edges.weights[keep])


def without_kind(edges: Edges, other: int, kind: int) -> Edges:
    """The edges with no link of one kind to one unit."""
    keep = (edges.others != other) | (edges.kinds != kind)
    return Edges(edges.entities, edges.others[keep], edges.kinds[keep], edges.weights[keep])


def count_kinds(edges: Edges) -> dict[str, int]:
    """Links by name of their kind; one that points one way counts where it starts."""
    kinds, counts = np.unique(edges.kinds, return_counts=True)
    return {LINK_NAMES[int(k)]: int(c) for k, c in zip(kinds, counts, strict=True) if int(k) in LINK_NAMES}
