"""The final score: a linear sum of named features, so that every place in the ranking can be explained, and boosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from recalld.actors.recall.arms import Keyword, Term
from recalld.actors.recall.fusion import around
from recalld.actors.recall.late import LateQuery, maxsim
from recalld.actors.recall.settings import RankWeights, RecallSettings
from recalld.actors.recall.snapshot import AnyInts, Bools, Columns, Floats, Ints, Snapshot
from recalld.actors.recall.temporal import spans
from recalld.storage.records import OBSERVATION, UNKNOWN

_DAY = 86_400_000_000.0
_COARSE_DAYS = 27.0


class Reranker(Protocol):
    """A cross-encoder: scores in 0..1 for pairs of the query and each text. None ships; a caller may bring one."""

    def score(self, query: str, texts: Sequence[str]) -> Floats: ...


class Features(NamedTuple):
    """What is known of each candidate, float32[m] each, between 0 and 1. The names are those of `RankWeights`."""

    maxsim: Floats
    cosine: Floats
    keyword: Floats
    window_keyword: Floats
    thread_keyword: Floats
    speaker: Floats
    near1: Floats
    near2: Floats
    near_keyword: Floats
    answers: Floats
    question: Floats


class Boosts(NamedTuple):
    """Multipliers of the score, float32[m] each, close to 1."""

    recency: Floats
    temporal: Floats
    proof: Floats

    def product(self) -> Floats:
        return self.recency * self.temporal * self.proof


def features(
    snap: Snapshot,
    uids: Ints,
    vector: Floats,
    late: LateQuery | None,
    keyword: Keyword,
    speakers: Sequence[int],
    allowed: Bools,
    settings: RecallSettings,
) -> Features:
    """Features of the candidates (`uids` ascending). A neighbour that is filtered out or no candidate lends nothing."""
    columns = snap.columns
    own = maxsim(snap, late, uids)
    near = around(columns, uids)
    near[(near >= 0) & ~allowed[near]] = -1
    place = np.minimum(np.searchsorted(uids, near), len(uids) - 1)
    lent = np.where(uids[place] == near, own[place], np.float32(0.0))
    peak = float(keyword.hits.scores[0]) if len(keyword.hits.scores) else 0.0
    scale = np.float32(1.0 / peak) if peak > 0 else np.float32(0.0)
    bm25 = keyword.dense[uids] * scale
    beside = np.where(near[:2] >= 0, keyword.dense[near[:2]] * scale, np.float32(0.0))
    return Features(
        maxsim=own,
        cosine=np.maximum(snap.cosine(uids, vector), 0.0).astype(np.float32),
        keyword=bm25,
        window_keyword=_peaked(bm25 + beside[0] + beside[1]),
        thread_keyword=_thread_keyword(snap, uids, keyword.terms, allowed, settings),
        speaker=np.isin(columns.speaker[uids], np.asarray(speakers, np.int64)).astype(np.float32)
        if len(speakers)
        else np.zeros(len(uids), np.float32),
        near1=np.maximum(lent[0], lent[1]),
        near2=np.maximum(lent[2], lent[3]),
        near_keyword=np.maximum(beside[0], beside[1]),
        answers=np.where((near[0] >= 0) & columns.question[near[0]], lent[0], np.float32(0.0)),
        question=columns.question[uids].astype(np.float32),
    )


def _peaked(scores: Floats) -> Floats:
    peak = float(scores.max()) if len(scores) else 0.0
    return scores / np.float32(peak) if peak > 0 else scores


def _thread_keyword(
    snap: Snapshot, uids: Ints, terms: Sequence[Term], allowed: Bools, settings: RecallSettings
) -> Floats:
    """BM25 of each candidate's whole thread, peak 1, made from the units' own postings; 0 for a unit without thread."""
    if not terms:
        return np.zeros(len(uids), np.float32)
    columns = snap.columns
    threads = columns.thread
    if allowed is snap.without_echoes():
        length = snap.thread_lengths()
    else:
        # Floats, because bincount casts whole numbers itself, four times slower.
        length = np.bincount(threads, weights=columns.length.astype(np.float32) * allowed, minlength=1)
        length[0] = 0.0
    size = len(length)
    count = int(np.count_nonzero(length))
    if count == 0:
        return np.zeros(len(uids), np.float32)
    mine = threads[uids]
    k1, b = settings.bm25_k1, settings.bm25_b
    norm = k1 * (1.0 - b + b * length[mine] / (length.sum() / count))
    score = np.zeros(len(uids), np.float64)
    for term in terms:
        frequency = np.bincount(threads[term.uids], weights=term.frequencies, minlength=size)
        frequency[0] = 0.0
        df = int(np.count_nonzero(frequency))
        tf = frequency[mine]
        score += np.log(1.0 + (count - df + 0.5) / (df + 0.5)) * tf * (k1 + 1.0) / (tf + norm)
    return _peaked(score.astype(np.float32))


def blended(weights: RankWeights, unknown_share: float) -> RankWeights:
    """The weights for a query of whose tokens the model does not know this share (0..1).

    What the model cannot read it cannot score: its features fade, and the keyword features take their weight over.
    """
    lost = min(max(unknown_share, 0.0), 1.0)
    if lost == 0.0:
        return weights
    kept = 1.0 - lost
    return RankWeights(
        maxsim=weights.maxsim * kept,
        cosine=weights.cosine * kept,
        keyword=weights.keyword + lost * (weights.maxsim + weights.cosine),
        window_keyword=weights.window_keyword,
        thread_keyword=weights.thread_keyword,
        speaker=weights.speaker,
        near1=weights.near1 * kept,
        near2=weights.near2 * kept,
        near_keyword=weights.near_keyword + lost * 0.5 * weights.near1,
        answers=weights.answers * kept,
        question=weights.question,
    )


def score(found: Features, weights: RankWeights) -> Floats:
    """float32[m] between 0 and 1: the weighted sum as a share of the most it could be."""
    total = np.zeros(len(found.maxsim), np.float32)
    most = 0.0
    for name, values in found._asdict().items():
        weight = float(getattr(weights, name))
        total += np.float32(weight) * values
        most += max(weight, 0.0)
    out: Floats = np.clip(total / np.float32(most or 1.0), 0.0, 1.0)
    return out


def boosts(columns: Columns, uids: Ints, now: int, window: tuple[int, int] | None, settings: RecallSettings) -> Boosts:
    """Multipliers `1 + alpha * (signal - 0.5)`; a unit the signal says nothing about is multiplied by 1."""
    recency = _multiplier(_recency(columns, uids, now, settings), settings.recency_alpha)
    if window is None:
        temporal = np.ones(len(uids), np.float32)
    else:
        temporal = _multiplier(_in_window(columns, uids, window, settings), settings.temporal_alpha)
    proof = columns.proof[uids].astype(np.float64)
    signal = np.clip(0.5 + np.log(np.maximum(proof, 1.0)) / 10.0, 0.0, 1.0)
    signal[columns.network[uids] != OBSERVATION] = 0.5
    return Boosts(recency, temporal, _multiplier(signal, settings.proof_alpha))


def _in_window(columns: Columns, uids: Ints, window: tuple[int, int], settings: RecallSettings) -> Floats:
    """1 for a unit whose time meets the window, wherever in it; 0.5 without a date, 0 outside.

    Things are told on the day or some time after: a unit dated only by when it was said still counts, less and less,
    when that was within as much time behind the window as the window is long (or the settings' days).
    """
    begin, end = min(window), max(window)
    first, last = spans(columns, uids)
    inside = (first <= end) & (last >= begin)
    slack = max(float(end) - float(begin), settings.told_days * _DAY)
    late = (first.astype(np.float64) - float(end)) / slack
    told = (columns.occurred_start[uids] == UNKNOWN) & (columns.occurred_end[uids] == UNKNOWN) & (late > 0.0)
    signal = np.where(inside, 1.0, np.where(told, settings.told_share * np.maximum(0.0, 1.0 - late), 0.0))
    signal[first == UNKNOWN] = 0.5
    return signal.astype(np.float32)


def _recency(columns: Columns, uids: Ints, now: int, settings: RecallSettings) -> Floats:
    """1 today, falling in a line to 0.1 over the settings' days; 0.5 without a date.

    A whole month or year says little about the day: it counts from its end and never for more than 0.5.
    """
    first, last = spans(columns, uids)
    coarse = (last.astype(np.float64) - first.astype(np.float64)) >= _COARSE_DAYS * _DAY
    at = np.where(coarse, last, first)
    days = np.maximum(0.0, (float(now) - at.astype(np.float64)) / _DAY)
    signal = np.maximum(0.1, 1.0 - days / settings.recency_days)
    signal[coarse] = np.minimum(signal[coarse], 0.5)
    signal[first == UNKNOWN] = 0.5
    return signal.astype(np.float32)


def _multiplier(signal: AnyInts, alpha: float) -> Floats:
    return (1.0 + alpha * (signal - 0.5)).astype(np.float32)
