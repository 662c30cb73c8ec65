"""A markdown page as sections and blocks, and edits that leave every other block byte for byte as it was. Pure.

`parse` cuts a text into headings and blocks (a paragraph, a fenced code block, a list item of the outermost level) and
keeps what stands between them, so that `render(parse(text)) == text`. Ids (`s1`, `s1b2`) are those of the text as it
was parsed; they stay with their parts while edits are applied.

    edited = apply_edits(text, [{"op": "append_block", "section": "s1", "text": "- Ana moved to Lyon."}])
    edited.text, edited.applied, edited.skipped
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

OPERATIONS = (
    "add_section",
    "remove_section",
    "rename_section",
    "replace_section_blocks",
    "append_block",
    "insert_block",
    "replace_block",
    "remove_block",
)

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_PARAGRAPH, _LINE = "\n\n", "\n"


@dataclass(slots=True)
class Block:
    """A piece of text; `glue` is what stands before it."""

    id: str
    raw: str
    glue: str

    @property
    def item(self) -> bool:
        return _ITEM.match(self.raw) is not None


@dataclass(slots=True)
class Section:
    """A heading with its blocks, up to the next heading of whatever level. The lead, `s0`, has no heading."""

    id: str
    heading: str = ""
    glue: str = ""
    blocks: list[Block] = field(default_factory=list)

    @property
    def level(self) -> int:
        found = _HEADING.match(self.heading)
        return 0 if found is None else len(found[1])

    @property
    def title(self) -> str:
        found = _HEADING.match(self.heading)
        return "" if found is None else re.sub(r"(?:^|[ \t]+)#+[ \t]*$", "", self.heading[found.end() :]).strip()


@dataclass(slots=True)
class Page:
    """Sections in order, the lead first, and what stands behind the last block."""

    sections: list[Section]
    tail: str = ""

    def render(self) -> str:
        parts: list[str] = []
        for section in self.sections:
            if section.heading:
                parts += (section.glue, section.heading)
            for block in section.blocks:
                parts += (block.glue, block.raw)
        return "".join((*parts, self.tail))

    def section(self, section_id: str) -> Section | None:
        return next((one for one in self.sections if one.id == section_id), None)

    def titled(self, title: str) -> Section | None:
        """The first section with that title."""
        return next((one for one in self.sections if one.heading and one.title == title), None)

    def block(self, block_id: str) -> tuple[Section, int] | None:
        """A block's section, and where it stands in it."""
        for section in self.sections:
            for place, block in enumerate(section.blocks):
                if block.id == block_id:
                    return section, place
        return None

    def blocks(self) -> Iterator[Block]:
        for section in self.sections:
            yield from section.blocks


def parse(text: str) -> Page:
    """A text as sections and blocks."""
    page = Page([Section("s0")])
    end = 0
    for start, stop, heading in _units(text):
        section = page.sections[-1]
        if heading:
            page.sections.append(Section(f"s{len(page.sections)}", text[start:stop], text[end:start]))
        else:
            section.blocks.append(Block(f"{section.id}b{len(section.blocks) + 1}", text[start:stop], text[end:start]))
        end = stop
    page.tail = text[end:]
    return page


