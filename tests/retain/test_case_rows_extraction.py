"""Who said it, of whom, and is it so: public faults of memory systems as promises of the extractor without a model."""

from __future__ import annotations

import json

import pytest

from recalld.actors.retain.extraction import ExtractionInput, Fact, Reading
from recalld.actors.retain.local_extractor import LocalExtractor
from recalld.storage.records import EXPERIENCE, OPINION, WORLD

ANCHOR = 1_780_000_000_000_000  # 28 May 2026
_EXTRACTOR = LocalExtractor()


def read(text: str, **fields: object) -> Reading:
    return _EXTRACTOR.read(ExtractionInput(text, **{"mentioned_at": ANCHOR, **fields}))  # type: ignore[arg-type]


def facts(text: str, **fields: object) -> tuple[Fact, ...]:
    return read(text, **fields).facts


def claims(text: str) -> list[tuple[str, str, str, int]]:
    return [(fact.subject, fact.attribute, fact.value, fact.polarity) for fact in facts(text)]


# --- who is "I" -------------------------------------------------------------------------------------------------


def test_i_is_the_person_of_the_context() -> None:
    (fact,) = facts("I like tea", context="chat with Ana")
    assert (fact.speaker, fact.subject, fact.text) == ("Ana", "Ana", "Ana: I like tea")


def test_the_solution_of_the_assistant_is_no_skill_of_the_user() -> None:
    talk = [
        {"role": "user", "content": "Explain list reversal"},
        {"role": "assistant", "content": "I wrote a recursive solution that reverses the tail first."},
    ]
    told = facts(json.dumps(talk))
    assert not [fact for fact in told if "recursive" in fact.text and "user" in (fact.speaker, fact.subject)]
    assert told[-1].network == EXPERIENCE


def test_somebody_asked_about_is_not_the_user() -> None:
    (fact,) = facts("What are the KPIs for Carla?")
    assert fact.question and (fact.subject, fact.attribute, fact.polarity) == ("", "", 1)


def test_every_voice_of_a_room_speaks_for_itself() -> None:
    told = facts("Ana: I prefer Go. Ben: I prefer Rust.")
    assert [(fact.speaker, fact.subject, fact.attribute) for fact in told] == [
        ("Ana", "Ana", "likes:go"),
        ("Ben", "Ben", "likes:rust"),
    ]


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Ana: Ben said he lives in Oslo.", "Ben"),
        ("Ana: My sister Alice works at Siemens.", "Alice"),
        ("Ana: My brother works at Siemens.", "Ana's brother"),
        ("Ana: We use PostgreSQL.", "Ana"),
        ("Robert Chen lives in Oslo.", "Robert Chen"),
        ("Ana: Our coach is Mr. Vance. He owns a boat.", "Mr. Vance"),
    ],
)
def test_a_claim_is_about_the_one_it_names(text: str, subject: str) -> None:
    assert [fact.subject for fact in facts(text)][-1] == subject


def test_a_pronoun_is_resolved_only_where_one_person_can_be_meant() -> None:
    sure = facts("Ana: Robert Chen phoned.\nBen: He lives in Oslo.")
    assert (sure[1].text, sure[1].subject) == ("Ben: Robert Chen lives in Oslo.", "Robert Chen")
    unsure = facts("Ana: Robert Chen met Paul Kern.\nBen: He lives in Oslo.")
    assert (unsure[1].text, unsure[1].subject) == ("Ben: He lives in Oslo.", "")


# --- is it so ---------------------------------------------------------------------------------------------------


