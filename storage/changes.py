"""What can happen to a bank, as typed changes. `Applier.apply` is the only code that carries one out.

The change log keeps each change's kind, numbers and instants, never content: content stands once, in the tables, so
erasing it there erases it everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recalld.storage.audit import AuditRecord
from recalld.storage.ledger import LedgerCall
from recalld.storage.pages import PagesChanged
from recalld.storage.records import (
    BankRecord,
    ChunkRecord,
    DocumentRecord,
    EntityChange,
    MentionRecord,
    OperationRecord,
    PreparedUnit,
    UnitRecord,
)


@dataclass(frozen=True, slots=True)
class NewUnit:
    """A prepared unit with its place: document, chunk, thread, and its neighbour before it (-1: none)."""

    unit: PreparedUnit
    uid: int
    document: int
    document_id: str
    chunk_index: int
    chunk_id: str
    thread: int
    prev: int
    predecessor: int | None
    causes: tuple[int, ...] = ()
    similar: tuple[tuple[int, float], ...] = ()
    undocumented: bool = False
    former: UnitRecord | None = None
    """The unit under the same id that it continues: it keeps what that one claimed and what became of it."""
    proof: int = 1
    recorded_at: int | None = None
    cause_weights: tuple[float, ...] = ()
    """How strong each of `causes` is; 1 where none is given."""
    sources: tuple[int, ...] = ()
    """The units an observation is built on."""
    entities: tuple[int, ...] | None = None
    """The entities it names, where they are known and not to be found by its mentions of them."""
    like: int = -1
    """The stored unit that says the same: its vectors are taken."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """New vectors of a stored unit whose predecessor changed; a predecessor may be named by a new unit's id."""

    uid: int
    vectors: bytes
    scales: bytes
    token_vectors: bytes
    token_ids: bytes
    predecessor: int | str | None


@dataclass(frozen=True, slots=True)
class BankStored:
    record: BankRecord


@dataclass(frozen=True, slots=True)
class BankErased:
    """The bank and everything in it."""


@dataclass(frozen=True, slots=True)
class UnitsAdded:
    units: tuple[NewUnit, ...]
    at: int


@dataclass(frozen=True, slots=True)
class UnitsRetired:
    """Known time ends for the units: replaced, or invalidated with a reason. They stay readable as of before.

    `unchunked`: the chunk they came from goes too, so they must not name it any more.
    """

    uids: tuple[int, ...]
    at: int
    state: str = "valid"
    unchunked: bool = False
    continued: bool = False
    """Observations of which the same write adds the next version: what they were built on stays consolidated."""


@dataclass(frozen=True, slots=True)
class End:
    """Why a unit ends: `by` names the unit that took its place ("": a person ended it).

    `until` is the last instant it was true, where another took its place and it names no end itself.
    """

    uid: int
    state: str
    reason: str
    by: str = ""
    until: int | None = None


@dataclass(frozen=True, slots=True)
class UnitsEnded:
    """Known time ends for units that stay in their documents' text: superseded or invalidated."""

    ends: tuple[End, ...]
    at: int


@dataclass(frozen=True, slots=True)
class UnitsRestored:
    """Units that were ended are current again, as if they had never been ended."""

    uids: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class UnitsLinked:
    """Links of one kind between a stored unit and others: (uid, weight)."""

    uid: int
    others: tuple[tuple[int, float], ...]
    kind: int
    at: int


@dataclass(frozen=True, slots=True)
class MentionsAdded:
    mentions: tuple[MentionRecord, ...]
    at: int


@dataclass(frozen=True, slots=True)
class MentionsRemoved:
    """Mentions go, each named by its unit's id and its number."""

    mentions: tuple[tuple[str, int], ...]
    at: int


@dataclass(frozen=True, slots=True)
class MentionsMoved:
    """The chunks of mentions now stand elsewhere in their document: {(unit id, number): (chunk index, chunk id)}."""

    places: dict[tuple[str, int], tuple[int, str]]
    at: int


