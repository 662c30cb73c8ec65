"""The records a bank holds, as frozen dataclasses. Instants are int microseconds since the epoch, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

WORLD, EXPERIENCE, OPINION, OBSERVATION = range(4)
NETWORK_NAMES = ("world", "experience", "opinion", "observation")

VALID, INVALIDATED, SUPERSEDED = "valid", "invalidated", "superseded"
RETIRED = "retired"
"""State of an opinion whose confidence fell below the floor."""

UNKNOWN = -(2**63)
"""Column value of an instant nobody gave."""
NEVER = 2**63 - 1
"""Column value of `retired` while a unit is current."""

SEMANTIC, CAUSED_BY, SUPERSEDES, EVIDENCE = 1, 2, 3, 4
CAUSES = 7
"""A `CAUSED_BY` link as its cause holds it: one link that points one way, seen from its far end."""
LINK_NAMES = {SEMANTIC: "semantic", CAUSED_BY: "caused_by", SUPERSEDES: "supersedes", EVIDENCE: "evidence"}


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A name as extraction saw it, before it is resolved to an entity of the bank.

    `exact`: it means whatever bears the same name, capitals aside; kinds do not separate.
    """

    name: str
    kind: str = "CONCEPT"
    exact: bool = False


@dataclass(frozen=True, slots=True)
class PreparedUnit:
    """A unit as extraction and embedding hand it to the store; it has no uid yet.

    `vectors` is int8 [rows, dim] in C order with one float32 scale a row; `token_vectors` int8 [n, 64];
    `token_ids` uint32 [n]. `predecessor` is the uid of a stored unit, the id of a unit of the same request, or None.
    """

    id: str
    text: str
    network: int
    context: str
    speaker: str
    entities: tuple[EntityMention, ...]
    occurred_start: int | None
    occurred_end: int | None
    mentioned_at: int | None
    anchor_assumed: bool
    metadata: dict[str, str]
    tags: tuple[str, ...]
    chunk_index: int
    tokens: int
    terms: tuple[tuple[str, int], ...]
    question: bool
    trust: str
    confidence: float | None
    vectors: bytes
    scales: bytes
    token_vectors: bytes
    token_ids: bytes
    predecessor: int | str | None = None
    causes: tuple[str, ...] = ()
    subject: str = ""
    attribute: str = ""
    value: str = ""
    polarity: int = 1
    corrects: bool = False
    claim: bytes = b""
    """What makes it one claim with others (`mentions.claim_of`); empty where each is a unit of its own."""
    cause_weights: tuple[float, ...] = ()
    """How strongly the words say so, one a cause; 1 where none is given."""
    aliases: tuple[tuple[str, str], ...] = ()
    """Pairs of names of one thing that the text itself gives, the shorter or newer first."""
    risks: tuple[str, ...] = ()
    """What a reader should beware of: `instruction`, and kinds of personal data and secrets under the policy `mark`."""


# The one record that is not frozen: a recall makes a hundred, and a frozen one takes five times as long to make.
@dataclass(slots=True)
class UnitRecord:
    """One stored memory. `entities` are entity numbers of its bank; `state` is `valid`, `invalidated`,
    `superseded` or `retired`; one that was replaced is `valid` and has ended.

    Never written to: `dataclasses.replace` makes a changed one.
    """

    uid: int
    id: str
    text: str
    network: int
    context: str = ""
    speaker: str = ""
    entities: tuple[int, ...] = ()
    occurred_start: int | None = None
    occurred_end: int | None = None
    mentioned_at: int | None = None
    recorded_at: int = 0
    retired_at: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    document: int = 0
    document_id: str | None = None
    chunk_index: int = 0
    chunk_id: str | None = None
    tokens: int = 0
    trust: str = "normal"
    confidence: float | None = None
    state: str = "valid"
    anchor_assumed: bool = False
    proof_count: int = 1
    predecessor: int | None = None
    updated_at: int = 0
    sources: tuple[int, ...] = ()
    undocumented: bool = False
    """Its document was made for it: the caller named none, so later turns may stand behind it."""
    subject: str = ""
    attribute: str = ""
    value: str = ""
    polarity: int = 1
    reason: str = ""
    """Why it ended: a word of the code when another unit superseded it, a person's when they invalidated it."""
    superseded_by: str = ""
    """Id of the unit that took its place, while `state` is `superseded`."""
    edited_at: int | None = None
    former: int | None = None
    """uid of the version before it, while that is kept."""
    claims: tuple[bytes, ...] = ()
    """The claims it carries; its own first, then what it said before it was edited."""
    risks: tuple[str, ...] = ()

    @property
    def stands(self) -> bool:
        """It is in its document's text still: current, superseded or invalidated, but not replaced."""
        return self.retired_at is None or self.state != VALID


