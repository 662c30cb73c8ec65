"""What people state of themselves in Chinese, Japanese, Spanish and German is read as in English."""

from __future__ import annotations

import pytest

from recalld.actors.retain.attribute_languages import read_claim

CLAIMS = {
    "我住在厦门。": ("I", "lives_in", "厦门", False),
    "我不再住在北京了。": ("I", "lives_in", "北京", True),
    "我不喜欢爵士乐": ("I", "likes:爵士乐", "likes", True),
    "我讨厌香菜。": ("I", "likes:香菜", "dislikes", False),
    "妹妹林芳对花生过敏。": ("妹妹林芳", "allergic_to:花生", "花生", False),
    "我最喜欢的球员是李娜": ("I", "favourite:球员", "李娜", False),
    "私は図書館で働いています。": ("I", "works_at", "図書館", False),
    "妹の凛は卵アレルギーです。": ("妹の凛", "allergic_to:卵", "卵", False),
    "私はもう大阪に住んでいません": ("I", "lives_in", "大阪", True),
    "コーヒーは好きではない": ("I", "likes:コーヒー", "likes", True),
    "Vivo en Oviedo.": ("I", "lives_in", "oviedo", False),
    "Ya no vivo en Madrid.": ("I", "lives_in", "madrid", True),
    "Mi hermana Elisa vive en Lugo": ("Mi hermana Elisa", "lives_in", "lugo", False),
    "No me gusta el jazz.": ("I", "likes:jazz", "likes", True),
    "Soy alérgico a las nueces.": ("I", "allergic_to:nueces", "nueces", False),
    "Ich wohne nicht mehr in Kiel.": ("I", "lives_in", "kiel", True),
    "Mein Onkel Hinrich wohnt in Gera.": ("Mein Onkel Hinrich", "lives_in", "gera", False),
    "Ich mag keinen Kaffee.": ("I", "likes:kaffee", "likes", True),
    "Mein Lieblingsspieler ist Özil.": ("I", "favourite:spieler", "özil", False),
}


@pytest.mark.parametrize("text", CLAIMS)
def test_an_attribute_has_its_person_its_value_and_whether_it_is_denied(text: str) -> None:
    assert read_claim(text) == CLAIMS[text]


@pytest.mark.parametrize(
    "text",
    [
        "上周洗衣机坏了。",
        "如果我住在厦门就好了",
        "Der Ofen funktioniert nicht",
        "Si viviera en Madrid, iría.",
        "He lives in Lyon.",
        "他们喜欢吃面",
        "",
    ],
)
def test_what_claims_no_attribute_of_somebody_gives_none(text: str) -> None:
    assert read_claim(text) is None