@dataclass(frozen=True, slots=True)
class BeliefMove:
    """A judgement of a unit for an opinion, both by id; or, with a `value` and no unit, a confidence given by hand.

    `founds`: the opinion was formed on it, so it is in what the opinion began with and moves nothing.
    """

    opinion: str
    judgement: str
    unit: str = ""
    reason: str = ""
    value: float | None = None
    founds: bool = False


@dataclass(frozen=True, slots=True)
class BeliefsMoved:
    """Judgements of one judge, in order. `step` is what a confirmation moves; below `floor` an opinion is retired.

    `formed` are opinions that `made_by` formed in this write.
    """

    moves: tuple[BeliefMove, ...]
    at: int
    step: float
    floor: float
    by: str = "rules"
    formed: tuple[str, ...] = ()
    made_by: str = "retain"


@dataclass(frozen=True, slots=True)
class Audited:
    """Entries of the audit log; those that began before `keep_from` (µs) go, some with each write."""

    entries: tuple[AuditRecord, ...]
    keep_from: int


@dataclass(frozen=True, slots=True)
class FactFailed:
    """A fact that could not be consolidated; it is tried again from `next_at` on."""

    uid: int
    attempts: int
    next_at: int
    error: str


@dataclass(frozen=True, slots=True)
class FactsConsolidated:
    """What became of facts in a consolidation: `done`, `failed`, or `pending` again, with nothing built on them."""

    at: int
    done: tuple[int, ...] = ()
    failed: tuple[FactFailed, ...] = ()
    pending: tuple[int, ...] = ()
    everything: bool = False
    """All facts of the bank are pending again."""
    recovered: bool = False
    """Those that failed are pending again."""


@dataclass(frozen=True, slots=True)
class UnitsErased:
    """Content and all derived from it is removed for every instant."""

    uids: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class UnitsReembedded:
    embeddings: tuple[Embedding, ...]
    at: int


@dataclass(frozen=True, slots=True)
class UnitsRelinked:
    """New neighbours before some units: {uid: prev}, -1 for none."""

    prev: dict[int, int]
    at: int


@dataclass(frozen=True, slots=True)
class UnitsMoved:
    """The units' chunk now stands elsewhere in its document: {uid: (chunk index, chunk id)}."""

    places: dict[int, tuple[int, str]]
    at: int


@dataclass(frozen=True, slots=True)
class UnitsRetagged:
    uids: tuple[int, ...]
    tags: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class DocumentStored:
    """A document with its chunks: `chunks` are written, indexes in `dropped` removed."""

    record: DocumentRecord
    chunks: tuple[ChunkRecord, ...] = ()
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentErased:
    number: int
    at: int


@dataclass(frozen=True, slots=True)
class OperationStored:
    record: OperationRecord
    payload: bytes | None = None
    """Written when given; `b""` removes it."""


@dataclass(frozen=True, slots=True)
class OperationErased:
    operation_id: str


