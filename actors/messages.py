"""Every message between the gateway, the shards and the workers, each with its purpose. Instants are µs, UTC.

Requests between steps name things by id; an answer carries the bodies the caller asked for. Answers without a class of
their own are plain dicts in the wire's shape, or of the fields their request lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recalld.actors import encoder_messages
from recalld.actors.filters import DocumentFilters, MemoryFilters, TagScope
from recalld.actors.recall.query import RecallAnswer, RecallQuery
from recalld.actors.wirecodec import message, register
from recalld.storage.changes import Embedding
from recalld.storage.ledger import LedgerCall
from recalld.storage.records import EntityMention, PreparedUnit

for _shared in (
    RecallQuery,
    RecallAnswer,
    EntityMention,
    LedgerCall,
    PreparedUnit,
    Embedding,
    MemoryFilters,
    DocumentFilters,
    TagScope,
    encoder_messages.EmbedTexts,
    encoder_messages.EmbedQuery,
    encoder_messages.EmbeddedTexts,
    encoder_messages.ModelInfo,
    encoder_messages.ModelDescription,
):
    register(_shared)


# -- retain: gateway -> worker -> shard ------------------------------------------------------------------------------


@message(1)
@dataclass(frozen=True, slots=True)
class RetainJob:
    """Gateway to worker: turn items into units and commit them. Answer: the receipt as a dict.

    `items` are `RetainItem.to_plain()`. `defaults` are the server's bank settings, under the bank's own overrides.
    `operation_id` names the stored operation this carries out, if any.
    """

    tenant: str
    bank_id: str
    items: tuple[Any, ...]
    request_id: str
    now: int
    defaults: dict[str, Any]
    provider: str = "local"
    operation_id: str | None = None
    seconds: float = 3600.0
    """How long it may take from when the worker gets it; nobody waits for it after that."""
    fresh: bool = False
    """Read every chunk anew, also those that are stored with the same text."""
    anchor: int | None = None
    """When it was sent, where that was not now: the time of items that give none."""


@message(1)
@dataclass(frozen=True, slots=True)
class DocumentWanted:
    """Part of a plan: a document to be written. `tail` asks for its end only (append), not for every chunk.

    `tags` are the tag sets of its new items, each sorted: stored units that have another may be tagged anew.
    """

    document_id: str
    tail: bool = False
    tags: tuple[Any, ...] = ()


@message(1)
@dataclass(frozen=True, slots=True)
class TurnWanted:
    """Part of a plan: undocumented text looks for the turn before it by context, tags and time."""

    context: str
    tags: tuple[str, ...]
    mentioned_at: int


@message(1)
@dataclass(frozen=True, slots=True)
class PlanRetain:
    """Worker to shard: what stands where the items are to go. Answer: `RetainPlan`."""

    tenant: str
    bank_id: str
    documents: tuple[Any, ...]
    turns: tuple[Any, ...] = ()


@message(1)
@dataclass(frozen=True, slots=True)
class StoredUnit:
    """A live unit as planning needs it; `date` is YYYY-MM-DD of its event or mention, "" when unknown."""

    uid: int
    text: str
    tags: tuple[str, ...]
    trust: str
    predecessor: int | None
    date: str
    mentioned_at: int | None = None
    retired: bool = False
    behind: Any = None
    """The `StoredUnit` of another document that it stands behind, because its own document mentions that one."""
    behind_chunk: int = -1
    """Index of the chunk of its own document with that mention."""
    elsewhere: bool = False
    """A follower in another thread: it joins nobody when the unit before it goes."""
    moves: tuple[Any, ...] = ()
    """Mentions that it can move to when its own place goes: `Move`s."""


@message(1)
@dataclass(frozen=True, slots=True)
class Move:
    """A further mention of a unit, and what it takes to embed it there.

    `before` is a uid, or the id of a unit that moves as well. `number` names the mention; `names` are those of its
    entities; `date` as in `StoredUnit`.
    """

    unit: str
    number: int
    document_id: str
    chunk: int
    text: str
    context: str
    names: tuple[str, ...]
    date: str
    before: Any = None
    before_text: str = ""
    parts: bool = False
    """It becomes a unit of its own, under an id of its own, because its tags change and those of the others do not."""


@message(1)
@dataclass(frozen=True, slots=True)
class Moved:
    """A `Move` with its vectors; `id` is the unit's own, or a new one where the mention parts from it."""

    unit: str
    number: int
    id: str
    terms: tuple[tuple[str, int], ...]
    tokens: int
    vectors: bytes
    scales: bytes
    token_vectors: bytes
    token_ids: bytes
    before: Any = None