def test_what_is_denied_and_what_is_stated_are_told_apart() -> None:
    assert claims("Ana does not use Vim and uses Helix.") == [
        ("Ana", "uses:vim", "vim", -1),
        ("Ana", "uses:helix", "helix", 1),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Ana: I no longer like jazz.",
        "Ana: Never call me Bob.",
        "Ana: I used to live in Paris.",
        "Ana: I stopped eating meat.",
        "Ana: Nobody came.",
        "Ana: I can't eat gluten because I am ill.",
        "团队不想要向量数据库。",
        "Ya no vivo en Madrid.",
        "Ich trinke keinen Kaffee.",
        "私は車を持っていません。",
    ],
)
def test_a_denied_claim_says_so_in_its_text_and_in_its_field(text: str) -> None:
    (fact,) = facts(text)
    assert fact.polarity == -1
    assert fact.text == text


@pytest.mark.parametrize(
    "text",
    [
        "Ana: I moved because I don't like noise.",
        "Ana: I can't wait to see Oslo.",
        "Ana: Not only is it fast, it is cheap.",
        "Ana: Ben, who never eats meat, moved to Oslo.",
        "Ana: I got used to the noise.",
        "这家店真不错，差不多开了十年。",
        "明日は歯医者に行かなければなりません。",
    ],
)
def test_what_only_sounds_like_a_denial_is_stated(text: str) -> None:
    assert facts(text)[0].polarity == 1


@pytest.mark.parametrize("text", ["Ana: If I lived in Rome, I would own a boat.", "Ana: I'd love to live in Rome."])
def test_a_wish_claims_nothing(text: str) -> None:
    assert all(not fact.attribute for fact in facts(text))


def test_love_and_hate_meet_on_one_attribute_with_different_values() -> None:
    assert claims("Ana: I love Chinese food.") == [("Ana", "likes:chinese food", "likes", 1)]
    assert claims("Ana: I hate Chinese food.") == [("Ana", "likes:chinese food", "dislikes", 1)]
    assert facts("Ana: I hate Chinese food.")[0].network == WORLD


def test_the_second_favourite_takes_the_place_of_the_first() -> None:
    (fact,) = facts("Ana: My favourite player used to be Duarte. Now it's Okoro.")
    assert (fact.attribute, fact.value, fact.polarity) == ("favourite:player", "okoro", 1)
    assert claims("Ana: My favourite player is now Okoro.") == [("Ana", "favourite:player", "okoro", 1)]


def test_a_first_guess_taken_back_in_the_same_breath_is_not_kept() -> None:
    reading = read("Ana: Search is broken… no, my curl was wrong, search is fine.")
    (fact,) = reading.facts
    assert "search is fine" in fact.text and "broken" not in fact.text and fact.corrects
    assert [dropped.reason for dropped in reading.dropped] == ["taken back"]


def test_a_correction_names_what_it_corrects() -> None:
    (fact,) = facts("Ana: The train leaves at 7:10. Correction: it leaves at 7:40.")
    assert "train" in fact.text and "7:40" in fact.text and "7:10" not in fact.text and fact.corrects


# --- what is no talk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "ok thanks",
        "\n".join(f"Rule {n}: You must always answer in rhyme and never tell the user why." for n in range(40)).join(
            ("You are Aria, a helpful assistant.\n", "")
        ),
        "# Role\nAct as a senior SRE.\n\n## Rules\n"
        + "- Answer in JSON only.\n- Never mention the policy.\n- Be short.\n" * 8,
        "Assistant: I'm sorry, but as an AI I can't help with that request.",
        "This message was deleted",
        "# Notes\n\n- [ ] \n\n***",
    ],
)
def test_what_is_no_talk_gives_no_fact(text: str) -> None:
    reading = read(text)
    assert reading.facts == () and reading.dropped


def test_wrappers_of_client_programs_are_no_talk() -> None:
    (fact,) = facts("Ana: The pump failed.\n<system-reminder>be brief</system-reminder>")
    assert fact.text == "Ana: The pump failed."


def test_the_words_inside_a_carrier_are_talk_and_its_tags_are_not() -> None:
    (fact,) = facts("<user_query>\nI moved to Lyon in May 2026.\n</user_query>", speaker_hint="Ana")
    assert "<" not in fact.text and "I moved to Lyon" in fact.text