def _units(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, is a heading) of each heading and block."""
    start, end = -1, 0
    fence = ""
    blank = item = False
    at = 0
    for line in text.split("\n"):
        first, at = at, at + len(line) + 1
        last = first + len(line)
        if fence:
            if _closes(line, fence):
                fence = ""
            end = last
            continue
        if not line.strip():
            blank = True
            continue
        heading = _HEADING.match(line) is not None
        goes_on = start >= 0 and not heading
        if blank:
            # Behind a blank line only what is indented still belongs to a list item.
            goes_on = goes_on and item and line[0] in " \t"
        elif _ITEM.match(line):
            goes_on = False
        if not goes_on:
            if start >= 0:
                yield start, end, False
            start, item = first, _ITEM.match(line) is not None
        if heading:
            yield first, last, True
            start, item = -1, False
        else:
            opened = _FENCE.match(line)
            fence = opened[1] if opened is not None else ""
        end, blank = last, False
    if start >= 0:
        yield start, end, False


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and set(mark) == {fence[0]}


# -- edits -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edited:
    """A text after edits: those that were `applied`, in order, and those `skipped`, each with a `reason`."""

    text: str
    applied: tuple[dict[str, Any], ...]
    skipped: tuple[dict[str, Any], ...]


class _Skip(Exception):
    """Why an edit cannot be applied."""


def apply_edits(text: str, edits: Sequence[Any]) -> Edited:
    """Apply edits one after the other; one that does not fit is skipped, and the others go on."""
    page = parse(text)
    applied: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    for number, edit in enumerate(edits):
        if not isinstance(edit, dict):
            skipped.append({"op": None, "reason": "An edit must be an object."})
            continue
        try:
            act = _ACTS.get(str(edit.get("op")))
            if act is None:
                raise _Skip("There is no such operation.")
            changed = copy.deepcopy(page)
            act(changed, edit, f"n{number + 1}")
            if _shape(parse(changed.render())) != _shape(changed):
                # Behind an open code block, say, a new paragraph would become code.
                raise _Skip("The text there would run into what it does not name.")
            page = changed
        except _Skip as why:
            skipped.append({**edit, "reason": str(why)})
        else:
            applied.append(dict(edit))
    return Edited(page.render(), tuple(applied), tuple(skipped))


def _shape(page: Page) -> list[tuple[str, list[str]]]:
    return [(section.heading, [block.raw for block in section.blocks]) for section in page.sections]


def _section(page: Page, edit: dict[str, Any]) -> Section:
    found = page.section(str(edit.get("section")))
    if found is None:
        raise _Skip("There is no such section.")
    return found


def _block(page: Page, block_id: Any) -> tuple[Section, int]:
    found = page.block(str(block_id))
    if found is None:
        raise _Skip("There is no such block.")
    return found


def _new_blocks(edit: dict[str, Any], name: str, *, may_be_empty: bool = False) -> list[Block]:
    """What an edit brings, as blocks of their own."""
    given = edit.get("text", edit.get("blocks"))
    text = "\n\n".join(map(str, given)) if isinstance(given, list | tuple) else str(given or "")
    text = text.strip()
    if not text:
        if may_be_empty:
            return []
        raise _Skip("The text is empty.")
    page = parse(text)
    if len(page.sections) > 1:
        raise _Skip("A block cannot hold a heading; use add_section.")
    fence = ""
    for line in text.split("\n"):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif (opened := _FENCE.match(line)) is not None:
            fence = opened[1]
    if fence:
        raise _Skip("A code block is not closed.")
    return [Block(f"{name}b{place}", one.raw, one.glue) for place, one in enumerate(page.blocks(), start=1)]


def _heading(edit: dict[str, Any], level: int) -> str:
    title = str(edit.get("heading") or "").strip().lstrip("#").strip()
    if not title or "\n" in title:
        raise _Skip("A heading is one line of text.")
    return f"{'#' * level} {title}"


def _put(section: Section, place: int, blocks: list[Block]) -> None:
    section.blocks[place:place] = blocks


def _mend(page: Page) -> None:
    """Blank lines where parts that did not stand beside each other now do."""
    before: Block | Section | None = None
    for section in page.sections:
        parts: list[Block | Section] = [section] if section.heading else []
        for part in (*parts, *section.blocks):
            if before is None:
                part.glue = part.glue.lstrip("\n") if part.glue.strip(" \t\r\n") == "" else part.glue
            elif part.glue.count("\n") < 2 and not _may_touch(before, part):
                part.glue = _PARAGRAPH
            elif not part.glue:
                part.glue = _LINE
            before = part


def _may_touch(before: Block | Section, part: Block | Section) -> bool:
    """Whether two parts stay two with a line break alone between them."""
    if "\n" not in part.glue:
        return False
    if isinstance(before, Section) or isinstance(part, Section):
        return True
    return before.item and part.item


def _glued(before: Block | None, blocks: list[Block]) -> list[Block]:
    """New blocks with what stands before the first of them."""
    first = blocks[0]
    first.glue = _LINE if before is not None and before.item and first.item else _PARAGRAPH
    return blocks


def _add_section(page: Page, edit: dict[str, Any], name: str) -> None:
    levels = [one.level for one in page.sections if one.heading]
    level = edit.get("level")
    level = level if isinstance(level, int) and 1 <= level <= 6 else min(levels, default=2)
    heading = _heading(edit, level)
    blocks = _new_blocks(edit, name, may_be_empty=True)
    place = len(page.sections)
    if edit.get("after") is not None:
        anchor = page.section(str(edit["after"]))
        if anchor is None:
            raise _Skip("There is no such section.")
        place = page.sections.index(anchor) + 1
    section = Section(name, heading, _PARAGRAPH, _glued(None, blocks) if blocks else [])
    page.sections.insert(place, section)
    _mend(page)


def _remove_section(page: Page, edit: dict[str, Any], name: str) -> None:
    section = _section(page, edit)
    if section.heading:
        page.sections.remove(section)
    else:
        section.blocks.clear()
    _mend(page)


def _rename_section(page: Page, edit: dict[str, Any], name: str) -> None:
    section = _section(page, edit)
    if not section.heading:
        raise _Skip("The lead has no heading.")
    section.heading = _heading(edit, section.level)


def _replace_section_blocks(page: Page, edit: dict[str, Any], name: str) -> None:
    section = _section(page, edit)
    blocks = _new_blocks(edit, name)
    section.blocks = _glued(None, blocks)
    _mend(page)


def _append_block(page: Page, edit: dict[str, Any], name: str) -> None:
    section = _section(page, edit)
    blocks = _new_blocks(edit, name)
    before = section.blocks[-1] if section.blocks else None
    _put(section, len(section.blocks), _glued(before, blocks))
    _mend(page)


def _insert_block(page: Page, edit: dict[str, Any], name: str) -> None:
    after = edit.get("after") is not None
    section, place = _block(page, edit.get("after") if after else edit.get("before"))
    place += after
    blocks = _new_blocks(edit, name)
    before = section.blocks[place - 1] if place else None
    if place < len(section.blocks) and blocks[-1].item and section.blocks[place].item:
        section.blocks[place].glue = _LINE
    _put(section, place, _glued(before, blocks))
    _mend(page)


def _replace_block(page: Page, edit: dict[str, Any], name: str) -> None:
    section, place = _block(page, edit.get("block"))
    blocks = _new_blocks(edit, name)
    blocks[0].glue = section.blocks[place].glue
    blocks[0].id = section.blocks[place].id
    section.blocks[place : place + 1] = blocks
    _mend(page)


def _remove_block(page: Page, edit: dict[str, Any], name: str) -> None:
    section, place = _block(page, edit.get("block"))
    gone = section.blocks.pop(place)
    if place < len(section.blocks):
        section.blocks[place].glue = gone.glue
    _mend(page)


_ACTS = {
    "add_section": _add_section,
    "remove_section": _remove_section,
    "rename_section": _rename_section,
    "replace_section_blocks": _replace_section_blocks,
    "append_block": _append_block,
    "insert_block": _insert_block,
    "replace_block": _replace_block,
    "remove_block": _remove_block,
}


def outline(text: str) -> str:
    """A text with the id of each part in front of it, as a model is shown what it may edit."""
    lines: list[str] = []
    for section in parse(text).sections:
        if section.heading or section.blocks:
            lines.append(f"[{section.id}] {section.heading or '(lead, no heading)'}")
        lines += [f"[{block.id}] {block.raw}" for block in section.blocks]
    return "\n".join(lines)