@message(1)
@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as stored; `digest` is "" when some of its units were erased, so that it matches no text.

    `shared`: it mentions units of other places, or others mention units of its.
    """

    index: int
    digest: str
    units: tuple[Any, ...]
    shared: bool = False
    extractor: str = ""
    """Which model read it how; "" for the rules."""
    mention_tags: Any = None
    """Tags of the units it mentions; None when it mentions none."""


@message(1)
@dataclass(frozen=True, slots=True)
class DocumentState:
    """A document as stored. `revision` 0 means there is none. With `tail` only the last chunk is listed."""

    document_id: str
    revision: int
    chunks: tuple[Any, ...]
    chunk_count: int
    tags: tuple[str, ...]
    text: str | None = None
    """The whole text, when appending to JSON needs it merged; else None."""
    followers: tuple[Any, ...] = ()
    """Units outside its live ones that are embedded behind those: turns of other documents, and what was replaced."""


@message(1)
@dataclass(frozen=True, slots=True)
class RetainPlan:
    """Answer to `PlanRetain`: document states in order, the turn before for each turn wanted, the bank's overrides."""

    documents: tuple[Any, ...]
    turns: tuple[Any, ...]
    overrides: dict[str, Any]
    bank: int = 0
    """The bank's number; 0 when there is none yet."""


@message(1)
@dataclass(frozen=True, slots=True)
class ChunkWrite:
    """A chunk of the document's new state: kept from `keep` (its old index), or new with text and units by id.

    `tags` are new ones for the units of a kept chunk; None leaves them theirs.
    """

    digest: str
    glue: str = ""
    text: str = ""
    keep: int | None = None
    units: tuple[str, ...] = ()
    tags: tuple[str, ...] | None = None
    extractor: str = ""
    reading: str = ""
    """What a model read it as, and against what; both "" for the rules."""


@message(1)
@dataclass(frozen=True, slots=True)
class DocumentWrite:
    """A document's new state. `revision` is the one the plan saw; `append` leaves stored chunks alone."""

    document_id: str
    revision: int
    append: bool
    chunks: tuple[Any, ...]
    content_hash: str
    text_length: int
    tags: tuple[str, ...]
    metadata: dict[str, Any]
    params: dict[str, Any]
    keep_text: bool = True
    undocumented: bool = False
    sequence: tuple[Any, ...] = ()
    """uids (int) and new unit ids (str) in the order of the text; with `append` only what is new."""


@message(1)
@dataclass(frozen=True, slots=True)
class CommitRetain:
    """Worker to shard: prepared units and their documents, all or nothing. Answer: the receipt as a dict.

    Answers `Superseded` when a document or a predecessor changed since the plan.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    model: dict[str, Any]
    documents: tuple[Any, ...]
    units: tuple[Any, ...]
    embeddings: tuple[Any, ...] = ()
    receipt: tuple[Any, ...] = ()
    operation_id: str | None = None
    bank: int = 0
    """The bank's number as the plan saw it: a bank deleted since is not filled anew. 0: there was none."""
    moves: tuple[Any, ...] = ()
    """`Moved` units: what other documents mention of what goes here."""
    audit_days: int = -1
    """How long the bank keeps its audit log; -1 for ever."""
    usage: dict[str, Any] = field(default_factory=dict)
    """Tokens that model calls took for it, for the answer and the operation's result; empty without a model."""
    judged_later: bool = False
    """A model will say what its units mean for opinions; else rules do, in the write."""


@message(1)
@dataclass(frozen=True, slots=True)
class CommitRetains:
    """Several commits that may share a flush. Answer: a tuple with a receipt or an error for each."""

    commits: tuple[Any, ...]


