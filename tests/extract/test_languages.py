"""Which language a sentence is in, and whether it asks, denies, supposes or hedges there."""

from __future__ import annotations

import pytest

from recalld.actors.retain.languages import (
    hedge,
    is_filler,
    is_hypothetical,
    is_question,
    language_of,
    no_longer,
    polarity,
    speaks_of_oneself,
)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I went to Lyon yesterday.", "en"),
        ("", "en"),
        ("x = 1", "en"),
        ("Ayer fui al médico", "es"),
        ("Vivo en Madrid desde 2020", "es"),
        ("Wir haben uns letzte Woche getroffen", "de"),
        ("J'ai vu le film hier", "fr"),
        ("上周的稿子", "zh"),
        ("Postgres 上不要再装 vector store。", "zh"),
        ("昨日、医者に行った。", "ja"),
        ("サーバーは Postgres です", "ja"),
        ("그는 서울에 산다", "ko"),
        ("Мы встретились вчера", "ru"),
    ],
)
def test_a_language_is_known_by_its_script_and_small_words(text: str, language: str) -> None:
    assert language_of(text) == language


DENIED = [
    "我不喜欢爵士乐",
    "团队用 Postgres，不想要向量库",
    "我不再喝咖啡了",
    "别叫我小王",
    "私はコーヒーを飲みません",
    "もうタバコは吸わない",
    "No me gusta el café",
    "Ya no vivo en Madrid",
    "Nunca he estado en Roma",
    "Ich trinke keinen Kaffee mehr",
    "Er hat nie geraucht",
]
STATED = [
    "这个工具不错",
    "没关系，他会来",
    "不但便宜而且好用",
    "未来会更好",
    "别的同事都来了",
    "特别喜欢",
    "明日行かなければなりません",
    "彼は来るかもしれない",
    "部屋が少ない",
    "問題ないです、行きます",
    "No solo habla francés",
    "Nicht nur Ana kommt",
    "Das ist nicht schlecht",
]


@pytest.mark.parametrize("text", DENIED)
def test_a_denial_is_seen(text: str) -> None:
    assert polarity(text) == -1


@pytest.mark.parametrize("text", STATED)
def test_what_only_looks_like_a_denial_is_none(text: str) -> None:
    assert polarity(text) == 1


@pytest.mark.parametrize(
    "text", ["我不再喝咖啡了", "もうタバコは吸わない", "Ya no vivo en Madrid", "Ich trinke keinen Kaffee mehr"]
)
def test_what_ended_is_seen(text: str) -> None:
    assert no_longer(text)


@pytest.mark.parametrize(
    "text",
    ["你去吗", "你觉得这个怎么样？", "行きますか", "何を食べたの", "¿Vienes mañana?", "Cuándo llega Ana", "请问谁负责"],
)
def test_a_question_is_one_with_or_without_its_mark(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["我不知道他什么时候来", "Cuando llega Ana comemos", "谁都喜欢他", "He came."])
def test_a_clause_with_a_question_word_is_no_question(text: str) -> None:
    assert not is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "如果下周下雨，我们就不去",
        "もし明日雨が降ったら、中止です",
        "Si llueve mañana, no vamos",
        "Wenn es morgen regnet, bleiben wir",
        "If it rains tomorrow we stay",
        "I would have gone last year",
        "要是明年能去就好了",
        "Ojalá llueva mañana",
    ],
)
def test_a_supposition_is_seen(text: str) -> None:
    assert is_hypothetical(text)


@pytest.mark.parametrize("text", ["Sí, voy mañana", "We met last year", "昨日雨が降った", "Als es regnete, blieb ich"])
def test_a_statement_supposes_nothing(text: str) -> None:
    assert not is_hypothetical(text)


def test_hedges_say_how_sure_a_judgement_is() -> None:
    surest = [hedge(text) for text in ("我确信它可靠", "間違いなく良い", "Estoy seguro de que es bueno")]
    guesses = [
        hedge(text) for text in ("我猜它更好", "良いかもしれない", "Quizás es mejor", "Vielleicht ist es besser")
    ]
    assert all(value is not None and value >= 0.85 for value in surest)
    assert all(value is not None and value <= 0.5 for value in guesses)
    assert hedge("Ana vive en Lyon") is None


@pytest.mark.parametrize("text", ["我住在里昂", "私は東京に住んでいる", "Vivo en Madrid", "Mein Hund heißt Bo"])
def test_the_first_person_may_stand_in_the_verb_alone(text: str) -> None:
    assert speaks_of_oneself(text)


def test_the_third_person_is_not_the_speaker() -> None:
    assert not any(map(speaks_of_oneself, ("他住在里昂", "Ana vive en Madrid", "Der Hund heißt Bo")))


@pytest.mark.parametrize(
    "text", ["好的，谢谢！", "はい、了解です", "vale, gracias", "Danke schön!", "Alles klar, bis später"]
)
def test_talk_that_says_nothing_is_filler(text: str) -> None:
    assert is_filler(text)


@pytest.mark.parametrize("text", ["好的，我们周五去里昂", "gracias a Ana", "Danke, 15 Uhr", "はい、東京です", "vale?"])
def test_talk_that_says_something_is_not(text: str) -> None:
    assert not is_filler(text)
