"""The Encoder actor: order, fairness, errors, and cores left to queries."""

from __future__ import annotations

import asyncio
import threading
import time

import msgpack
import numpy as np
import pytest

from recalld.actors.core_gate import CoreGate
from recalld.actors.embedding import Embedder
from recalld.actors.encoder import Encoder, TextQueue
from recalld.actors.encoder_messages import EmbeddedTexts, EmbedTexts, ModelDescription, ModelInfo
from recalld.actors.models import ModelIdentity
from recalld.storage.errors import BadRequest
from recalld.storage.quantise import unit_rows, unpack_rows


async def test_answers_come_in_the_order_of_the_texts_and_equal_direct_embedding(embedder: Embedder) -> None:
    encoder = Encoder(lambda: embedder, threads=2)
    await encoder.start()
    texts = ("short", "a much longer text about the tram line in the city", "mid length text", "x " * 400)
    answer = await encoder.handle(EmbedTexts(texts, ("", "before", "", "")))
    assert isinstance(answer, EmbeddedTexts)
    for i, text in enumerate(texts):
        direct = embedder.embed_text(text, "before" if i == 1 else "")
        codes, scales = unpack_rows(answer.vectors[i], answer.scales[i])
        assert codes.shape == direct.vectors.shape and len(scales) == answer.windows[i] == direct.windows
        assert np.abs(unit_rows(codes) - direct.vectors).max() < 0.005
        assert answer.token_vectors[i] == direct.token_vectors.tobytes()
        assert np.array_equal(np.frombuffer(answer.token_ids[i], "<u4"), direct.token_ids)
        assert answer.tokens[i] == direct.tokens
    await encoder.stop()


async def test_messages_hold_only_what_msgpack_packs(embedder: Embedder) -> None:
    encoder = Encoder(lambda: embedder, threads=1)
    await encoder.start()
    for message in (EmbedTexts(("a",)), await encoder.handle(EmbedTexts(("a",))), await encoder.handle(ModelInfo())):
        fields = {name: getattr(message, name) for name in message.__slots__}
        assert msgpack.unpackb(msgpack.packb(fields), use_list=False, strict_map_key=False) == fields
    await encoder.stop()


async def test_the_model_is_described(embedder: Embedder) -> None:
    encoder = Encoder(lambda: embedder, threads=3)
    await encoder.start()
    answer = await encoder.handle(ModelInfo())
    assert isinstance(answer, ModelDescription)
    assert ModelIdentity.from_plain(answer.identity) == embedder.identity
    assert answer.threads == 3 and answer.providers[0] == "CPUExecutionProvider"
    await encoder.stop()


async def test_nothing_to_embed_and_uneven_requests(embedder: Embedder) -> None:
    encoder = Encoder(lambda: embedder, threads=1)
    await encoder.start()
    empty = await encoder.handle(EmbedTexts(()))
    assert isinstance(empty, EmbeddedTexts) and empty.vectors == ()
    with pytest.raises(BadRequest):
        await encoder.handle(EmbedTexts(("a", "b"), ("only one",)))
    with pytest.raises(BadRequest):
        await encoder.handle("hello")
    await encoder.stop()


async def test_one_text_does_not_queue_behind_a_bulk_load(embedder: Embedder) -> None:
    encoder = Encoder(lambda: embedder, threads=1)
    await encoder.start()
    bulk = asyncio.create_task(encoder.handle(EmbedTexts(tuple(f"bulk text number {i} " * 8 for i in range(150)))))
    await asyncio.sleep(0.05)
    await encoder.handle(EmbedTexts(("alone",)))
    assert not bulk.done()
    await bulk
    await encoder.stop()


async def test_a_cancelled_request_frees_its_waiting_texts(embedder: Embedder) -> None:
    encoder = Encoder(lambda: embedder, threads=1)
    await encoder.start()
    bulk = asyncio.create_task(encoder.handle(EmbedTexts(tuple(f"bulk {i} " * 100 for i in range(2000)))))
    await asyncio.sleep(0.05)
    bulk.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bulk
    started = time.perf_counter()
    await encoder.handle(EmbedTexts(("alone",)))
    await encoder.stop()
    assert time.perf_counter() - started < 3


def test_the_first_error_fails_its_request_and_no_other(embedder: Embedder) -> None:
    queue = TextQueue(1)

    def broken() -> object:
        raise ValueError("made to fail")

    def good() -> object:
        return embedder.embed_text("good")

    failing = queue.submit([good, broken, good], [1, 3, 2])  # type: ignore[list-item]
    fine = queue.submit([good], [1])  # type: ignore[list-item]
    with pytest.raises(ValueError):
        failing.result(10)
    assert len(fine.result(10)) == 1
    queue.close()


def test_a_core_stays_free_while_a_query_is_on_its_way() -> None:
    gate = CoreGate(cores=2, patience=5)
    inside, entered = 0, threading.Semaphore(0)
    leave, lock = threading.Event(), threading.Lock()

    def text() -> None:
        nonlocal inside
        with gate.text():
            with lock:
                inside += 1
            entered.release()
            leave.wait(5)

    threads = [threading.Thread(target=text) for _ in range(2)]
    with gate.query():
        for thread in threads:
            thread.start()
        assert entered.acquire(timeout=2)
        assert not entered.acquire(timeout=0.05)
        assert inside == 1
    assert entered.acquire(timeout=2)
    leave.set()
    for thread in threads:
        thread.join()


def test_queries_without_end_do_not_stop_texts_on_one_core() -> None:
    gate = CoreGate(cores=1, patience=0.05)
    with gate.query():
        started = time.perf_counter()
        with gate.text():
            assert 0.04 < time.perf_counter() - started < 1