@message(1)
@dataclass(frozen=True, slots=True)
class RecordCalls:
    """Worker to shard: model calls made for a bank, and what they read for an operation. Answer: {}.

    `readings` are (reading, facts as bytes): a later run of the operation takes them up without a call.
    """

    tenant: str
    bank_id: str
    calls: tuple[Any, ...]
    keep_from: int
    operation_id: str | None = None
    readings: tuple[Any, ...] = ()


@message(1)
@dataclass(frozen=True, slots=True)
class DryRunJob:
    """Gateway to worker: what extraction would give for one item; nothing is stored but the calls in the ledger.

    `overrides` go over the bank's settings. Answer: {"facts", "chunks", "usage", "dropped"} in the wire's shape.
    """

    tenant: str
    bank_id: str
    item: dict[str, Any]
    now: int
    defaults: dict[str, Any]
    overrides: dict[str, Any]
    provider: str = "local"
    seconds: float = 3600.0


@message(1)
@dataclass(frozen=True, slots=True)
class AskModel:
    """Gateway to worker about the models: `what` is `probe` (is each there), `preview` (the messages of a retain) or
    `price` (what a retain would cost). Answer: a dict."""

    tenant: str
    bank_id: str
    what: str
    now: int
    defaults: dict[str, Any]
    params: dict[str, Any] = field(default_factory=dict)
    seconds: float = 60.0


# -- erasing: worker -> shard ----------------------------------------------------------------------------------------


@message(1)
@dataclass(frozen=True, slots=True)
class EraseJob:
    """Gateway to worker: erase a document (`document_id`) or the units of one network (None: all of them)."""

    tenant: str
    bank_id: str
    request_id: str
    now: int
    document_id: str | None = None
    network: int | None = None
    seconds: float = 3600.0


@message(1)
@dataclass(frozen=True, slots=True)
class PlanErase:
    """Worker to shard: who is embedded anew when these units go, or stay under other `tags`. Answer: `ErasePlan`."""

    tenant: str
    bank_id: str
    document_id: str | None = None
    network: int | None = None
    tags: tuple[str, ...] | None = None


@message(1)
@dataclass(frozen=True, slots=True)
class Follower:
    """A unit whose vectors carry the text of one that goes; `before` will stand before it: a uid, or an id when that
    unit moves in the same write."""

    uid: int
    text: str
    date: str
    before: Any
    before_text: str


@message(1)
@dataclass(frozen=True, slots=True)
class ErasePlan:
    """Answer to `PlanErase`: the units as (uid lists are long) packed uint32, their followers outside, and `moves`."""

    uids: bytes
    followers: tuple[Any, ...]
    moves: tuple[Any, ...] = ()


@message(1)
@dataclass(frozen=True, slots=True)
class CommitErase:
    """Worker to shard: erase, with the followers' new vectors. Answers `Superseded` when the units changed."""

    tenant: str
    bank_id: str
    request_id: str
    now: int
    uids: bytes
    embeddings: tuple[Any, ...]
    document_id: str | None = None
    network: int | None = None
    moves: tuple[Any, ...] = ()


# -- banks and reads: gateway -> shard -------------------------------------------------------------------------------


@message(1)
@dataclass(frozen=True, slots=True)
class PutBank:
    """Create a bank or change its name and overrides (a None value removes one). Answer: bank as a dict."""

    tenant: str
    bank_id: str
    request_id: str
    now: int
    create: bool
    name: str | None = None
    updates: dict[str, Any] = field(default_factory=dict)
    reset: bool = False
    expects: dict[str, Any] = field(default_factory=dict)
    """Overrides as they were when the change was made up; where one is another by now it is `Superseded`."""
    decisions: tuple[Any, ...] = ()
    """(action, metadata) of entries for the audit log, written with the change."""


@message(1)
@dataclass(frozen=True, slots=True)
class DeleteBank:
    """Erase a bank. Answer: {"deleted": units + entities + documents}; 0 when there is none."""

    tenant: str
    bank_id: str
    request_id: str


