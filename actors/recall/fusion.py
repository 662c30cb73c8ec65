"""Reciprocal rank fusion of the arms, and the candidate list made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from recalld.actors.recall.arms import Hits, distinct
from recalld.actors.recall.snapshot import AnyInts, Bools, Columns, Floats, Ints


class Fused(NamedTuple):
    """Units of all arms, best first, with their fused scores."""

    uids: Ints
    scores: Floats


def fuse(arms: Mapping[str, Hits], k: int, weights: Mapping[str, float] | None = None) -> Fused:
    """Sum over arms of weight / (k + rank), ranks from 1; equal sums stand in uid order."""
    lists = [(hits.uids, (weights or {}).get(name, 1.0)) for name, hits in arms.items() if len(hits.uids)]
    if not lists:
        return Fused(np.empty(0, np.int64), np.empty(0, np.float32))
    uids = np.concatenate([found for found, _ in lists])
    shares = np.concatenate([weight / (k + np.arange(1, len(found) + 1)) for found, weight in lists])
    once, at = np.unique(uids, return_inverse=True)
    scores = np.bincount(at, weights=shares, minlength=len(once)).astype(np.float32)
    order = np.argsort(-scores, kind="stable")
    return Fused(once[order], scores[order])


def candidates(fused: Fused, columns: Columns, allowed: Bools, limit: int, heads: int) -> Ints:
    """uids to be scored, ascending: the best `limit` of the fused list, and the allowed neighbours, one and two away in
    the thread, of the best `heads`."""
    kept = fused.uids[:limit]
    near = around(columns, kept[:heads])
    near = near[near >= 0]
    return distinct(np.concatenate([kept, near[allowed[near]]]))


def around(columns: Columns, uids: AnyInts) -> Ints:
    """int64[4, m]: the units one before, one after, two before and two after in the thread; -1 where there is none."""
    before, after = step(columns.prev, uids), step(columns.next, uids)
    return np.stack([before, after, step(columns.prev, before), step(columns.next, after)])


def step(column: AnyInts, uids: AnyInts) -> Ints:
    """The column's value at each uid, -1 where the uid itself is -1 or the value lies beyond the snapshot."""
    found = column[uids]
    return np.where((uids >= 0) & (found < len(column)), found, -1).astype(np.int64)