@dataclass(frozen=True, slots=True)
class MentionRecord:
    """A further place where the claim of a unit was said, with all it takes to make it a unit of its own.

    `predecessor` is the id of the unit before it in its document ("": none); `entities` are (name, kind, exact).
    """

    unit: str
    number: int
    document: int
    document_id: str
    chunk_index: int
    chunk_id: str
    recorded_at: int
    predecessor: str = ""
    undocumented: bool = False
    text: str = ""
    context: str = ""
    speaker: str = ""
    entities: tuple[tuple[str, str, bool], ...] = ()
    occurred_start: int | None = None
    occurred_end: int | None = None
    mentioned_at: int | None = None
    anchor_assumed: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    question: bool = False
    confidence: float | None = None
    subject: str = ""
    attribute: str = ""
    value: str = ""
    polarity: int = 1


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A piece of a document's text; `glue` is what stands between it and the chunk before."""

    document: int
    index: int
    text: str
    digest: str
    glue: str
    uids: tuple[int, ...]
    created_at: int
    extractor: str = ""
    """Which model read it how (mode, mission, prompt); "" for the rules."""
    reading: str = ""
    """Digest of everything that decided what the model was to find: the same again needs no call."""
    mentions: tuple[tuple[str, int], ...] = ()
    """(unit id, number) of what it says that is the claim of a unit elsewhere."""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A source text as given; its text is its chunks. `revision` moves with every change and guards prepared writes."""

    number: int
    id: str
    content_hash: str
    text_length: int
    chunks: int
    created_at: int
    updated_at: int
    revision: int
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    keep_text: bool = True
    live_units: int = 0
    thread: int = 0


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """A resolved person, organisation, place, product or concept; `mentions` counts live units.

    One that is a part of another, the entity `into`, stands for a name of that one: its count is 0 and its dates are
    unknown, because the whole has them. `parts` are those that are parts of this one. `why` says how it became a part:
    `alias` (a text said so), `likeness` (the names are spelt alike) or `hand`. `evidence` are the units that said so,
    `apart` the entities it was parted from by hand, with which it is never joined again by itself.
    """

    number: int
    id: str
    name: str
    kind: str
    mentions: int
    first_seen: int | None
    last_seen: int | None
    why: str = ""
    evidence: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()
    into: int = 0
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityChange:
    """A change of entities by hand, with what it takes to undo it; numbers and uids only, never names.

    `what` is `merged`, `split_name` or `split_units`; `part` joined or left `whole`. `units` are (uid, its entities
    before), `parts` (entity, why, evidence) as they stood before.
    """

    id: str
    what: str
    at: int
    part: int
    whole: int
    units: tuple[tuple[int, tuple[int, ...]], ...] = ()
    parts: tuple[tuple[int, str, tuple[int, ...]], ...] = ()
    undone_at: int | None = None


@dataclass(frozen=True, slots=True)
class BankRecord:
    """A bank's identity and settings; counters that move with every write stand in `BankCounters`."""

    number: int
    tenant: str
    bank_id: str
    created_at: int
    updated_at: int
    name: str | None = None
    overrides: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    """Plain form of the embedding model's identity that all vectors of the bank come from; empty while it has none."""


@dataclass(frozen=True, slots=True)
class BankCounters:
    """What each write moves. `live` counts current units by network."""

    next_uid: int = 0
    next_document: int = 1
    next_entity: int = 1
    next_speaker: int = 1
    next_thread: int = 1
    next_mention: int = 1
    documents: int = 0
    entities: int = 0
    live: tuple[int, int, int, int] = (0, 0, 0, 0)
    last_write_at: int | None = None
    last_document_at: int | None = None
    edges: dict[str, int] = field(default_factory=dict)
    last_consolidated_at: int | None = None


PENDING, PROCESSING, COMPLETED, FAILED, CANCELLED = "pending", "processing", "completed", "failed", "cancelled"
OPEN_STATES = (PENDING, PROCESSING)


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """A durable piece of background work."""

    id: str
    kind: str
    status: str
    created_at: int
    updated_at: int
    items_count: int = 0
    attempts: int = 0
    next_retry_at: int | None = None
    completed_at: int | None = None
    error: str | None = None
    document_id: str | None = None
    parent: str | None = None
    children: tuple[str, ...] = ()
    result: dict[str, Any] = field(default_factory=dict)
    receipt: tuple[dict[str, Any], ...] = ()
    cancel_requested: bool = False
    documents: tuple[int, ...] = ()
    """Marks of the documents it writes, to keep their order: digests, so that no name outlives its document."""
    waiting: str = ""
    """What it waits for while it is pending: `model`, `budget`, or "" for its turn."""
    waits: int = 0