@message(1)
@dataclass(frozen=True, slots=True)
class Read:
    """Ask for a listing or a record: `what` names a function of `actors.reads`. Answer: a dict in the wire's shape."""

    what: str
    tenant: str
    bank_id: str = ""
    params: dict[str, Any] = field(default_factory=dict)


@message(1)
@dataclass(frozen=True, slots=True)
class PatchDocument:
    """Replace a document's tags, and those of its units. Answer: {}.

    Goes to the worker, which adds the units (packed uint32) and new vectors for those that part from a predecessor by
    their tags, and hands it on to the shard. That answers `Superseded` when the units changed.
    """

    tenant: str
    bank_id: str
    document_id: str
    request_id: str
    now: int
    tags: tuple[str, ...] | None = None
    observation_scopes: Any = None
    uids: bytes = b""
    embeddings: tuple[Any, ...] = ()
    seconds: float = 3600.0
    moves: tuple[Any, ...] = ()


# -- operations: gateway -> shard ------------------------------------------------------------------------------------


@message(1)
@dataclass(frozen=True, slots=True)
class NewOperation:
    """An operation to store. `payload` is what it works on, packed: b"" for a parent. `documents` it writes by id."""

    id: str
    kind: str
    items_count: int
    payload: bytes = b""
    parent: str | None = None
    children: tuple[str, ...] = ()
    document_id: str | None = None
    result: dict[str, Any] = field(default_factory=dict)
    documents: tuple[str, ...] = ()


@message(1)
@dataclass(frozen=True, slots=True)
class SubmitOperations:
    """Store operations durably, in one commit. Answer: {"created": bool}: an id that is stored already changes nothing.

    It may hold several parents with their children: all are stored, or none. Raises `OperationIdTaken` when an id names
    an operation of another bank or kind.
    """

    tenant: str
    bank_id: str
    now: int
    operations: tuple[Any, ...]
    held: bool = False
    """The caller carries them out itself, at once, and keeps them with `KeepOperations` as if it had claimed them."""


@message(1)
@dataclass(frozen=True, slots=True)
class ClaimOperations:
    """Hand out up to `limit` due operations, waiting up to `wait` seconds for one. Answer: a tuple of `Claimed`.

    With `limit` 0 it only waits until there is one. What cannot be claimed within `patience` seconds stays pending:
    the claimer has given up by then.
    """

    limit: int
    now: int
    wait: float = 0.0
    patience: float = 20.0


@message(1)
@dataclass(frozen=True, slots=True)
class KeepOperations:
    """Claimer to shard, every few seconds: these operations are still worked on. Answer: {}.

    One that is not named for a while goes back to pending: its claim was never heard of, or its claimer is gone.
    """

    ids: tuple[str, ...]


@message(1)
@dataclass(frozen=True, slots=True)
class Claimed:
    """An operation in the claimer's hand: `processing` until it ends or is no longer kept, or its shard restarts."""

    tenant: str
    bank_id: str
    id: str
    kind: str
    attempts: int
    payload: bytes
    waits: int = 0
    """Times it was put back to wait for a model or for a budget."""
    created_at: int | None = None


@message(1)
@dataclass(frozen=True, slots=True)
class FinishOperation:
    """Report how a claimed operation ended. `retry_at` set: back to pending until then. Answer: {}.

    `waiting` says what it waits for then (`model`, `budget`): that was no attempt.
    """

    tenant: str
    bank_id: str
    id: str
    now: int
    error: str | None = None
    retry_at: int | None = None
    receipt: tuple[Any, ...] = ()
    waiting: str = ""


@message(1)
@dataclass(frozen=True, slots=True)
class ChangeOperation:
    """Cancel, retry or delete an operation. Answer: {"operation_id"}; `NotFound`, `Conflict`."""

    tenant: str
    bank_id: str
    id: str
    action: str
    now: int


@message(1)
@dataclass(frozen=True, slots=True)
class Maintain:
    """Ask a shard about itself or for upkeep: `what` is stats, compact, backup, release. Answer: a dict."""

    what: str
    params: dict[str, Any] = field(default_factory=dict)
