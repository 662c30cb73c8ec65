"""Vectors of texts and queries, with the real default model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from recalld.actors.embedding import TOKEN_DIM, Embedded, Embedder, QueryEmbedding, pack_query, projection

PASSPORT = "Did you bring the passport to the embassy?"
ANSWER = "Yes, I took it there on Friday."
FILLER = (
    "The city council discussed the new tram line for most of the evening. Several shop owners spoke about parking. "
    "The library will open an hour earlier from next month. A school choir sang two songs before the break. "
    "The budget for street lights was passed without debate. Rain delayed the repair of the old bridge again. "
)


def maxsim(query: QueryEmbedding, text: Embedded) -> float:
    weights = np.log(1 + 1 / query.token_priors)
    best = (text.token_vectors.astype(np.float32) / 127 @ query.token_vectors.T).max(axis=0)
    return float(best @ (weights / weights.sum()))


def equal(a: Embedded, b: Embedded) -> bool:
    return (
        np.array_equal(a.vectors, b.vectors)
        and np.array_equal(a.token_vectors, b.token_vectors)
        and np.array_equal(a.token_ids, b.token_ids)
    )


def test_vectors_do_not_depend_on_company(embedder: Embedder) -> None:
    texts = [FILLER[:n] for n in range(20, 200, 6)] + [PASSPORT, ANSWER]
    alone = [embedder.embed_text(text, before=PASSPORT) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: embedder.embed_text(text, before=PASSPORT), reversed(texts)))
    assert all(equal(a, b) for a, b in zip(alone, reversed(together), strict=True))


def test_rows_are_unit_vectors_and_token_vectors_match_their_ids(embedder: Embedder) -> None:
    text = embedder.embed_text(ANSWER)
    assert text.vectors.shape == (1, embedder.dim)
    assert np.linalg.norm(text.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert text.token_vectors.shape == (len(text.token_ids), TOKEN_DIM)
    assert np.linalg.norm(text.token_vectors.astype(float) / 127, axis=1) == pytest.approx(1, abs=0.03)
    assert text.tokens == embedder.count_tokens(ANSWER) == len(text.token_ids)


def test_the_text_before_colours_the_vectors_but_adds_no_token(embedder: Embedder) -> None:
    alone, behind = embedder.embed_text(ANSWER), embedder.embed_text(ANSWER, before=PASSPORT)
    query = embedder.embed_query("Who brought the passport to the embassy?")
    assert np.array_equal(alone.token_ids, behind.token_ids)
    assert behind.tokens == alone.tokens
    assert float(behind.vectors[0] @ query.vector) > float(alone.vectors[0] @ query.vector) + 0.2


def test_the_date_takes_part_in_the_pooled_vector_alone_and_only_when_switched_on(
    embedder: Embedder, dated_embedder: Embedder
) -> None:
    plain = embedder.embed_text(ANSWER, date="2023-05-05")
    dated = dated_embedder.embed_text(ANSWER, date="2023-05-05")
    assert equal(plain, embedder.embed_text(ANSWER))
    assert np.array_equal(plain.token_ids, dated.token_ids)
    assert not np.allclose(plain.vectors, dated.vectors, atol=1e-3)
    assert equal(dated_embedder.embed_text(ANSWER), plain)


def test_a_long_context_is_cut_from_its_front_and_the_text_stays_whole(embedder: Embedder) -> None:
    text = FILLER[:300]
    long_context = embedder.embed_text(text, before="Unrelated words about cooking rice. " * 60 + PASSPORT)
    assert long_context.windows == 1
    assert long_context.tokens == embedder.count_tokens(text) == len(long_context.token_ids)


@pytest.mark.parametrize("tenth", range(10))
def test_a_sentence_anywhere_in_a_long_text_is_found_by_a_paraphrase(embedder: Embedder, tenth: int) -> None:
    parts = [FILLER] * 5
    marker = "Grandmother taught Elena how to repair broken violins in the attic. "
    whole = "".join(parts)
    at = whole.index(". ", len(whole) * tenth // 10) + 2 if tenth else 0
    with_marker = embedder.embed_text(whole[:at] + marker + whole[at:])
    without = embedder.embed_text(whole)
    query = embedder.embed_query("Who learned to fix string instruments from an old relative?")
    assert with_marker.windows == len(with_marker.vectors) > 1
    assert float((with_marker.vectors @ query.vector).max()) > float((without.vectors @ query.vector).max()) + 0.05
    assert maxsim(query, with_marker) > maxsim(query, without) + 0.1


def test_a_long_text_keeps_every_token_once(embedder: Embedder) -> None:
    text = embedder.embed_text(FILLER * 6, before=PASSPORT)
    assert text.tokens == embedder.count_tokens(FILLER * 6) == len(text.token_ids)
    assert text.token_ids.tolist() == embedder.embed_text(FILLER).token_ids.tolist() * 6


@pytest.mark.parametrize(
    "text",
    ["你好世界在哪里", "今日はどこへ行きましたか", "안녕하세요 어디 가요", "😀🎉🚀", "Привет, как дела?", "สวัสดีครับ"],
)
def test_scripts_the_model_cannot_read_carry_no_weight(embedder: Embedder, text: str) -> None:
    query = embedder.embed_query(text)
    assert query.unknown_share == 1.0
    assert query.token_vectors.shape == (0, TOKEN_DIM)
    assert np.linalg.norm(query.vector) == pytest.approx(1, abs=1e-5)
    unit = embedder.embed_text(text)
    assert len(unit.token_ids) == len(unit.token_vectors) == 0
    assert unit.tokens > 0


def test_the_readable_part_of_a_mixed_query_keeps_its_weight(embedder: Embedder) -> None:
    query = embedder.embed_query("When did 田中さん visit Paris?")
    assert 0.1 < query.unknown_share < 0.3
    assert query.token_ids.tolist() == embedder.embed_query("When did visit Paris?").token_ids.tolist()


def test_full_width_and_decomposed_letters_are_the_letters_they_stand_for(embedder: Embedder) -> None:
    assert equal(embedder.embed_text("ＡＢＣ ｈｅｌｌｏ"), embedder.embed_text("ABC hello"))
    assert equal(embedder.embed_text("Cafe\u0301 Zu\u0308rich"), embedder.embed_text("Café Zürich"))


@pytest.mark.parametrize("text", ["", " ", "\ud800 x", "a\x00b", "x" * 100_000, "[SEP] [PAD]", "\u200f\u200f", "?!"])
def test_odd_text_has_finite_unit_vectors(embedder: Embedder, text: str) -> None:
    unit, query = embedder.embed_text(text), embedder.embed_query(text)
    assert np.linalg.norm(unit.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(query.vector) == pytest.approx(1, abs=1e-5)
    assert 0 <= query.unknown_share <= 1


def test_names_of_special_tokens_in_a_text_are_plain_text(embedder: Embedder) -> None:
    assert 102 not in embedder.embed_text("before [SEP] after").token_ids.tolist()
    assert embedder.count_tokens("[SEP]") > 1


def test_a_query_of_any_length_is_one_vector_in_bounded_time(embedder: Embedder) -> None:
    query = embedder.embed_query("what about the tram line and parking " * 10_000)
    assert query.vector.shape == (embedder.dim,)
    assert len(query.token_ids) <= 512


def test_common_words_have_a_higher_prior_than_rare_ones(embedder: Embedder) -> None:
    order = ["the", "with", "city", "violin"]
    ids = [embedder.embed_query(word).token_ids[0] for word in order]
    priors = embedder.token_prior(ids)
    assert priors.dtype == np.float32
    assert sorted(priors.tolist(), reverse=True) == priors.tolist()
    assert priors.min() > 0 and priors.max() <= 1
    assert embedder.token_prior([2**32 - 1]).shape == (1,)


def test_the_projection_is_fixed_and_orthonormal() -> None:
    matrix, name = projection(384)
    assert name == "orthonormal-64-seed0-ed5d81bf"
    assert np.allclose(matrix.T @ matrix, np.eye(TOKEN_DIM), atol=1e-5)


def test_a_packed_query_has_the_fields_of_a_recall_message(embedder: Embedder) -> None:
    query = embedder.embed_query("Who sang before the break?")
    packed = pack_query(query)
    assert np.array_equal(np.frombuffer(packed["vector"], "<f4"), query.vector)
    assert len(packed["token_vectors"]) == len(packed["token_ids"]) * TOKEN_DIM * 4
    assert len(packed["token_priors"]) == len(packed["token_ids"]) * 4
