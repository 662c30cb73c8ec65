"""Promises of the rewriting of quantised weights: the same vectors to the bit, and no file made worse."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recalld.actors.models import find_model
from recalld.actors.signed_weights import pays, with_signed_weights

MODEL = find_model("default").model.read_bytes()
SIGNED = with_signed_weights(MODEL)


def hidden(model: bytes, length: int, seed: int) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    ids = np.random.default_rng(seed).integers(1000, 25_000, (1, length))
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return np.asarray(session.run(["last_hidden_state"], feed)[0])


def test_default_model_is_rewritten_and_loads() -> None:
    assert SIGNED is not MODEL and len(SIGNED) < len(MODEL)
    assert hidden(SIGNED, 12, 0).shape == (1, 12, 384)


@pytest.mark.skipif(not pays(), reason="without VNNI the runtime's signed kernel may saturate, and none is used")
@pytest.mark.parametrize("length", [2, 17, 120])
def test_signed_weights_give_the_same_bits(length: int) -> None:
    assert np.array_equal(hidden(MODEL, length, length), hidden(SIGNED, length, length))


def test_rewritten_model_is_not_rewritten_again() -> None:
    assert with_signed_weights(SIGNED) is SIGNED


@given(st.binary(max_size=200))
def test_bytes_that_are_no_model_come_back_as_they_are(junk: bytes) -> None:
    assert with_signed_weights(junk) is junk


@pytest.mark.parametrize("cut", [1, 1000, len(MODEL) // 2, len(MODEL) - 1])
def test_damaged_model_comes_back_as_it_is(cut: int) -> None:
    damaged = MODEL[:cut]
    assert with_signed_weights(damaged) is damaged
