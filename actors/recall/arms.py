"""The semantic and the keyword arm. Each turns a snapshot into ranked hits; neither loops over candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import Bools, Floats, Ints, Snapshot

_NO_UIDS: Ints = np.empty(0, np.int64)
_NO_SCORES: Floats = np.empty(0, np.float32)


class Hits(NamedTuple):
    """What one arm found, best first: uids int64[m] and the arm's own scores float32[m]."""

    uids: Ints
    scores: Floats

    @classmethod
    def none(cls) -> Hits:
        return cls(_NO_UIDS, _NO_SCORES)


class Term(NamedTuple):
    """One query term as the allowed units hold it: uids, frequencies and its inverse document frequency."""

    term: str
    uids: Ints
    frequencies: Floats
    idf: float


class Keyword(NamedTuple):
    """The keyword arm's hits, the BM25 score of every unit (float32[n], 0 where no term occurs) and the terms used."""

    hits: Hits
    dense: Floats
    terms: list[Term]


def semantic(snap: Snapshot, vector: Floats, k: int, allowed: Bools, floor: float) -> Hits:
    """Units by cosine, none below `floor`."""
    if not vector.any():
        return Hits.none()
    uids, scores = snap.semantic(vector, k, allowed, floor)
    keep = allowed[uids]
    return Hits(uids[keep].astype(np.int64), scores[keep].astype(np.float32))


def keyword(
    snap: Snapshot, terms: Sequence[str], k: int, allowed: Bools, settings: RecallSettings, floor: float = 0.0
) -> Keyword:
    """Units by BM25 over the most selective query terms; `floor` is a least raw score, inclusive.

    Document frequencies are counted among the allowed units, so what a filter hides cannot shift the ranking.
    """
    dense = np.zeros(snap.n, np.float32)
    size = int(np.count_nonzero(allowed))
    chosen = _selective(snap, terms, allowed, size, settings) if size else []
    if not chosen:
        return Keyword(Hits.none(), dense, [])
    length = snap.columns.length
    mean = max(1e-6, float(np.dot(length, allowed)) / size)
    k1, b = settings.bm25_k1, settings.bm25_b
    most: list[float] = []
    for term in chosen:
        norm = (k1 * b / mean) * length[term.uids].astype(np.float32) + np.float32(k1 * (1.0 - b))
        norm += term.frequencies
        share = np.float32(term.idf * (k1 + 1.0)) * term.frequencies / norm
        dense[term.uids] += share
        most.append(float(share.max()))
    touched = _touched(chosen, most, dense, k)
    scores = dense[touched]
    if floor > 0:
        touched, scores = touched[scores >= floor], scores[scores >= floor]
    best = top(scores, k)
    return Keyword(Hits(touched[best], scores[best]), dense, chosen)


def distinct(numbers: Ints) -> Ints:
    """The numbers ascending, each once. `np.unique` hashes them first and takes four times as long."""
    ordered = np.sort(numbers)
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    once: Ints = ordered[fresh]
    return once


def top(scores: Floats, k: int) -> Ints:
    """Indices of the k greatest scores, best first; equal scores keep their order."""
    if len(scores) > k:
        # The k-th value first, then all that reach it: a plain argpartition breaks ties at random.
        cut = np.partition(scores, len(scores) - k)[len(scores) - k]
        near = np.flatnonzero(scores >= cut)
        return near[np.argsort(-scores[near], kind="stable")[:k]]
    return np.argsort(-scores, kind="stable")


def _touched(chosen: Sequence[Term], most: Sequence[float], dense: Floats, k: int) -> Ints:
    """Units that can be among the k best, ascending.

    `most` is the greatest share each term gives any unit. Once k units that hold a rare term score at least what the
    common terms can add up to, units with common terms alone need not be sorted: most of a large bank, usually.
    """
    # A mask gathers the units in one pass; sorting them, as `np.unique` does, costs five times the rest of this arm.
    seen = np.zeros(len(dense), np.bool_)
    held = 0
    for rare in range(1, len(chosen)):
        seen[chosen[rare - 1].uids] = True
        held += len(chosen[rare - 1].uids)
        if held < k:
            continue
        uids = np.flatnonzero(seen)
        if len(uids) * 4 > len(dense):
            break
        if len(uids) >= k and float(np.partition(dense[uids], len(uids) - k)[len(uids) - k]) >= sum(most[rare:]):
            return uids
    # Through a mask: numpy finds the true of a mask ten times faster than the non-zero of floats.
    return np.flatnonzero(dense > 0)


def _selective(snap: Snapshot, terms: Sequence[str], allowed: Bools, size: int, settings: RecallSettings) -> list[Term]:
    """The terms that some allowed unit holds, rarest first, cut to the settings' number.

    Of a very long query only some terms are looked up at all, so that the number of reads stays bounded whatever was
    pasted into it: half of them are its first, half the longest of the rest, since length stands in for rarity.
    """
    distinct = list(dict.fromkeys(terms))
    if len(distinct) > settings.probed_terms:
        half = settings.probed_terms // 2
        distinct = distinct[:half] + sorted(distinct[half:], key=len, reverse=True)[:half]
    found = []
    everything = size == snap.n
    for term in distinct:
        held, frequencies = snap.postings(term)
        # Indexing converts to intp each time it is done with anything else, and it is done four times.
        uids = held.astype(np.intp)
        if not everything:
            keep = allowed[uids]
            uids, frequencies = uids[keep], frequencies[keep]
        df = len(uids)
        if df == 0:
            continue
        idf = float(np.log(1.0 + (size - df + 0.5) / (df + 0.5)))
        found.append(Term(term, uids, frequencies.astype(np.float32), idf))
    found.sort(key=lambda term: -term.idf)
    return found[: settings.query_terms]
