"""Names compared: what is one and what never is, against labelled pairs and the plain formula."""

from __future__ import annotations

import difflib
import re

from hypothesis import given
from hypothesis import strategies as st

from recalld.storage.likeness import SAME, likeness, sought, spellings
from recalld.storage.resolution import ACCEPTED, COMPANY, SPELLING, STRONG_COMPANY, TIME

P, G, L, D, C = "PERSON", "ORG", "LOCATION", "PRODUCT", "CONCEPT"
# (name, other name, kind, company met 0..1, closeness in time 0..1, are they one)
PAIRS = [
    ("Katherine Alvarez", "Kathrine Alvarez", P, 0.0, 1.0, True),
    ("Micheal Ende", "Michael Ende", P, 0.5, 0.2, True),
    ("Phillip Moore", "Philip Moore", P, 0.0, 0.9, True),
    ("Zoë Lima", "Zoe Lima", P, 0.0, 0.0, True),
    ("José Ángel", "Jose Angel", P, 0.0, 0.0, True),
    ("O'Brien", "OBrien", P, 0.0, 0.0, True),
    ("J. Smith", "John Smith", P, 0.5, 0.8, True),
    ("Robert", "Robert Chen", P, 1.0, 1.0, True),
    ("Dr Sara Waller", "Sara Waller", P, 0.0, 0.9, True),
    ("GitHub", "Git Hub", D, 0.0, 0.0, True),
    ("e-mail", "email", C, 0.0, 0.0, True),
    ("The Beatles", "Beatles", G, 0.0, 0.0, True),
    ("Acme", "Acme Inc.", G, 0.0, 0.8, True),
    ("Acme Corporation", "ACME Corp", G, 0.0, 0.0, True),
    ("Siemens", "Seimens", G, 0.0, 0.9, True),
    ("Wellington", "Welington", L, 0.0, 0.9, True),
    ("San José", "San Jose", L, 0.0, 0.0, True),
    ("Postgres-XL", "Postgres XL", D, 0.0, 0.0, True),
    ("ＡＢＣ１２３", "ABC123", D, 0.0, 0.0, True),
    ("Ana's", "Ana", P, 0.0, 0.0, True),
    ("Dr Waller", "Dr Wall", P, 1.0, 1.0, False),
    ("Chase Checking", "Chase Savings", G, 1.0, 1.0, False),
    ("Robert", "Robert Chen", P, 0.2, 1.0, False),
    ("Tigran", "Iran", P, 1.0, 1.0, False),
    ("iPhone 14", "iPhone 15", D, 1.0, 1.0, False),
    ("Rocky II", "Rocky III", D, 1.0, 1.0, False),
    ("Sales Q1", "Sales Q2", C, 1.0, 1.0, False),
    ("version 1.2", "version 1.3", D, 1.0, 1.0, False),
    ("Maria", "Marie", P, 1.0, 1.0, False),
    ("Anna", "Anne", P, 1.0, 1.0, False),
    ("Paul", "Paula", P, 1.0, 1.0, False),
    ("Daniel", "Daniela", P, 1.0, 1.0, False),
    ("Waller", "Weller", P, 1.0, 1.0, False),
    ("Martin", "Marvin", P, 1.0, 1.0, False),
    ("Mr Waller", "Mrs Waller", P, 1.0, 1.0, False),
    ("Jon", "John", P, 0.0, 1.0, False),
    ("Ann Abel", "Anna Bel", P, 1.0, 1.0, False),
    ("Adam", "Adams", P, 1.0, 1.0, False),
    ("Acme Inc", "Acme Corp", G, 1.0, 1.0, False),
    ("Apple", "Apple Music", G, 1.0, 1.0, False),
    ("Bank of Lyon", "Bank of Lyons", G, 1.0, 1.0, False),
    ("Austria", "Australia", L, 1.0, 1.0, False),
    ("Slovakia", "Slovenia", L, 1.0, 1.0, False),
    ("Niger", "Nigeria", L, 1.0, 1.0, False),
    ("Iran", "Iraq", L, 1.0, 1.0, False),
    ("Berlin", "Merlin", L, 1.0, 1.0, False),
    ("New York", "New Yorker", L, 1.0, 1.0, False),
    ("東京", "東京都庁", L, 1.0, 1.0, False),
    ("林芳", "林芬", P, 1.0, 1.0, False),
    ("김민지", "김민수", P, 1.0, 1.0, False),
    ("Иван", "Ивана", P, 1.0, 1.0, False),
    ("Window", "Windows", D, 1.0, 1.0, False),
]


def ours(one: str, other: str, kind: str, company: float, time: float) -> bool:
    alike = likeness(one, other, kind)
    if not alike or not set(sought(one, kind)) & set(spellings(other, kind)):
        return False
    if alike == SAME:
        return True
    if alike == 0.5 and company < STRONG_COMPANY:
        return False
    return SPELLING * alike + COMPANY * company + TIME * time >= ACCEPTED


def plain(one: str, other: str, kind: str, company: float, time: float) -> bool:
    """The formula with the likeness of letters, candidates by trigrams, numbers and extra words refused."""
    a, b = one.casefold(), other.casefold()
    grams = [{f"  {name} "[i : i + 3] for i in range(len(name) + 1)} for name in (a, b)]
    if grams[0] == grams[1]:
        return True
    if len(grams[0] & grams[1]) / len(grams[0] | grams[1]) < 0.3 or re.findall(r"\d+", a) != re.findall(r"\d+", b):
        return False
    if len(a.split()) != len(b.split()):
        return False
    letters = difflib.SequenceMatcher(None, a, b).ratio()
    return SPELLING * letters + COMPANY * company + TIME * time >= ACCEPTED


def test_labelled_pairs_are_told_apart_where_the_plain_formula_errs() -> None:
    wrong = [pair for pair in PAIRS if ours(*pair[:5]) is not pair[5]]
    errs = [pair for pair in PAIRS if plain(*pair[:5]) is not pair[5]]
    assert not wrong
    assert len(errs) > 10 and sum(not pair[5] for pair in errs) > 5


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30), st.sampled_from([P, G, L, D, C]))
def test_likeness_is_the_same_both_ways_and_bounded(one: str, other: str, kind: str) -> None:
    alike = likeness(one, other, kind)
    assert alike == likeness(other, one, kind) and 0.0 <= alike <= 1.0
    assert len(spellings(one, kind)) <= 4 and len(sought(one, kind)) <= 4


@given(
    st.text(alphabet="abc 12IV'é.", min_size=1, max_size=12), st.text(alphabet="abc 12IV'é.", min_size=1, max_size=12)
)
def test_names_that_are_one_by_spelling_alone_find_each_other(one: str, other: str) -> None:
    for kind in (P, G):
        if likeness(one, other, kind) == SAME:
            assert set(sought(one, kind)) & set(spellings(other, kind))
