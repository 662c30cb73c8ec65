"""A bank's tables counted against each other: what each holds must follow from the units, or be said to be off.

Reads one transaction, so that writes beside it change nothing, and changes nothing itself. `verify_bank` runs every
check; each says in a sentence which row of which table does not fit. `pause` is called between units, for a caller
who lets others go first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from pyroaring import BitMap

from recalld.storage import codec, edges, keys, postings
from recalld.storage.apply import read_counters
from recalld.storage.apply_places import tagset_key
from recalld.storage.columns import COLUMN_DTYPE, COLUMN_ROWS, EXISTS, LIVE, ColumnRow
from recalld.storage.consolidation import EVERY, FactState, members
from recalld.storage.environment import ReadTxn
from recalld.storage.groups import number_key
from recalld.storage.names import folded
from recalld.storage.records import (
    CAUSED_BY,
    CAUSES,
    LINK_NAMES,
    OPEN_STATES,
    UNKNOWN,
    BankRecord,
    ChunkRecord,
    DocumentRecord,
    MentionRecord,
    OperationRecord,
    UnitRecord,
)
from recalld.storage.vector_rows import TOKEN_ROWS, VECTOR_ROWS, token_ids_of, unpack_vectors
from recalld.storage.verify_beliefs import check_beliefs
from recalld.storage.verify_entities import check_entities
from recalld.storage.verify_observations import check_observations
from recalld.storage.verify_pages import check_pages

_U32 = struct.Struct("<I")
SHOWN = 200
"""Problems told one by one; the rest are counted."""


class Problem(NamedTuple):
    """A row that does not follow from the others."""

    table: str
    row: str
    what: str


@dataclass(slots=True)
class Findings:
    """What was looked at, and what does not fit."""

    checked: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    total: int = 0

    def off(self, table: str, row: Any, what: str) -> None:
        self.total += 1
        if len(self.problems) < SHOWN:
            self.problems.append(Problem(table, str(row), what))

    def expect(self, fits: bool, table: str, row: Any, what: str) -> None:
        if not fits:
            self.off(table, row, what)

    def plain(self) -> dict[str, Any]:
        return {
            "ok": not self.total,
            "checked": self.checked,
            "problems": [problem._asdict() for problem in self.problems],
            "problems_total": self.total,
        }


@dataclass(slots=True)
class Ledger:
    """What the units of a bank say the other tables must hold."""

    txn: ReadTxn
    bank: int
    found: Findings
    rows: np.ndarray[Any, Any]
    units: dict[int, str] = field(default_factory=dict)
    """uid -> id."""
    sets: dict[tuple[int, bytes], BitMap] = field(default_factory=dict)
    entities: dict[int, tuple[int, ...]] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    placed: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """(document, chunk index) -> units that stand there."""
    proofs: dict[str, int] = field(default_factory=dict)
    current: dict[str, int] = field(default_factory=dict)
    """id -> uid of what it names now."""
    live: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    def get(self, key: bytes) -> bytes | None:
        value = self.txn.get(key)
        return None if value is None else bytes(value)


def verify_bank(txn: ReadTxn, bank: int, pause: Callable[[], None] = lambda: None) -> Findings:
    """Count every table of a bank against the others."""
    found = Findings()
    parts = [bytes(block) for _, block in COLUMN_ROWS.blocks(txn, bank)]
    tail = list(COLUMN_ROWS.tail(txn, bank))
    sealed = sum(map(len, parts)) // COLUMN_DTYPE.itemsize
    found.expect(
        [uid for uid, _ in tail] == list(range(sealed, sealed + len(tail))),
        "columns",
        "tail",
        "its rows do not follow the sealed blocks one by one",
    )
    rows = np.frombuffer(b"".join([*parts, *(bytes(row) for _, row in tail)]), COLUMN_DTYPE)
    ledger = Ledger(txn, bank, found, rows)
    _units(ledger, pause)
    _ids(ledger)
    _vectors(ledger, pause)
    _postings(ledger, pause)
    _sets(ledger)
    _edges(ledger, pause)
    _threads(ledger)
    _documents(ledger)
    check_observations(txn, bank, found)
    _claims(ledger)
    _operations(ledger)
    check_pages(txn, bank, found)
    check_beliefs(txn, bank, found)
    wholes = check_entities(txn, bank, found, ledger.entities, rows)
    _counters(ledger, wholes)
    return found


def _units(ledger: Ledger, pause: Callable[[], None]) -> None:
    txn, bank, found = ledger.txn, ledger.bank, ledger.found
    seen = np.zeros(len(ledger.rows), np.bool_)
    for number, (key, value) in enumerate(txn.scan(keys.table(bank, keys.UNIT))):
        if number % 64 == 63:
            pause()
        uid = keys.trailing_u32(key)
        record = codec.decode(UnitRecord, value)
        found.expect(record.uid == uid, "units", uid, f"its record says it is unit {record.uid}")
        if uid >= len(ledger.rows) or not ledger.rows[uid]["flags"] & EXISTS:
            found.off("units", uid, "its columns say that it does not exist")
            continue
        seen[uid] = True
        _columns(ledger, record, ColumnRow(*ledger.rows[uid].tolist()))
        _expect_rows(ledger, record)
    for uid in np.flatnonzero((ledger.rows["flags"] & EXISTS != 0) & ~seen).tolist():
        found.off("units", uid, "its columns say that it exists, and there is no record of it")
    found.checked["units"] = len(ledger.units)


def _columns(ledger: Ledger, record: UnitRecord, row: ColumnRow) -> None:
    live = record.retired_at is None
    pairs = {
        "live": (bool(row.flags & LIVE), live),
        "network": (row.network, record.network),
        "document": (row.document, record.document),
        "mentioned": (row.mentioned, UNKNOWN if record.mentioned_at is None else record.mentioned_at),
        "occurred_start": (row.occurred_start, UNKNOWN if record.occurred_start is None else record.occurred_start),
        "recorded": (row.recorded, record.recorded_at),
        "tokens": (row.tokens, record.tokens),
        "proof": (row.proof, min(record.proof_count, 65_535)),
    }
    for name, (held, said) in pairs.items():
        ledger.found.expect(held == said, "columns", record.uid, f"{name} is {held}, and the record says {said}")
    if live:
        ledger.live[record.network] += 1
    speaker = ledger.get(keys.number(ledger.bank, keys.SPEAKER, row.speaker)) if row.speaker else None
    held_name = b"" if speaker is None else speaker
    fits = folded(held_name.decode(errors="replace")) == folded(record.speaker.encode("utf-8", "replace").decode())
    ledger.found.expect(fits, "speakers", row.speaker, f"it is not the speaker of unit {record.uid}")


def _expect_rows(ledger: Ledger, record: UnitRecord) -> None:
    uid, bank = record.uid, ledger.bank
    ledger.units[uid] = record.id
    ledger.entities[uid] = record.entities
    ledger.tags.update(record.tags)
    names = [(keys.SET_TAG, keys.name_key(tag)) for tag in record.tags]
    names.append((keys.SET_TAGSET, tagset_key(record.tags)))
    names += [(keys.SET_ENTITY, number_key(number)) for number in record.entities]
    if record.document:
        names.append((keys.SET_DOCUMENT, number_key(record.document)))
    for name in names:
        ledger.sets.setdefault(name, BitMap()).add(uid)
    held = ledger.get(keys.named(bank, keys.UNIT_ID, record.id))
    if held is None:
        ledger.found.off("ids", record.id, f"unit {uid} is not found by its id")
    elif _U32.unpack(held)[0] == uid:
        ledger.current[record.id] = uid
        ledger.proofs[record.id] = record.proof_count
        if record.chunk_id is not None and record.document:
            ledger.placed.setdefault((record.document, record.chunk_index), []).append(uid)
    if record.retired_at is None:
        for claim in record.claims:
            owner = ledger.get(keys.raw(bank, keys.CLAIM, claim))
            ledger.found.expect(owner == record.id.encode(), "claims", claim.hex(), f"it does not lead to unit {uid}")
    if record.attribute and record.subject:
        key = keys.about(bank, folded(record.subject), record.attribute, uid)
        ledger.found.expect(
            ledger.get(key) is not None,
            "attributes",
            uid,
            f"the unit is not found by what it says of '{record.attribute}'",
        )
    if record.superseded_by and ledger.current.get(record.id) == uid:
        ended = ledger.get(keys.ended_by(bank, record.superseded_by, record.id))
        ledger.found.expect(ended is not None, "ended_by", record.id, f"unit {uid} is not listed by what superseded it")


def _ids(ledger: Ledger) -> None:
    for key, value in ledger.txn.scan(keys.table(ledger.bank, keys.UNIT_ID)):
        uid = _U32.unpack(value)[0]
        unit_id = ledger.units.get(uid)
        fits = unit_id is not None and bytes(key).endswith(keys.name_key(unit_id))
        ledger.found.expect(fits, "ids", bytes(key)[-16:].hex(), f"it leads to unit {uid}, which has no such id")
    ledger.found.checked["ids"] = len(ledger.current)


def _vectors(ledger: Ledger, pause: Callable[[], None]) -> None:
    txn, bank, found = ledger.txn, ledger.bank, ledger.found
    value = ledger.get(keys.table(bank, keys.BANK))
    model = codec.decode(BankRecord, value).model if value else {}
    dim = int(model.get("dim", 0))
    counts: dict[int, int] = {}
    vectors = tokens = 0
    missing = set(ledger.units)
    for first, rows in VECTOR_ROWS.runs(txn, bank):
        pause()
        for uid, row in enumerate(rows, start=first):
            if uid not in ledger.units:
                found.expect(not row, "vectors", uid, "there is a row of a unit that does not exist")
                continue
            missing.discard(uid)
            vectors += 1
            fits = bool(row) and unpack_vectors(row)[0].shape[1:] == (dim,) and len(unpack_vectors(row)[1]) > 0
            found.expect(fits, "vectors", uid, f"the unit has no vectors of {dim} dimensions")
    for uid in sorted(missing):
        found.off("vectors", uid, "the unit has no row")
    missing = set(ledger.units)
    echoes = members(txn, bank, keys.SET_ECHO)
    for first, rows in TOKEN_ROWS.runs(txn, bank):
        pause()
        for uid, row in enumerate(rows, start=first):
            if uid not in ledger.units:
                found.expect(not row, "token vectors", uid, "there is a row of a unit that does not exist")
                continue
            missing.discard(uid)
            tokens += 1
            found.expect(bool(row), "token vectors", uid, "the unit's row is empty")
            for token in set(token_ids_of(row)) if uid not in echoes else ():
                counts[token] = counts.get(token, 0) + 1
    for uid in sorted(missing):
        found.off("token vectors", uid, "the unit has no row")
    for key, held in txn.scan(keys.table(bank, keys.TOKEN_COUNT)):
        token = keys.trailing_u32(key)
        said, real = _U32.unpack(held)[0], counts.pop(token, 0)
        found.expect(said == real, "token counts", token, f"it says {said} units, and {real} hold the token")
    for token, real in counts.items():
        found.off("token counts", token, f"there is none, and {real} units hold the token")
    found.checked |= {"vectors": vectors, "token vectors": tokens}


def _postings(ledger: Ledger, pause: Callable[[], None]) -> None:
    found, n = ledger.found, len(ledger.rows)
    lengths = np.zeros(n, np.int64)
    cut = np.zeros(n, np.bool_)
    count, last_term, last_uid = 0, b"", -1
    for count, (key, value) in enumerate(ledger.txn.scan(keys.table(ledger.bank, keys.POSTING)), start=1):
        if count % 512 == 0:
            pause()
        term = bytes(key)[-20:-4]
        uids, frequencies = postings.join([bytes(value)])
        if term != last_term:
            last_term, last_uid = term, -1
        ascending = not len(uids) or (int(uids[0]) > last_uid and bool(np.all(np.diff(uids.astype(np.int64)) > 0)))
        found.expect(ascending, "postings", term.hex(), "its units do not ascend")
        if len(uids):
            last_uid = int(uids[-1])
            if last_uid >= n:
                found.off("postings", term.hex(), f"it names unit {last_uid}, which was never stored")
                uids, frequencies = uids[uids < n], frequencies[uids < n]
        np.add.at(lengths, uids, frequencies)
        cut[uids[frequencies == 255]] = True
    exists = ledger.rows["flags"] & EXISTS != 0
    said = ledger.rows["length"].astype(np.int64)
    for uid in np.flatnonzero(exists & np.where(cut, lengths > said, lengths != said)).tolist():
        found.off("postings", uid, f"they hold {lengths[uid]} terms of the unit, which has {said[uid]}")
    found.checked["postings"] = count


_SETS = {
    keys.SET_TAG: "tags",
    keys.SET_TAGSET: "tag sets",
    keys.SET_ENTITY: "entity sets",
    keys.SET_DOCUMENT: "document sets",
    keys.SET_MENTION: "mention sets",
    keys.SET_CONSOLIDATED: "consolidated facts",
    keys.SET_FAILED: "failed facts",
    keys.SET_ECHO: "echoes",
}


def _sets(ledger: Ledger) -> None:
    held: dict[tuple[int, bytes], BitMap] = {}
    for _, value in ledger.txn.scan(keys.table(ledger.bank, keys.MENTION)):
        mention = codec.decode(MentionRecord, value)
        place = keys.SET_MENTION, number_key(mention.document)
        ledger.sets.setdefault(place, BitMap()).add(mention.number)
    for key, value in ledger.txn.scan(keys.table(ledger.bank, keys.CONSOLIDATION)):
        kind = keys.SET_FAILED if codec.decode(FactState, value).done_at is None else keys.SET_CONSOLIDATED
        ledger.sets.setdefault((kind, EVERY), BitMap()).add(keys.trailing_u32(key))
    # Which observations are echoes is known from nowhere else; `check_observations` sees that they are some.
    ledger.sets[(keys.SET_ECHO, EVERY)] = members(ledger.txn, ledger.bank, keys.SET_ECHO)
    for key, value in ledger.txn.scan(keys.table(ledger.bank, keys.SET)):
        raw = bytes(key)
        name, high = (raw[5], raw[6:22]), int.from_bytes(raw[22:24], "big")
        uids = BitMap.deserialize(bytes(value))
        outside = [uid for uid in uids if uid >> 16 != high]
        ledger.found.expect(not outside, _SETS.get(name[0], "sets"), name[1].hex(), "a container holds foreign units")
        held[name] = held.get(name, BitMap()) | uids
    for name in held.keys() | ledger.sets.keys():
        real, said = ledger.sets.get(name, BitMap()), held.get(name, BitMap())
        for uid in (real - said)[:3] if real != said else ():
            ledger.found.off(_SETS.get(name[0], "sets"), name[1].hex(), f"unit {uid} is missing")
        for uid in (said - real)[:3] if real != said else ():
            ledger.found.off(_SETS.get(name[0], "sets"), name[1].hex(), f"unit {uid} does not belong there")
    stored = {bytes(v).decode("utf-8", "surrogatepass") for _, v in ledger.txn.scan(keys.table(ledger.bank, keys.TAG))}
    for tag in ledger.tags - stored:
        ledger.found.off("tags", tag, "units carry the tag, and it is not listed")
    ledger.found.checked |= {"sets": len(held), "tags": len(stored)}


def _edges(ledger: Ledger, pause: Callable[[], None]) -> None:
    txn, bank, found = ledger.txn, ledger.bank, ledger.found
    links: dict[str, int] = {}
    seen: set[int] = set()
    for number, (key, value) in enumerate(txn.scan(keys.table(bank, keys.EDGES))):
        if number % 64 == 63:
            pause()
        uid = keys.trailing_u32(key)
        seen.add(uid)
        own = edges.decode(value)
        found.expect(
            tuple(own.entities.tolist()) == ledger.entities.get(uid),
            "edges",
            uid,
            "its entities are not those of the unit",
        )
        for name, count in edges.count_kinds(own).items():
            links[name] = links.get(name, 0) + count
        for kind, count in zip(*np.unique(own.kinds, return_counts=True), strict=True):
            found.expect(count <= edges.MAX_OF_A_KIND, "edges", uid, f"it has {count} links of kind {kind}")
        for other, kind, weight in zip(own.others.tolist(), own.kinds.tolist(), own.weights.tolist(), strict=True):
            found.expect(0 <= weight <= 1.001, "edges", uid, f"its link to unit {other} weighs {weight:.3f}")
            if other not in ledger.units:
                found.off("edges", uid, f"it is linked to unit {other}, which does not exist")
            elif not _linked_back(ledger, other, uid, kind):
                name = LINK_NAMES.get(kind, "caused_by")
                found.off("edges", uid, f"its {name} link to unit {other} is not known there")
    for uid, numbers in ledger.entities.items():
        found.expect(uid in seen or not numbers, "edges", uid, "the unit names entities, and has no edges")
    said = {name: n for name, n in read_counters(txn, bank).edges.items() if n}
    found.expect(said == links, "counters", "edges", f"they say {said}, and there are {links}")
    found.checked["edges"] = sum(links.values())


def _linked_back(ledger: Ledger, other: int, uid: int, kind: int) -> bool:
    back = {CAUSED_BY: CAUSES, CAUSES: CAUSED_BY}.get(kind, kind)
    value = ledger.txn.get(keys.number(ledger.bank, keys.EDGES, other))
    if value is not None:
        held = edges.decode(value)
        if bool(np.any((held.others == uid) & (held.kinds == back))):
            return True
    return ledger.txn.get(keys.half_link(ledger.bank, other, uid)) is not None


def _threads(ledger: Ledger) -> None:
    found, rows = ledger.found, ledger.rows
    behind = np.flatnonzero((rows["flags"] & EXISTS != 0) & (rows["prev"] >= 0))
    expected = {(int(rows["prev"][uid]), int(uid)) for uid in behind}
    held = set()
    for key, _ in ledger.txn.scan(keys.table(ledger.bank, keys.FOLLOWER)):
        raw = bytes(key)
        held.add((int.from_bytes(raw[-8:-4], "big"), int.from_bytes(raw[-4:], "big")))
    for before, uid in sorted(expected - held):
        found.off("followers", uid, f"it stands behind unit {before}, which does not list it")
    for before, uid in sorted(held - expected):
        found.off("followers", uid, f"unit {before} lists it, and it stands elsewhere")
    found.checked["followers"] = len(held)


def _documents(ledger: Ledger) -> None:
    txn, bank, found = ledger.txn, ledger.bank, ledger.found
    documents: dict[int, DocumentRecord] = {}
    for key, value in txn.scan(keys.table(bank, keys.DOCUMENT)):
        record = codec.decode(DocumentRecord, value)
        documents[record.number] = record
        found.expect(record.number == keys.trailing_u32(key), "documents", record.id, "its number is another")
        held = ledger.get(keys.named(bank, keys.DOCUMENT_ID, record.id))
        found.expect(held == _U32.pack(record.number), "documents", record.id, "it is not found by its id")
    names = sum(1 for _ in txn.scan(keys.table(bank, keys.DOCUMENT_ID)))
    found.expect(names == len(documents), "documents", "ids", f"there are {names} ids of {len(documents)} documents")
    chunks: dict[int, set[int]] = {}
    members: dict[tuple[int, int], set[int]] = {}
    for _, value in txn.scan(keys.table(bank, keys.CHUNK)):
        chunk = codec.decode(ChunkRecord, value)
        chunks.setdefault(chunk.document, set()).add(chunk.index)
        members[chunk.document, chunk.index] = set(chunk.uids)
        found.expect(chunk.document in documents, "chunks", f"{chunk.document}/{chunk.index}", "its document is gone")
    for number, record in documents.items():
        held_chunks = chunks.get(number, set())
        found.expect(
            held_chunks == set(range(record.chunks)),
            "chunks",
            record.id,
            f"the document has {record.chunks}, and {len(held_chunks)} are stored",
        )
    for place, uids in ledger.placed.items():
        for uid in uids:
            if place[0] not in documents:
                found.off("documents", place[0], f"unit {uid} comes from it, and it is gone")
            elif uid not in members.get(place, ()):
                found.off("chunks", f"{place[0]}/{place[1]}", f"unit {uid} comes from it, and is not listed there")
    counters = read_counters(txn, bank)
    found.expect(
        counters.documents == len(documents),
        "counters",
        "documents",
        f"they say {counters.documents}, and there are {len(documents)}",
    )
    found.checked |= {"documents": len(documents), "chunks": sum(map(len, chunks.values()))}


def _claims(ledger: Ledger) -> None:
    """Further mentions of units, and rows that lead to units from what they claim."""
    txn, bank, found = ledger.txn, ledger.bank, ledger.found
    counted: dict[str, int] = {}
    for key, value in txn.scan(keys.table(bank, keys.MENTION)):
        mention = codec.decode(MentionRecord, value)
        found.expect(
            bytes(key)[-20:-4] == keys.name_key(mention.unit) and mention.unit in ledger.current,
            "mentions",
            f"{mention.unit}/{mention.number}",
            "its unit is gone",
        )
        counted[mention.unit] = counted.get(mention.unit, 0) + 1
    for unit_id, count in counted.items():
        said = ledger.proofs.get(unit_id)
        found.expect(
            said is None or said == count + 1,
            "mentions",
            unit_id,
            f"the unit says it was said {said} times, and there are {count + 1} mentions",
        )
    ids = {unit_id.encode() for unit_id in ledger.current}
    for key, value in txn.scan(keys.table(bank, keys.CLAIM)):
        found.expect(bytes(value) in ids, "claims", bytes(key)[-16:].hex(), "the unit that carries it is gone")
    for key, _ in txn.scan(keys.table(bank, keys.ATTRIBUTE)):
        uid = keys.trailing_u32(key)
        found.expect(uid in ledger.units, "attributes", uid, "the unit it leads to is gone")
    for _, value in txn.scan(keys.table(bank, keys.ENDED_BY)):
        found.expect(bytes(value) in ids, "ended_by", bytes(value).decode(), "the unit that ended is gone")
    found.checked["mentions"] = sum(counted.values())


def _operations(ledger: Ledger) -> None:
    count = 0
    for key, value in ledger.txn.scan(keys.table(ledger.bank, keys.OPERATION)):
        count += 1
        record = codec.decode(OperationRecord, value)
        listed = ledger.get(keys.raw(0, keys.OPEN_OPERATION, bytes(key)[-16:])) is not None
        ledger.found.expect(
            listed == (record.status in OPEN_STATES),
            "operations",
            record.id,
            f"it is {record.status}, and {'among' if listed else 'not among'} the open ones",
        )
    ledger.found.checked["operations"] = count


def _counters(ledger: Ledger, wholes: int) -> None:
    counters = read_counters(ledger.txn, ledger.bank)
    pairs: Iterable[tuple[str, Any, Any]] = (
        ("live", tuple(counters.live), tuple(ledger.live)),
        ("entities", counters.entities, wholes),
        ("next_uid", counters.next_uid, len(ledger.rows)),
    )
    for name, said, real in pairs:
        ledger.found.expect(said == real, "counters", name, f"they say {said}, and there are {real}")