@dataclass(frozen=True, slots=True)
class CallsRecorded:
    """Model calls of the bank; `readings` are (operation id, reading, facts as bytes) that they paid for.

    Calls from before `keep_from` (µs) go, some with each write.
    """

    calls: tuple[LedgerCall, ...]
    keep_from: int
    readings: tuple[tuple[str, str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class EntitiesChanged:
    """Entities merged or split by hand. A split of units makes entity `record.part`, which is new, with this name."""

    record: EntityChange
    entity_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class EntitiesRestored:
    """A merge or split by hand is undone: the entities are as they were before it."""

    record: EntityChange
    at: int


Change = (
    BankStored
    | BankErased
    | UnitsAdded
    | UnitsRetired
    | UnitsEnded
    | UnitsRestored
    | UnitsLinked
    | MentionsAdded
    | MentionsRemoved
    | MentionsMoved
    | Audited
    | BeliefsMoved
    | FactsConsolidated
    | UnitsErased
    | UnitsReembedded
    | UnitsRelinked
    | UnitsMoved
    | UnitsRetagged
    | DocumentStored
    | DocumentErased
    | OperationStored
    | OperationErased
    | CallsRecorded
    | EntitiesChanged
    | EntitiesRestored
    | PagesChanged
)


def summary(change: Change) -> dict[str, Any]:
    """What the log keeps of a change: scalars and references."""
    kind = type(change).__name__
    match change:
        case UnitsAdded(units=units, at=at):
            return {"k": kind, "first": units[0].uid if units else 0, "n": len(units), "at": at}
        case UnitsRetired(uids=uids, at=at) | UnitsErased(uids=uids, at=at) | UnitsRetagged(uids=uids, at=at):
            return {"k": kind, "uids": list(uids), "at": at}
        case UnitsRestored(uids=uids, at=at):
            return {"k": kind, "uids": list(uids), "at": at}
        case UnitsLinked(uid=uid, others=others, at=at):
            return {"k": kind, "uid": uid, "n": len(others), "at": at}
        case UnitsEnded(ends=ends, at=at):
            return {"k": kind, "uids": [end.uid for end in ends], "at": at}
        case MentionsAdded(mentions=mentions, at=at):
            return {"k": kind, "numbers": [one.number for one in mentions], "at": at}
        case MentionsRemoved(mentions=named, at=at):
            return {"k": kind, "numbers": [number for _, number in named], "at": at}
        case MentionsMoved(places=there, at=at):
            return {"k": kind, "numbers": [number for _, number in there], "at": at}
        case BeliefsMoved(moves=moves, at=at):
            return {"k": kind, "n": len(moves), "at": at}
        case FactsConsolidated(done=done, failed=failed, pending=pending, at=at):
            return {"k": kind, "n": len(done), "failed": len(failed), "pending": len(pending), "at": at}
        case Audited(entries=entries):
            return {"k": kind, "n": len(entries)}
        case UnitsReembedded(embeddings=embeddings, at=at):
            return {"k": kind, "uids": [e.uid for e in embeddings], "at": at}
        case UnitsRelinked(prev=prev, at=at):
            return {"k": kind, "uids": list(prev), "at": at}
        case UnitsMoved(places=places, at=at):
            return {"k": kind, "uids": list(places), "at": at}
        case DocumentStored(record=record, chunks=chunks, dropped=dropped):
            return {"k": kind, "doc": record.number, "n": len(chunks), "dropped": len(dropped), "at": record.updated_at}
        case DocumentErased(number=number, at=at):
            return {"k": kind, "doc": number, "at": at}
        case BankStored(record=record):
            return {"k": kind, "at": record.updated_at}
        case OperationStored(record=record):
            return {"k": kind, "op": record.id, "status": record.status, "at": record.updated_at}
        case OperationErased(operation_id=operation_id):
            return {"k": kind, "op": operation_id}
        case CallsRecorded(calls=calls):
            return {"k": kind, "n": len(calls)}
        case EntitiesChanged(record=record) | EntitiesRestored(record=record):
            return {"k": kind, "change": record.id, "what": record.what, "part": record.part, "whole": record.whole}
        case PagesChanged(models=models, nodes=nodes, directives=directives, at=at):
            return {"k": kind, "models": len(models), "nodes": len(nodes), "directives": len(directives), "at": at}
        case BankErased():
            return {"k": kind}


@dataclass(slots=True)
class Delta:
    """What a committed write means for the bank's resident caches, in order: (method of `OpenBank`, arguments)."""

    bank: int
    steps: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    rewritten: list[int] = field(default_factory=list)
    """Units whose stored record was changed or is gone."""

    def add(self, step: str, *arguments: Any) -> None:
        self.steps.append((step, arguments))
