"""Late interaction: each query token meets the unit's best token, weighted by how rare the query token is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import AnyInts, Floats, Snapshot


class LateQuery(NamedTuple):
    """The query tokens that take part: unit vectors float32[q, 64] and weights float32[q] that sum to 1."""

    vectors: Floats
    weights: Floats


def token_weights(counts: AnyInts, units: int, priors: Floats, prior_units: float) -> Floats:
    """idf of each query token, float32[q]: `ln(1 + N / (1 + df))`.

    The model's prior (the share of texts that hold the token) counts as that many further units, so that a bank of
    three units ranks sensibly; as the bank grows its own counts take over. A prior of 1 or more marks a token that
    says nothing, such as the model's unknown token: no weight.
    """
    df, total = counts.astype(np.float64), float(units)
    if len(priors) == len(df) and np.any(priors > 0):
        df = df + prior_units * np.clip(priors, 0.0, 1.0)
        total += prior_units
    weights = np.log(1.0 + total / (1.0 + df))
    if len(priors) == len(df):
        weights[priors >= 1.0] = 0.0
    return weights.astype(np.float32)


def late_query(snap: Snapshot, query: RecallQuery, units: int, settings: RecallSettings) -> LateQuery | None:
    """The query's tokens with their weights in this bank; None when no token carries any."""
    count = len(query.token_ids)
    if count == 0 or len(query.token_vectors) == 0:
        return None
    vectors = np.frombuffer(query.token_vectors, np.float32).reshape(count, -1)
    priors = np.frombuffer(query.token_priors, np.float32)
    weights = token_weights(snap.token_df(query.token_ids), units, priors, settings.prior_units)
    weights = np.where(vectors.any(axis=1), weights, 0.0)
    keep = np.flatnonzero(weights > 0)
    if len(keep) > settings.late_tokens:
        # A pasted page has hundreds of tokens: the rarest carry the meaning, and the product stays small.
        keep = np.sort(keep[np.argsort(-weights[keep], kind="stable")[: settings.late_tokens]])
    if len(keep) == 0:
        return None
    chosen = weights[keep].astype(np.float32)
    return LateQuery(np.ascontiguousarray(vectors[keep]), chosen / chosen.sum())


def maxsim(snap: Snapshot, late: LateQuery | None, uids: AnyInts) -> Floats:
    """float32[m] between 0 and 1: how well each unit's tokens answer the query's."""
    if late is None or len(uids) == 0:
        return np.zeros(len(uids), np.float32)
    return np.clip(snap.maxsim(uids, late.vectors, late.weights), 0.0, 1.0)
