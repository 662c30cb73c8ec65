"""Edits of a page: what they name changes, and nothing else does."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.actors.pages.blocks import OPERATIONS, apply_edits, outline, parse

PAGE = """Lead text
over two lines.

# Title

First paragraph.

- one
  with more
- two

  still two
- three

```python
# no heading

x = 1
```

## Part

1. first
2. second
"""

LINES = st.sampled_from(
    [
        "",
        "",
        "text",
        "more text",
        "- item",
        "  indented",
        "1. first",
        "# Head",
        "## Part",
        "```",
        "~~~",
        "\t",
        "a\r",
        "#x",
    ]
)
TEXTS = st.lists(LINES, max_size=25).map("\n".join)
NAMES = st.builds(lambda s, b: f"s{s}b{b}", st.integers(0, 3), st.integers(1, 4))
NEW = st.one_of(TEXTS, st.sampled_from(["New paragraph.", "- new item", "- a\n- b", "one\n\ntwo"]))
EDITS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(OPERATIONS),
        "section": st.integers(0, 4).map(lambda n: f"s{n}"),
        "block": NAMES,
        "text": NEW,
    },
    optional={"before": NAMES, "after": NAMES, "heading": st.sampled_from(["Name", "## Name", "", "x\ny"])},
)


def raws(text: str) -> list[str]:
    return [block.raw for block in parse(text).blocks()]


@given(st.one_of(st.text(), TEXTS))
def test_a_text_is_the_sum_of_its_parts(text: str) -> None:
    assert parse(text).render() == text


def test_blocks_are_paragraphs_items_and_code() -> None:
    page = parse(PAGE)
    assert [(one.id, one.level, one.title) for one in page.sections] == [
        ("s0", 0, ""),
        ("s1", 1, "Title"),
        ("s2", 2, "Part"),
    ]
    assert [block.raw for block in page.sections[1].blocks] == [
        "First paragraph.",
        "- one\n  with more",
        "- two\n\n  still two",
        "- three",
        "```python\n# no heading\n\nx = 1\n```",
    ]
    assert [block.id for block in page.sections[2].blocks] == ["s2b1", "s2b2"]
    assert outline(PAGE).splitlines()[0] == "[s0] (lead, no heading)"


@given(st.one_of(TEXTS, st.just(PAGE)), st.lists(EDITS, max_size=4))
@settings(max_examples=300, deadline=None)
def test_a_block_that_no_edit_names_stays_byte_for_byte(text: str, edits: list[dict[str, Any]]) -> None:
    done = apply_edits(text, edits)
    named = set()
    for edit in done.applied:
        if edit["op"] in ("remove_section", "replace_section_blocks"):
            section = parse(text).section(edit["section"])
            named |= {block.id for block in section.blocks} if section else set()
        elif edit["op"] in ("replace_block", "remove_block"):
            named.add(edit["block"])
    kept = [block.raw for block in parse(text).blocks() if block.id not in named]
    left = iter(raws(done.text))
    assert all(any(raw == found for found in left) for raw in kept)
    assert len(done.applied) + len(done.skipped) == len(edits)
    assert all(one["reason"] for one in done.skipped)


@given(st.one_of(TEXTS, st.just(PAGE)))
def test_no_edit_changes_nothing(text: str) -> None:
    assert apply_edits(text, []).text == text
    assert apply_edits(text, [{"op": "remove_block", "block": "s9b9"}]).text == text


def edited(*edits: dict[str, Any], text: str = "# A\n\npara\n\n- x\n- y\n\n# B\n\nend\n") -> str:
    done = apply_edits(text, edits)
    assert not done.skipped, done.skipped
    return done.text


def test_each_operation_does_what_its_name_says() -> None:
    assert (
        edited({"op": "append_block", "section": "s1", "text": "- z"}) == "# A\n\npara\n\n- x\n- y\n- z\n\n# B\n\nend\n"
    )
    assert edited({"op": "append_block", "section": "s1", "text": "tail"}).startswith(
        "# A\n\npara\n\n- x\n- y\n\ntail\n\n# B"
    )
    assert edited({"op": "insert_block", "before": "s1b2", "text": "- w"}).startswith("# A\n\npara\n\n- w\n- x\n- y\n")
    assert edited({"op": "insert_block", "after": "s1b1", "text": "mid"}).startswith("# A\n\npara\n\nmid\n\n- x\n- y\n")
    assert edited({"op": "replace_block", "block": "s1b2", "text": "- X"}).startswith("# A\n\npara\n\n- X\n- y\n")
    assert edited({"op": "remove_block", "block": "s1b1"}).startswith("# A\n\n- x\n- y\n\n# B")
    assert edited({"op": "remove_block", "block": "s1b2"}).startswith("# A\n\npara\n\n- y\n\n# B")
    assert edited({"op": "remove_block", "block": "s1b1"}, text="# A\n\n- x\n- y\n") == "# A\n\n- y\n"
    assert edited({"op": "rename_section", "section": "s2", "heading": "C"}).endswith("# C\n\nend\n")
    assert edited({"op": "remove_section", "section": "s2"}) == "# A\n\npara\n\n- x\n- y\n"
    assert edited({"op": "replace_section_blocks", "section": "s1", "text": "new"}) == "# A\n\nnew\n\n# B\n\nend\n"
    assert edited({"op": "add_section", "heading": "N", "text": "body", "after": "s1"}).endswith(
        "- y\n\n# N\n\nbody\n\n# B\n\nend\n"
    )
    assert edited({"op": "add_section", "heading": "Only", "text": "body"}, text="") == "## Only\n\nbody"


def test_edits_that_do_not_fit_are_told_apart_and_the_others_go_on() -> None:
    edits = [
        {"op": "append_block", "section": "s1", "text": "## no"},
        {"op": "append_block", "section": "s1", "text": "```\nopen"},
        {"op": "replace_block", "block": "s7b1", "text": "x"},
        {"op": "burn_section", "section": "s1"},
        "nonsense",
        {"op": "rename_section", "section": "s0", "heading": "x"},
        {"op": "append_block", "section": "s1", "text": "fine"},
    ]
    done = apply_edits("# A\n\none\n", edits)
    assert (len(done.applied), len(done.skipped)) == (1, 6)
    assert done.text == "# A\n\none\n\nfine\n"
