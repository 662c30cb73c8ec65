"""Who says what, in the forms talk arrives in."""

from __future__ import annotations

import json

import pytest

from recalld.actors.retain.turns import Turn, role_of, speaker_in_context, turns_of, without_cues


def voices(text: str) -> list[tuple[str, str]] | None:
    turns = turns_of(text)
    return None if turns is None else [(turn.speaker, turn.text) for turn in turns]


@pytest.mark.parametrize(
    "text",
    [
        "Ana: hello there\nBen: hi Ana",
        "**Ana:** hello there\n\n**Ben:** hi Ana",
        "**Ana**: hello there\n**Ben**: hi Ana",
        "[12/06/2026, 19:17] Ana: hello there\n[12/06/2026, 19:18] Ben: hi Ana",
        "12/06/2026, 19:17 - Ana: hello there\n12/06/2026, 19:18 - Ben: hi Ana",
        "[10:02:11] <Ana> hello there\n[10:02:15] <Ben> hi Ana",
        "Ana (10:02): hello there\nBen (10:03): hi Ana",
        "### Ana: hello there\n### Ben: hi Ana",
        '{"speaker": "Ana", "text": "hello there"}\n{"speaker": "Ben", "text": "hi Ana"}',
        '[{"name": "Ana", "content": "hello there"}, {"from": "Ben", "message": "hi Ana"}]',
        '{"messages": [{"author": {"name": "Ana"}, "text": "hello there"}, {"sender": "Ben", "body": "hi Ana"}]}',
        '{"speaker": "Ana", "text": "hello there"},\n{"speaker": "Ben", "text": "hi Ana"}]',
    ],
)
def test_every_common_form_of_talk_gives_the_same_turns(text: str) -> None:
    assert voices(text) == [("Ana", "hello there"), ("Ben", "hi Ana")]


def test_handles_and_names_without_capitals_count_when_they_come_back() -> None:
    chat = "ana_k: the build is red\nben: again?\nana_k: yes, since noon\nben: on it"
    assert [speaker for speaker, _ in voices(chat) or []] == ["ana_k", "ben", "ana_k", "ben"]
    assert voices("林芳：周五去里昂\n李明：好，我订票") == [("林芳", "周五去里昂"), ("李明", "好，我订票")]


@pytest.mark.parametrize(
    "text",
    [
        "Deadline: 25th of each month",
        "Note: Ana is away.",
        "注意：周五放假",
        "https://example.org: a page",
        "the thing is: nobody knows",
        "Meeting at 10:30 with Ana",
        "Name: Ana\nAge: 30\nCity: Lyon",
        "Height: 180\nWeight: 70\nShoe: 44",
        '{"a": 1, "text": "x"}',
        '["Ana", "Ben"]',
        "[1] Smith et al. wrote this.",
        "C:\\repo\\src: the folder",
        "Step One: mix\nStep Two: bake",
    ],
)
def test_labels_forms_and_data_are_not_speakers(text: str) -> None:
    assert voices(text) is None


def test_a_turn_that_holds_a_colon_stays_whole() -> None:
    assert voices("Ana: One thing remains. Note: the seals are old.") == [
        ("Ana", "One thing remains. Note: the seals are old.")
    ]


def test_a_title_behind_a_name_is_kept_in_the_words_and_not_in_the_name() -> None:
    (turn,) = turns_of("Ana Ruiz (CEO): We sold Acme.") or []
    assert (turn.speaker, turn.rendered()) == ("Ana Ruiz", "Ana Ruiz (CEO): We sold Acme.")


def test_the_sender_of_a_mail_is_its_speaker() -> None:
    mail = "From: Ana Ruiz <ana@acme.com>\nTo: Ben\nSubject: Pump\n\nHi Ben,\nI called Siemens."
    (turn,) = turns_of(mail) or []
    assert (turn.speaker, turn.rendered()) == ("Ana Ruiz", mail)


def test_only_the_text_parts_of_a_message_speak() -> None:
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "tool_use", "text": "y"},
    ]
    assert voices(json.dumps([{"role": "user", "content": parts}])) == [("user", "look")]


def test_times_of_turns_are_read_in_their_zone() -> None:
    talk = [
        {"speaker": "Ana", "text": "a", "timestamp": "2026-06-12T19:17:00+08:00"},
        {"speaker": "Ana", "text": "b", "timestamp": "2026-06-12T19:17:00"},
        {"speaker": "Ana", "text": "c", "timestamp": 1_781_263_020},
        {"speaker": "Ana", "text": "d", "timestamp": 1_781_263_020_000},
        {"speaker": "Ana", "text": "e", "timestamp": "soon"},
        {"speaker": "Ana", "text": "f", "timestamp": 1e300},
    ]
    turns = turns_of(json.dumps(talk), 480) or []
    assert [turn.at for turn in turns] == [1_781_263_020_000_000] * 4 + [None, None]
    assert turns[0].utc_offset_minutes == 480


def test_hostile_json_is_plain_text() -> None:
    assert turns_of("[" * 100_000) is None
    assert turns_of('[{"role": "user", "content": ') is None


def test_role_words_are_roles_and_names_are_not() -> None:
    assert (role_of("Assistant"), role_of("HUMAN"), role_of("Ana")) == ("assistant", "user", "")
    assert Turn("Ana", "", "hi").rendered() == "Ana: hi" and Turn("", "", "hi").rendered() == "hi"


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("chat with Ana", "Ana"),
        ("Slack thread from Ana Ruiz about pumps", "Ana Ruiz"),
        ("speaker: Ana", "Ana"),
        ("Ana's notes", "Ana"),
        ("与林芳的对话", "林芳"),
        ("chat with Ana and Ben", ""),
        ("weekly report", ""),
        ("agent::c9::u7", ""),
        ("meeting with the board", ""),
        ("", ""),
        ("chat con Ana", "Ana"),
        ("entretien avec Ana", "Ana"),
        ("민지와의 대화", "민지"),
        ("chat con Ana y Ben", ""),
        ("Gespräch mit Kunden", ""),
    ],
)
def test_a_context_names_at_most_one_speaker(context: str, name: str) -> None:
    assert speaker_in_context(context) == name


@pytest.mark.parametrize(
    "text",
    [
        "WEBVTT\n\n00:00:01.000 --> 00:00:04.000\n<v Ana>I moved.\n\n00:00:05.000 --> 00:00:07.000\n<v Ben>I stayed.",
        "1\n00:00:01,000 --> 00:00:04,000\nAna: I moved.\n\n2\n00:00:05,000 --> 00:00:07,000\nBen: I stayed.",
        "[00:01] Ana: I moved.\n[00:03] Ben: I stayed.",
        "00:01 Ana: I moved.\n00:03 Ben: I stayed.",
        ">> Ana: I moved.\n>> Ben: I stayed.",
    ],
)
def test_transcripts_and_subtitles_are_talk(text: str) -> None:
    turns = turns_of(without_cues(text)) or []
    assert [(turn.speaker, turn.text) for turn in turns] == [("Ana", "I moved."), ("Ben", "I stayed.")]