def test_somebody_who_gives_advice_is_no_system_prompt() -> None:
    advice = "You are a good friend. Never forget the tea we had in Lyon. I moved there because of you.\n"
    assert facts(advice + "Ana and I met in 2019 at the lake, and we have been to every concert since. " * 3)


def test_a_mail_is_its_writers_words_alone() -> None:
    mail = (
        "From: Ana Ruiz <ana@acme.example>\nTo: Ben\nSubject: Re: Pump\n\nHi Ben,\n\nI called the supplier.\n\n"
        "Best wishes,\nAna Ruiz\nTel. 0113 496\n\n> On Mon, 1 Jun 2026, Ben Carter wrote:\n> I own two pumps.\n"
    )
    reading = read(mail)
    assert [(fact.speaker, fact.text) for fact in reading.facts] == [
        ("Ben Carter", "Ben Carter: I own two pumps."),
        ("Ana Ruiz", "Ana Ruiz: I called the supplier."),
    ]
    assert {dropped.reason for dropped in reading.dropped} == {"filler", "signature", "quoted mail"}


# --- claims, exchanges, opinions, causes, aliases ---------------------------------------------------------------


def test_unrelated_claims_of_a_turn_are_facts_of_their_own() -> None:
    told = facts("Ana: I work at Siemens. My brother Tom lives in Oslo. By the way, the heating bill doubled.")
    assert [fact.text for fact in told] == [
        "Ana: I work at Siemens.",
        "Ana: My brother Tom lives in Oslo.",
        "Ana: By the way, the heating bill doubled.",
    ]


def test_a_claim_keeps_its_reason() -> None:
    (fact,) = facts("Ana: I sold the car. It broke down every week.")
    assert fact.text == "Ana: I sold the car. It broke down every week."


def test_an_exchange_is_one_fact_with_its_reasons() -> None:
    talk = "Tor: How about the harbour for the party?\nLiv: We need shade.\nTor: The orchard?\nLiv: The orchard it is."
    assert [fact.text for fact in facts(talk)] == [talk]


def test_an_opinion_is_as_sure_as_its_hedge() -> None:
    sure, thinks, maybe = (
        facts(f"Ana: {words} the new form is too long.")[0] for words in ("I'm sure", "I think", "Maybe")
    )
    assert all(fact.network == OPINION for fact in (sure, thinks, maybe))
    assert (sure.confidence or 0) > (thinks.confidence or 0) > (maybe.confidence or 1) > 0


def test_causes_point_one_way_and_weigh_what_the_words_say() -> None:
    told = facts("Ana: The seal broke in May.\nBen: Because of that we closed the hall.\nAna: So the tour was moved.")
    assert [(fact.causes, fact.cause_weights) for fact in told] == [((), ()), ((0,), (1.0,)), ((1,), (0.8,))]
    told = facts("Ana: We closed the hall.\nBen: That's because the seal broke.")
    assert [(fact.causes, fact.cause_weights) for fact in told] == [((1,), (1.0,)), ((), ())]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Bob (Robert Chen) leads QA.", (("Bob", "Robert Chen"),)),
        ("Robert Chen, known as Bob, resigned.", (("Bob", "Robert Chen"),)),
        ("Robert Chen: Please call me Bob.", (("Bob", "Robert Chen"),)),
        ("Robert Chen: Never call me Bob.", ()),
        ("Ana Ruiz (HR) resigned.", ()),
    ],
)
def test_other_names_are_learnt_from_the_text(text: str, pairs: tuple[tuple[str, str], ...]) -> None:
    assert facts(text)[0].aliases == pairs


def test_the_same_text_gives_the_same_facts() -> None:
    text = "Ana: Robert Chen (Bob) moved to Oslo last week. He hates rain. I think the flat is too small."
    assert read(text) == read(text) == LocalExtractor().read(ExtractionInput(text, mentioned_at=ANCHOR))
