"""int8 rows: small, and as good as float32 for search."""

from __future__ import annotations

import numpy as np

from recalld.actors.embedding import Embedder
from recalld.storage.quantise import dequantise, pack_rows, quantise, unit_rows, unpack_rows


def test_values_come_back_within_half_a_step() -> None:
    rows = np.random.default_rng(1).normal(size=(20, 384)).astype(np.float32)
    codes, scales = quantise(rows)
    assert codes.dtype == np.int8 and scales.dtype == np.float32
    assert (np.abs(dequantise(codes, scales) - rows) <= scales[:, None] * 0.5001).all()


def test_zero_rows_and_no_rows_are_harmless() -> None:
    codes, scales = quantise(np.zeros((2, 8), np.float32))
    assert not codes.any() and not dequantise(codes, scales).any() and np.isfinite(unit_rows(codes)).all()
    assert quantise(np.zeros((0, 8), np.float32))[0].shape == (0, 8)


def test_packed_rows_come_back() -> None:
    rows = np.random.default_rng(2).normal(size=(3, 16)).astype(np.float32)
    codes, scales = unpack_rows(*pack_rows(rows))
    assert np.array_equal(codes, quantise(rows)[0]) and np.array_equal(scales, quantise(rows)[1])


def test_the_ranking_by_cosine_survives_int8(embedder: Embedder) -> None:
    nouns = ["bridge", "choir", "library", "tram", "budget", "garden", "violin", "passport", "river", "market"]
    verbs = ["repaired", "sold", "visited", "painted", "forgot"]
    texts = [f"My neighbour {verb} the {noun} last week." for noun in nouns for verb in verbs]
    exact = np.stack([embedder.embed_text(text).vectors[0] for text in texts])
    stored = unit_rows(quantise(exact)[0])
    for noun in nouns:
        query = embedder.embed_query(f"What happened to the {noun}?").vector
        best, kept = np.argsort(-(exact @ query))[:5], np.argsort(-(stored @ query))[:5]
        assert len(set(best) & set(kept)) >= 4
        assert np.abs(exact @ query - stored @ query).max() < 0.005
