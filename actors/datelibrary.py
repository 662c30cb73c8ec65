"""The `dateparser` library behind one function: for languages whose date words `datelexicon` has no table of."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from recalld.actors import dateranges as r
from recalld.actors.dateranges import Anchor
from recalld.actors.daterules import Found

# What a word of these languages makes of the day the library gives.
_LONGER: Final = (
    ("week", re.compile(r"недел|тиж|week|tydzie|tygod|veck|hafta|minggu|أسبوع|हफ़?्त|tuần|שבוע|สัปดาห์")),
    ("month", re.compile(r"месяц|місяц|maand|miesi|månad|bulan|شهر|महीन|tháng|חודש|เดือน")),
    ("year", re.compile(r"год|лет|рік|рок|jaar|rok|lat|yıl|tahun|سنة|عام|साल|năm|שנה|ปี")),
)
_SCRAP: Final = re.compile(r"\W*(?:\d{1,4}|\w{1,2})\W*")


def search(text: str, language: str, anchor: Anchor) -> list[Found]:
    """Date expressions the library sees in `text`. What it raises goes through: the caller decides how loud it is."""
    from dateparser.search import search_dates  # half a second and 20 MB that most processes never need

    settings: dict[str, Any] = {
        "RELATIVE_BASE": anchor.now,
        "PREFER_DATES_FROM": "future" if anchor.lean > 0 else "past",
        "RETURN_AS_TIMEZONE_AWARE": False,
    }
    found: list[Found] = []
    position = 0
    for result in search_dates(text, languages=[language], settings=settings) or []:
        # Two or more fields by release: the words, the moment, and since 1.5.0 what else was read.
        words, moment = result[0], result[1]
        if not isinstance(words, str) or not isinstance(moment, datetime):
            raise TypeError("the dateparser library answers in a shape that is not known here; pin an older release")
        if _SCRAP.fullmatch(words):
            continue  # a bare number or a scrap such as "we" is no date
        unit = next((unit for unit, names in _LONGER if names.search(words.lower())), "day")
        try:
            low, high = r.period(unit, moment.replace(tzinfo=None))
        except (ValueError, OverflowError):
            continue
        # The library may rewrite the words it read; then the span is the place where it was looking.
        start = max(text.find(words, position), position)
        position = min(start + len(words), len(text))
        if r.in_bounds((low, high)):
            found.append(Found(start, position, low, high))
    return found
