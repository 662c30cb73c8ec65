"""From items to a document's new state: which chunks stay, which are new, and behind whom each unit is embedded.

Pure functions. A unit is embedded behind the live unit before it in its document (or, for a turn without document,
behind the turn before it), unless tags or trust differ: its vectors carry that text, so it must be one the same readers
may see. Late chunking: Günther et al., "Late Chunking", arXiv 2409.04701.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from recalld.actors.messages import ChunkWrite, DocumentState, Move, StoredChunk, StoredUnit
from recalld.actors.retain.chunking import chunk_text
from recalld.actors.retain.extraction import Fact
from recalld.actors.retain.items import RetainItem
from recalld.actors.trust.instructions import same_source

GLUE = "\n"
TURN_GAP_US = 30 * 60 * 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NewFact:
    """An extracted fact that becomes a unit, with its item and chunk."""

    id: str
    fact: Fact
    item: RetainItem
    chunk: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a unit stands in its document: a stored one or a new one, and what it is embedded behind."""

    unit: StoredUnit | NewFact
    before: StoredUnit | NewFact | None

    @property
    def stale(self) -> bool:
        """A stored unit whose vectors were made behind something else."""
        if isinstance(self.unit, NewFact):
            return False
        return self.unit.predecessor != (
            self.before.uid if isinstance(self.before, StoredUnit) else None
        ) or isinstance(self.before, NewFact)


@dataclass(slots=True)
class DocumentDraft:
    """A document being planned: its items in order, and the chunks of its new text."""

    document_id: str
    items: list[RetainItem]
    undocumented: bool
    append: bool
    chunks: list[DraftChunk] = field(default_factory=list)
    merged: bool = False
    """An append whose text was merged with the stored text, so the whole document is written anew."""


@dataclass(frozen=True, slots=True)
class DraftChunk:
    """One chunk of the new text. `kept` is the stored chunk with the same text, whose units stay.

    Kept units carry the tags of the item; `retagged` says that those are not the ones they had.
    """

    text: str
    digest: str
    glue: str
    item: RetainItem
    kept: StoredChunk | None = None
    retagged: bool = False
    extractor: str = ""
    reading: str = ""
    """What a model is to read it as, and against what; both "" for the rules."""


def digest(text: str) -> str:
    """Identity of a chunk's text: the first 32 hex digits of its sha256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def group(items: Sequence[RetainItem], new_ids: Iterator[str]) -> list[DocumentDraft]:
    """Items as documents, in order of first mention.

    Items that name the same document fold into it. Without any name the whole call is one document; when some items
    have names, each of the others is one of its own.
    """
    drafts: dict[str, DocumentDraft] = {}
    named = any(item.document_id is not None for item in items)
    shared = None if named or not items else next(new_ids)
    for item in items:
        document_id = item.document_id or shared or next(new_ids)
        draft = drafts.get(document_id)
        if draft is None:
            drafts[document_id] = DocumentDraft(
                document_id, [item], item.document_id is None, item.update_mode == "append"
            )
        else:
            draft.items.append(item)
    return list(drafts.values())


def lay_out(
    draft: DocumentDraft,
    state: DocumentState,
    size: int,
    structured_size: int | None,
    *,
    extractor: str = "",
    label_tags: tuple[str, ...] = (),
    fresh: bool = False,
) -> None:
    """Fill in `draft.chunks`: the items' texts cut, and matched with stored chunks of the same text in order.

    With a model (`extractor`) a stored chunk matches only if it was read the same way; with `fresh` none does.
    `label_tags` are how tags begin that the extractor gave, which an item does not name.
    """
    items = draft.items
    if draft.append and state.text is not None and _mergeable(state.text, items, state.tags):
        merged = _merge_arrays([state.text, *(item.content for item in items)])
        items = [replace(items[-1], content=merged)]
        draft.merged = True
    pieces: list[tuple[str, str, RetainItem]] = []
    continues = draft.append and not draft.merged and state.revision > 0
    for item in items:
        glue = GLUE if pieces or continues else ""
        for text in chunk_text(item.content, size, structured_size):
            pieces.append((text, glue, item))
            glue = ""
    if draft.append and not draft.merged:
        draft.chunks = [DraftChunk(text, digest(text), glue, item) for text, glue, item in pieces]
        return
    stored: dict[str, list[StoredChunk]] = {}
    for chunk in () if fresh else state.chunks:
        if chunk.extractor == extractor or not extractor:
            stored.setdefault(chunk.digest, []).append(chunk)
    for text, glue, item in pieces:
        name = digest(text)
        same = stored.get(name)
        kept = same.pop(0) if same else None
        if kept is not None and item.trust and not all(same_source(unit.trust, item.trust) for unit in kept.units):
            kept = None
        retagged = kept is not None and any(_given(unit.tags, label_tags) != _tags(item.tags) for unit in kept.units)
        if kept is not None and retagged and any(tag.startswith(label_tags) for u in kept.units for tag in u.tags):
            kept, retagged = None, False
        if kept is not None and kept.shared:
            held = retagged or (
                kept.mention_tags is not None and _given(kept.mention_tags, label_tags) != _tags(item.tags)
            )
            # Claims are shared under the same tags alone: under others the chunk is read anew.
            kept, retagged = (None, False) if held else (kept, retagged)
        if kept is not None and retagged:
            kept = replace(kept, units=tuple(replace(unit, tags=_tags(item.tags)) for unit in kept.units))
        draft.chunks.append(DraftChunk(text, name, glue, item, kept, retagged))


def places(
    draft: DocumentDraft, state: DocumentState, facts: Sequence[NewFact], turn_before: StoredUnit | None
) -> list[Place]:
    """Every unit of the document's new state in order, with the unit it is embedded behind.

    An append lists only what is new, behind the document's last unit; `turn_before` stands before an undocumented text.
    """
    by_chunk: dict[int, list[NewFact]] = {}
    for fact in facts:
        by_chunk.setdefault(fact.chunk, []).append(fact)
    before: StoredUnit | NewFact | None = turn_before
    if draft.append and not draft.merged and state.chunks:
        before = next((unit for chunk in reversed(state.chunks) for unit in reversed(chunk.units)), None)
    found: list[Place] = []
    staying = {chunk.kept.index for chunk in draft.chunks if chunk.kept}
    for index, chunk in enumerate(draft.chunks):
        units: Iterable[StoredUnit | NewFact] = chunk.kept.units if chunk.kept else by_chunk.get(index, ())
        for unit in units:
            if isinstance(unit, StoredUnit) and unit.behind is not None and unit.behind_chunk in staying:
                before = unit.behind
            found.append(Place(unit, before if before is not None and _same_readers(before, unit) else None))
            before = unit
    return found


def moves(drafts: Sequence[DocumentDraft], states: Sequence[DocumentState]) -> list[Move]:
    """Where the units go whose chunks a request takes away, if other places still say the same."""
    staying: dict[tuple[str, int], bool] = {}
    going: list[StoredUnit] = []
    for draft, state in zip(drafts, states, strict=True):
        if draft.append and not draft.merged:
            continue
        kept = {chunk.kept.index for chunk in draft.chunks if chunk.kept}
        for chunk in state.chunks:
            staying[state.document_id, chunk.index] = chunk.index in kept
            going += () if chunk.index in kept else chunk.units
    found: dict[int, Move] = {}
    for unit in going:
        move = next((one for one in unit.moves if staying.get((one.document_id, one.chunk), True)), None)
        if move is not None:
            found[unit.uid] = move
    gone = {unit.uid for unit in going}
    return [_behind_moves(move, gone, found) for move in found.values()]


def _behind_moves(move: Move, gone: Container[int], found: Mapping[int, Move]) -> Move:
    """A predecessor that moves as well is named by its id, with the text it has there; one that goes is none."""
    if move.before not in gone:
        return move
    other = found.get(move.before)
    if other is None or other.unit == move.unit:
        return replace(move, before=None, before_text="")
    return replace(move, before=other.unit, before_text=other.text)


def turns_behind(
    draft: DocumentDraft, state: DocumentState, found: Sequence[Place], written: Container[int]
) -> list[Place]:
    """Followers outside the document's live units whose predecessor goes, or parts from them by its tags.

    Live ones now stand behind the document's last unit; retired ones, which only mind the tags, behind nothing.
    `written` are uids of documents of the same request, placed there.
    """
    if draft.append and not draft.merged:
        return []
    staying = {place.unit.uid: place.unit for place in found if isinstance(place.unit, StoredUnit)}
    last = found[-1].unit if found else None
    turns = []
    for unit in state.followers:
        before = staying.get(unit.predecessor)
        if unit.uid in written or (before is None and unit.retired):
            continue
        if before is None or not _same_readers(before, unit):
            joins = last is not None and not unit.retired and not unit.elsewhere and _same_readers(last, unit)
            turns.append(Place(unit, last if joins else None))
    return turns


def _same_readers(a: StoredUnit | NewFact, b: StoredUnit | NewFact) -> bool:
    return _tags(a.tags) == _tags(b.tags) and _trust(a) == _trust(b)


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as units store them."""
    return tuple(sorted(set(tags)))


