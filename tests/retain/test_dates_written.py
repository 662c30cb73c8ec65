"""The stored sentence names its own dates, in its own language, and reads as somebody would write it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.actors import dateranges as r
from recalld.actors.retain.dating import dated, read_dates

WEDNESDAY = "2026-05-13T19:17"


def at(text: str) -> int:
    return (datetime.fromisoformat(text) - r.EPOCH) // timedelta(microseconds=1)


def written(text: str, when: str = WEDNESDAY) -> str:
    return dated(text, at(when)).text


ENGLISH = {
    "I went to the dentist yesterday.": "I went to the dentist on 12 May 2026.",
    "Yesterday I went to the dentist.": "On 12 May 2026 I went to the dentist.",
    "Yesterday was great.": "12 May 2026 was great.",
    "Yesterday's meeting was long.": "The 12 May 2026 meeting was long.",
    "I saw her at yesterday's meeting.": "I saw her at the 12 May 2026 meeting.",
    "Today's the day!": "13 May 2026 is the day!",
    "Last summer we sailed.": "In the summer of 2025 we sailed.",
    "We moved here two years ago.": "We moved here in 2024.",
    "We bought it a year and a half ago.": "We bought it in November 2024.",
    "I'll see her next Friday.": "I'll see her on Friday 22 May 2026.",
    "We met on Friday.": "We met on Friday 8 May 2026.",
    "Last week the pump failed.": "In the week of 4 to 10 May 2026 the pump failed.",
    "It was fun last weekend.": "It was fun on the weekend of 9 and 10 May 2026.",
    "Over the weekend we hiked.": "Over the weekend of 9 and 10 May 2026 we hiked.",
    "I spent last weekend in Lyon.": "I spent the weekend of 9 and 10 May 2026 in Lyon.",
    "I'm off next month.": "I'm off in June 2026.",
    "In May I started yoga.": "In May 2026 I started yoga.",
    "On May 7 we met.": "On May 7, 2026 we met.",
    "The lease ends on 31 August.": "The lease ends on 31 August 2026.",
    "I've had her since last Tuesday.": "I've had her since Tuesday 12 May 2026.",
    "She has lived here for three years.": "She has lived here for three years (since 2023).",
    "We were away from May to July.": "We were away from May to July 2025.",
    "It runs from Monday to Wednesday.": "It runs from 18 to 20 May 2026.",
    "Done by the end of the month.": "Done by the end of May 2026.",
    "It begins early next year.": "It begins early 2027.",
    "A few months ago I quit.": "Between January and March 2026 I quit.",
    "It rained over the past three weeks.": "It rained from 22 April to 13 May 2026.",
    "I left an hour ago.": "I left around 18:00 on 13 May 2026.",
    "This morning I ran.": "On the morning of 13 May 2026 I ran.",
    "We dined out last night.": "We dined out on the night of 12 May 2026.",
    "On the 5th of last month we paid.": "On 5 April 2026 we paid.",
    "We meet on Tuesday next week.": "We meet on Tuesday 19 May 2026.",
    "On Halloween we stayed in.": "On Halloween 2025 we stayed in.",
    "Last Christmas we flew home.": "At Christmas 2025 we flew home.",
    "The first week of next month is free.": "The first week of June 2026 is free.",
    "You must finish by next Tuesday.": "You must finish by Tuesday 19 May 2026.",
    "It closes before June.": "It closes before June 2026.",
    "The report for last month is done.": "The report for April 2026 is done.",
    "The invoice from 3 March is open.": "The invoice from 3 March 2026 is open.",
    "I booked a table for Friday.": "I booked a table for Friday 15 May 2026.",
    "Wednesday's rehearsal is off.": "The Wednesday 13 May 2026 rehearsal is off.",
    "Three months ago today we opened.": "On 13 February 2026 we opened.",
    "The concert was the Saturday before last.": "The concert was on Saturday 2 May 2026.",
    "We met two summers ago.": "We met in the summer of 2024.",
    "She visited over Easter.": "She visited over Easter 2026.",
    "I moved here 2 wks ago.": "I moved here in the week of 27 April to 3 May 2026.",
    "Tomorrow's Friday.": "14 May 2026 is Friday.",
    "The 1st week of July is blocked.": "The 1st week of July 2026 is blocked.",
    "See you Monday!": "See you on Monday 18 May 2026!",
}
CHINESE = {
    "上周的稿子": "2026年5月4日至10日的稿子",
    "昨天我去了医院。": "2026年5月12日我去了医院。",
    "我昨晚没睡好": "我2026年5月12日晚上没睡好",
    "去年夏天我们去了海边": "2025年夏天我们去了海边",
    "两年前我来到上海": "2024年我来到上海",
    "下周三交稿": "2026年5月20日周三交稿",
    "5月7日发布了": "2026年5月7日发布了",
    "月底之前交稿": "2026年5月底之前交稿",
    "他从5月到7月在北京": "他从2026年5月到7月在北京",
    "今年年初换了系统。": "2026年初换了系统。",
    "去年春节我们回老家": "2025年春节我们回老家",
    "第二季度业绩下滑": "2026年第二季度业绩下滑",
    "明天下午三点开会": "2026年5月14日下午三点开会",
}
JAPANESE = {
    "先週の原稿は長すぎた。": "2026年5月4日から10日の原稿は長すぎた。",
    "先週ポンプが壊れた。": "2026年5月4日から10日にポンプが壊れた。",
    "昨日、医者に行った。": "2026年5月12日、医者に行った。",
    "来週の金曜日に会議があります": "2026年5月22日金曜日に会議があります",
    "三年前に東京へ引っ越した": "2023年に東京へ引っ越した",
    "今年の初めに変えました。": "2026年初めに変えました。",
    "会議は来週の火曜日午前10時です。": "会議は2026年5月19日火曜日午前10時です。",
    "今朝走った": "2026年5月13日の朝に走った",
}
SPANISH = {
    "Ayer fui al médico.": "El 12 de mayo de 2026 fui al médico.",
    "La reunión de ayer fue larga.": "La reunión del 12 de mayo de 2026 fue larga.",
    "El artículo de la semana pasada es largo.": "El artículo de la semana del 4 al 10 de mayo de 2026 es largo.",
    "Nos mudamos el año pasado.": "Nos mudamos en 2025.",
    "Nos vemos el próximo viernes.": "Nos vemos el viernes 22 de mayo de 2026.",
    "Hay que entregarlo antes del viernes.": "Hay que entregarlo antes del viernes 15 de mayo de 2026.",
    "Vivo aquí desde hace tres años.": "Vivo aquí desde 2023.",
    "En diciembre del año pasado nos mudamos.": "En diciembre de 2025 nos mudamos.",
    "El segundo trimestre fue flojo.": "El segundo trimestre de 2026 fue flojo.",
    "El verano pasado estuvimos en Cádiz.": "En el verano de 2025 estuvimos en Cádiz.",
}
GERMAN = {
    "Gestern war ich beim Arzt.": "Am 12. Mai 2026 war ich beim Arzt.",
    "Die Sitzung von gestern war lang.": "Die Sitzung vom 12. Mai 2026 war lang.",
    "Der Artikel von letzter Woche ist lang.": "Der Artikel vom 4. bis 10. Mai 2026 ist lang.",
    "Wir sind letztes Jahr umgezogen.": "Wir sind im Jahr 2025 umgezogen.",
    "Gestern Abend war es spät.": "Am Abend des 12. Mai 2026 war es spät.",
    "Im Dezember letzten Jahres sind wir umgezogen.": "Im Dezember 2025 sind wir umgezogen.",
    "Vom 3. bis 15. August war ich im Urlaub.": "Vom 3. bis 15. August 2025 war ich im Urlaub.",
    "Seit gestern geht nichts.": "Seit dem 12. Mai 2026 geht nichts.",
    "Am Freitag treffen wir uns.": "Am Freitag, 15. Mai 2026 treffen wir uns.",
    "Der Vertrag endet am 31. August.": "Der Vertrag endet am 31. August 2026.",
}
ALL = ENGLISH | CHINESE | JAPANESE | SPANISH | GERMAN


@pytest.mark.parametrize("text", ALL)
def test_relative_words_are_written_out_in_the_language_of_the_sentence(text: str) -> None:
    assert written(text) == ALL[text]


def test_last_week_said_on_the_first_of_october() -> None:
    said = "2026-10-01T10:00"
    assert written("The piece of last week needs a fix.", said) == "The piece of 21 to 27 September 2026 needs a fix."
    assert written("上周的稿子", said) == "2026年9月21日至27日的稿子"


@pytest.mark.parametrize("text", ALL)
def test_writing_a_second_time_changes_nothing(text: str) -> None:
    assert written(ALL[text], "2031-01-09T08:00") == ALL[text]


@pytest.mark.parametrize("text", [text for text in ALL if "hour ago" not in text and "for three years" not in text])
def test_what_is_written_means_what_was_said(text: str) -> None:
    said = dated(text, at(WEDNESDAY))
    again = dated(said.text, at("2031-01-09T08:00"))
    if said.start is None:
        return
    assert again.start is not None and again.end is not None and said.end is not None
    day = 86_400_000_000
    assert again.start // day == said.start // day
    if "since" not in text.lower() and "seit" not in text.lower() and "desde" not in text.lower():
        assert again.end // day == said.end // day


@pytest.mark.parametrize(
    "text",
    [
        "Are you coming tomorrow?",
        "If it rains tomorrow we stay.",
        "I would have gone last year.",
        "你昨天去哪儿了？",
        "如果明天下雨就不去",
        "¿Vienes mañana?",
        "Si llueve mañana, no vamos.",
        "Kommst du morgen?",
        "Wenn es morgen regnet, bleiben wir.",
        "もし明日雨なら中止",
    ],
)
def test_questions_and_suppositions_neither_change_nor_date(text: str) -> None:
    read = dated(text, at(WEDNESDAY))
    assert (read.text, read.start, read.end, read.times) == (text, None, None, ())


@pytest.mark.parametrize(
    "text",
    [
        "The week before my birthday I was ill.",
        "The weekend before the wedding was hectic.",
        "The Friday before my birthday was fun.",
        "The following week he left.",
        "I swim every Friday.",
        "Every other Friday we meet.",
        "I ordered it on Black Friday.",
        "That Friday we argued.",
        "Every year in May we go to Rome.",
        "Our last week in Lyon was rainy.",
        "In winter it snows.",
        "Our Monday standup moved.",
        "We do what we may do, me too.",
        "It runs on port 9077.",
        "Last fiscal year was good, FY2025 too.",
        "It feels like just yesterday.",
        "I live in Berlin now.",
        'We watched "The Day After Tomorrow".',
        "我们看了《昨天》这部电影",
        "Run `date --date yesterday` there.",
        "We saw it. [shares a photo of a park in the fall]",
        "I lived there for three years.",
        "These birds lived here 100000 years ago.",
        "这种鸟十万年前就有了",
        "每周五开会",
        "毎週金曜日に会議",
        "Cada viernes jugamos al fútbol.",
        "Los viernes jugamos.",
        "Jeden Freitag spielen wir.",
        "Guten Morgen zusammen",
    ],
)
def test_what_names_no_day_stays_as_it_is_and_undated(text: str) -> None:
    read = dated(text, at(WEDNESDAY))
    assert (read.text, read.start) == (text, None)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("She has lived here for three years.", "2023-05-13", "2026-05-13"),
        ("我在上海住了三年了", "2023-05-13", "2026-05-13"),
        ("Llevo tres años en Acme.", "2023-05-13", "2026-05-13"),
        ("Ich wohne seit drei Jahren hier.", "2023-05-13", "2026-05-13"),
        ("They were away from May to July.", "2025-05-01", "2025-07-31"),
        ("Del 4 al 10 de mayo estuve en Roma.", "2026-05-04", "2026-05-10"),
        ("Vom 4. bis 10. Mai war ich in Rom.", "2026-05-04", "2026-05-10"),
        ("10月3日から5日まで出張です", "2026-10-03", "2026-10-05"),
        ("周一到周三出差", "2026-05-18", "2026-05-20"),
    ],
)
def test_lengths_up_to_now_and_spans_give_ranges(text: str, first: str, last: str) -> None:
    read = dated(text, at(WEDNESDAY))
    assert read.start is not None and read.end is not None
    days = [(r.EPOCH + timedelta(microseconds=t)).date().isoformat() for t in (read.start, read.end)]
    assert days == [first, last]


def test_the_words_that_gave_the_date_are_kept_beside_it() -> None:
    read = dated("We met last week. We meet again on Monday.", at(WEDNESDAY))
    assert read.date_text == "last week"
    assert [one.words for one in read.times] == ["last week", "Monday"]


def test_only_the_fields_change_where_the_text_must_stay() -> None:
    read = dated("Last week the pump failed.", at(WEDNESDAY), write=False)
    assert read.text == "Last week the pump failed." and read.start == at("2026-05-04")


def test_languages_without_a_writer_keep_their_words_and_have_the_range() -> None:
    read = dated("Мы встретились вчера.", at(WEDNESDAY))
    assert (read.text, read.start) == ("Мы встретились вчера.", at("2026-05-12"))


def test_a_parser_of_a_changed_shape_is_counted_and_never_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    import dateparser.search

    for answer in ([datetime(2026, 5, 12)], [("вчера",)], [(datetime(2026, 5, 12), "вчера")]):  # noqa: DTZ001
        monkeypatch.setattr(dateparser.search, "search_dates", lambda *_, answer=answer, **__: answer)
        read, failed = read_dates("Мы встретились вчера.", at(WEDNESDAY), 0)
        assert failed and read.text == "Мы встретились вчера." and read.start is None


PIECES = [
    "yesterday",
    "last week",
    "next Friday",
    "on Monday",
    "in May",
    "the 31st",
    "two years ago",
    "since",
    "'s",
    "was",
    "and",
    "the",
    "of",
    "for three years",
    "上周",
    "昨天",
    "的",
    "先週",
    "ayer",
    "la semana pasada",
    "gestern",
    "letzte Woche",
    "von",
    "de",
    "I have",
    ".",
    "?",
    ",",
    "now",
    "Ana went",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8), st.integers(-(2**62), 2**62), st.integers(-840, 840))
def test_any_words_at_any_time_are_survived_and_written_once(pieces: list[str], anchor: int, offset: int) -> None:
    text = " ".join(pieces)
    once = dated(text, anchor, offset)
    assert once.start is None or (once.end is not None and once.start <= once.end)
    assert len(once.text) <= len(text) + 90 * len(pieces)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=120))
def test_any_text_is_survived(text: str) -> None:
    dated(text + " last week", at(WEDNESDAY))
