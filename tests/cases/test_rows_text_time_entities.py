"""Text, time and entities: what no other test asks of a running daemon."""

from __future__ import annotations

from e2e_daemon import Bank


def names(bank: Bank) -> dict[str, int]:
    return {row["canonical_name"]: row["mention_count"] for row in bank.get("/entities")["items"]}


def test_a_natural_question_in_chinese_is_cut_like_the_text(bank: Bank) -> None:
    bank.retain("外币汇率换算由财务部的林芳负责")
    assert bank.texts("现在外币的汇率换算是谁在负责？", arms=["keyword"]) == ["外币汇率换算由财务部的林芳负责"]


def test_words_of_queries_and_texts_without_end_are_bounded(bank: Bank) -> None:
    bank.retain("spam eggs bacon ham " * 2000)
    assert bank.post_recall("spam " * 60_000).status == 200
    assert bank.texts("spam eggs", max_tokens=100_000)


def test_right_to_left_text_is_kept_and_found(bank: Bank) -> None:
    bank.retain("مدير المشروع هو سامي", "Ana wrote \u202edetrevni\u202c here")
    assert bank.texts("سامي", arms=["keyword"]) == ["مدير المشروع هو سامي"]
    assert {row["text"] for row in bank.list()} >= {"Ana wrote \u202edetrevni\u202c here"}


def test_an_event_at_seven_in_the_evening_there_is_an_evening(bank: Bank) -> None:
    bank.retain({"content": "Ana started dinner now", "timestamp": "2026-06-12T19:17:00+08:00"})
    (row,) = bank.list()
    assert "evening" in row["text"] and row["occurred_start"] == "2026-06-12T11:17:00.000000+00:00"


def test_a_reader_by_change_sees_tags_and_validity_each_once(bank: Bank) -> None:
    bank.retain(
        {"content": "Ana owns the fix.", "document_id": "d"}, {"content": "Ben owns the test.", "document_id": "e"}
    )
    seen = max(row["updated_at"] for row in bank.list())

    def changed() -> list[str]:
        nonlocal seen
        rows = bank.list(time_field="updated_at", start=seen) + bank.list(
            time_field="updated_at", start=seen, state="invalidated"
        )
        rows = [row for row in rows if row["updated_at"] > seen]
        seen = max([seen, *(row["updated_at"] for row in rows)])
        return sorted(row["text"] for row in rows)

    assert changed() == []
    assert bank.send("PATCH", "/documents/d", {"tags": ["x"]}).status == 200
    assert (changed(), changed()) == (["Ana owns the fix."], [])
    ben = next(row["id"] for row in bank.list() if row["text"].startswith("Ben"))
    assert bank.send("PATCH", f"/memories/{ben}", {"state": "invalidated"}).status == 200
    assert (changed(), changed()) == (["Ben owns the test."], [])


def test_a_new_person_is_not_the_country_whose_name_theirs_holds(bank: Bank) -> None:
    bank.retain(*[f"The user reads news report {n} about Iran and its economy." for n in range(20)])
    bank.retain("Tigran called user about finance")
    assert names(bank) == {"Iran": 20, "Tigran": 1}


def test_a_corrected_name_is_the_name_given(bank: Bank) -> None:
    bank.retain(*[f"Dr Wall visited ward {n} with Nora." for n in range(6)])
    bank.retain("Dr Waler checked the ward with Nora")
    wrong = next(row["id"] for row in bank.list(limit=50) if "Waler" in row["text"])
    assert bank.send("PATCH", f"/memories/{wrong}", {"entities": ["Dr Waller"]}).body["entities"] == ["Dr Waller"]
    assert names(bank) == {"Dr Wall": 6, "Nora": 6, "Dr Waller": 1}


def test_a_person_and_a_company_of_one_name_are_two(bank: Bank) -> None:
    bank.retain("Apple Martin is a singer", "Apple sells phones")
    assert names(bank) == {"Apple Martin": 1, "Apple": 1}


def test_a_name_in_brackets_is_the_other_name(bank: Bank) -> None:
    bank.retain("Bob (Robert Chen) leads QA", "Robert Chen resigned", "The cafeteria opened")
    assert names(bank)["Robert Chen"] == 2
    assert set(bank.texts("Bob")[:2]) == {"Bob (Robert Chen) leads QA", "Robert Chen resigned"}


def test_the_colleague_asked_for_stands_before_the_sister_of_that_name(bank: Bank) -> None:
    bank.retain("Alice from payroll is on leave", "my sister Alice had a baby")
    assert bank.texts("Alice payroll")[0] == "Alice from payroll is on leave"