def _given(tags: Iterable[str], label_tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags without those that labels gave."""
    return _tags(tag for tag in tags if not label_tags or not tag.startswith(label_tags))


def _trust(unit: StoredUnit | NewFact) -> str:
    return unit.trust if isinstance(unit, StoredUnit) else unit.fact.trust


def text_of(unit: StoredUnit | NewFact | None) -> str:
    return "" if unit is None else unit.text if isinstance(unit, StoredUnit) else unit.fact.text


def chunk_writes(draft: DocumentDraft, facts: Sequence[NewFact]) -> tuple[ChunkWrite, ...]:
    """The draft's chunks as the shard is told of them."""
    ids: dict[int, list[str]] = {}
    for fact in facts:
        ids.setdefault(fact.chunk, []).append(fact.id)
    return tuple(
        ChunkWrite(
            chunk.digest,
            chunk.glue,
            keep=chunk.kept.index,
            tags=_tags(chunk.item.tags) if chunk.retagged else None,
        )
        if chunk.kept
        else ChunkWrite(
            chunk.digest,
            chunk.glue,
            chunk.text,
            units=tuple(ids.get(index, ())),
            extractor=chunk.extractor,
            reading=chunk.reading,
        )
        for index, chunk in enumerate(draft.chunks)
    )


def day(instant: int | None) -> str:
    """YYYY-MM-DD of an instant, "" when unknown."""
    return "" if instant is None else (_EPOCH + timedelta(microseconds=instant)).strftime("%Y-%m-%d")


def _mergeable(text: str, items: Sequence[RetainItem], tags: Iterable[str]) -> bool:
    """Whether an append makes one JSON array: under other tags it must not, since merged text is read by both sides."""
    same = all(_tags(item.tags) == _tags(tags) for item in items)
    return same and _is_array(text) and _is_array(items[0].content)


def _is_array(text: str) -> bool:
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return False
    try:
        return isinstance(json.loads(stripped), list)
    except (ValueError, RecursionError):
        return False


def _merge_arrays(texts: Sequence[str]) -> str:
    """Several JSON arrays as one, their elements' text untouched."""
    bodies = [text.strip()[1:-1].strip() for text in texts if _is_array(text)]
    return "[" + ",\n".join(body for body in bodies if body) + "]"
