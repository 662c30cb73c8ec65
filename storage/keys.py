"""Every key of the store is built here, and only here.

A key is the bank's number (u32, big-endian), one byte for the table, then the table's own part; numbers are
big-endian so that order in the store is order of the number. Bank 0 holds what belongs to the partition.
No user string stands in a key: it goes through `name_key` (BLAKE2b, 16 bytes) and stands in the value.

    table            byte  own part                         value
    META             0x01  -                                partition record: next bank, sequence, epoch      (bank 0)
    BANK_NAME        0x02  name_key(tenant NUL bank)        bank number u32                                   (bank 0)
    CHANGE           0x03  sequence u64                     one change: kinds, ids and numbers, never content (bank 0)
    REQUEST          0x04  name_key(request id)             when, and the answer given                        (bank 0)
                                                            empty: the bank answered it                   (other banks)
    OPEN_OPERATION   0x05  operation id 16                  bank number u32                                   (bank 0)
    REQUEST_TIME     0x06  instant u64, name_key            empty: the order in which requests may be dropped (bank 0)
    OPERATION_BANK   0x07  operation id 16                  bank number u32: an id names one operation        (bank 0)
    BANK             0x10  -                                BankRecord
    COUNTERS         0x11  -                                BankCounters
    UNIT             0x20  uid u32                          UnitRecord
    UNIT_ID          0x21  name_key(id)                     uid u32
    COLUMN_BLOCK     0x22  block u32 (256 uids)             COLUMN_DTYPE rows, sealed
    COLUMN_TAIL      0x23  uid u32                          one COLUMN_DTYPE row
    VECTOR_BLOCK     0x24  block u32 (64 uids)              ragged block of vector rows, sealed
    VECTOR_TAIL      0x25  uid u32                          one unit's scales and int8 rows
    TOKEN_BLOCK      0x26  block u32 (64 uids)              ragged block of token vectors, sealed
    TOKEN_TAIL       0x27  uid u32                          one unit's token ids and int8 token vectors
    EDGES            0x28  uid u32                          entity numbers, and packed (other, kind, weight)
    FOLLOWER         0x29  uid u32, uid u32                 empty: the second stands behind the first in its thread
    HALF_LINK        0x2A  uid u32, uid u32                 empty: the second's edges name the first, which dropped it
    CLAIM            0x2B  claim 16                         id of the unit that carries the claim
    MENTION          0x2C  name_key(unit id), number u32    MentionRecord: a further place where it was said
    ATTRIBUTE        0x2D  name_key(subject NUL attribute), uid u32   empty: the unit says something about it
    ENDED_BY         0x2E  name_key(unit id), name_key(unit id)       id of the second, which the first superseded
    DOCUMENT         0x30  number u32                       DocumentRecord
    DOCUMENT_ID      0x31  name_key(id)                     number u32
    CHUNK            0x32  document u32, index u32          ChunkRecord
    READING          0x34  name_key(reading)                document u32, index u32 of a chunk a model read so
    BELIEF           0x38  name_key(opinion id)             BeliefRecord: an opinion whose confidence moved
    BELIEF_EVENT     0x39  name_key(opinion id), number u32 BeliefEvent
    BELIEVED_BY      0x3A  name_key(unit id), name_key(opinion id)    opinion id and number of the event the unit made
    CONSOLIDATION    0x3C  uid u32                          FactState: consolidated or failed; none is pending
    BUILT_ON         0x3D  uid u32, uid u32                 empty: the second is an observation built on the first
    CONSOLIDATE_NEXT 0x3E  -                                id of the consolidation that was queued last
    ENTITY           0x40  number u32                       EntityRecord
    ENTITY_NAME      0x41  name_key(folded name)            entity numbers u32[]
    ENTITY_ID        0x42  name_key(id)                     number u32
    SPEAKER          0x43  number u32                       speaker name
    ENTITY_PARENTS   0x44  -                                (part, whole) pairs u32[]: entities that are one
    ENTITY_SPELLING  0x45  name_key(form of a name)         entity numbers u32[] whose names share the form
    ENTITY_CHANGE    0x46  name_key(id)                     EntityChange
    POSTING          0x50  name_key(term), block u32        posting block; block 0xFFFFFFFF is the tail
    TOKEN_COUNT      0x51  token u32                        units holding it u32
    SET              0x52  kind u8, name_key, uid>>16 u16   one roaring container of the low 16 bits
    TAG              0x53  name_key(tag)                    the tag
    OPERATION        0x60  operation id 16                  OperationRecord
    PAYLOAD          0x61  operation id 16                  what the operation works on, compressed
    LEDGER           0x62  instant u64, name_key(call id)   LedgerCall
    LEDGER_DAY       0x63  day u32                          DayTotals; under bank 0 those of the whole partition
    JOURNAL          0x64  operation id 16, name_key        facts a model gave an open operation, compressed
    AUDIT            0x68  instant u64, name_key(id)        AuditRecord
    DIRECTIVE        0x70  name_key(id)                     Directive
    MENTAL_MODEL     0x71  name_key(id)                     MentalModel
    MODEL_CONTENT    0x72  name_key(model id)               PageContent
    MODEL_HISTORY    0x73  name_key(model id), number u32   FormerContent
    PAGE_NODE        0x74  name_key(id)                     PageNode
"""

from __future__ import annotations

import struct
from functools import lru_cache
from hashlib import blake2b
from typing import Final

META, BANK_NAME, CHANGE, REQUEST, OPEN_OPERATION, REQUEST_TIME, OPERATION_BANK = range(0x01, 0x08)
BANK, COUNTERS = 0x10, 0x11
UNIT, UNIT_ID, COLUMN_BLOCK, COLUMN_TAIL, VECTOR_BLOCK, VECTOR_TAIL, TOKEN_BLOCK, TOKEN_TAIL = range(0x20, 0x28)
EDGES, FOLLOWER, HALF_LINK = range(0x28, 0x2B)
CLAIM, MENTION, ATTRIBUTE, ENDED_BY = range(0x2B, 0x2F)
DOCUMENT, DOCUMENT_ID, CHUNK = range(0x30, 0x33)
READING = 0x34
BELIEF, BELIEF_EVENT, BELIEVED_BY = range(0x38, 0x3B)
CONSOLIDATION, BUILT_ON, CONSOLIDATE_NEXT = range(0x3C, 0x3F)
ENTITY, ENTITY_NAME, ENTITY_ID, SPEAKER, ENTITY_PARENTS, ENTITY_SPELLING, ENTITY_CHANGE = range(0x40, 0x47)
POSTING, TOKEN_COUNT, SET, TAG = range(0x50, 0x54)
OPERATION, PAYLOAD = 0x60, 0x61
LEDGER, LEDGER_DAY, JOURNAL = range(0x62, 0x65)
AUDIT = 0x68
DIRECTIVE, MENTAL_MODEL, MODEL_CONTENT, MODEL_HISTORY, PAGE_NODE = range(0x70, 0x75)

TAIL_BLOCK: Final = 0xFFFFFFFF
SET_TAG, SET_TAGSET, SET_ENTITY, SET_DOCUMENT, SET_MENTION = 1, 2, 3, 4, 5
SET_CONSOLIDATED, SET_FAILED, SET_ECHO = 6, 7, 8
MAX_KEY: Final = 511

_head = struct.Struct(">IB")
_head_u32 = struct.Struct(">IBI")
_head_u64 = struct.Struct(">IBQ")
_head_u32_u32 = struct.Struct(">IBII")
_u32 = struct.Struct(">I")


@lru_cache(maxsize=65536)
def name_key(text: str, secret: bytes = b"") -> bytes:
    """16 bytes that stand for a user's string in a key; `secret` keys the hash in an encrypted home."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=secret).digest()


def table(bank: int, which: int) -> bytes:
    """Prefix of one table of one bank; also the whole key of a table with one record."""
    return _head.pack(bank, which)


def bank_prefix(bank: int) -> bytes:
    return _u32.pack(bank)


def number(bank: int, which: int, n: int) -> bytes:
    """Key of a record named by a u32."""
    return _head_u32.pack(bank, which, n)


def named(bank: int, which: int, name: str) -> bytes:
    """Key of a record named by a user's string."""
    return _head.pack(bank, which) + name_key(name)


def raw(bank: int, which: int, sixteen: bytes) -> bytes:
    """Key of a record named by 16 bytes."""
    return _head.pack(bank, which) + sixteen


def meta() -> bytes:
    return _head.pack(0, META)


def bank_name(tenant: str, bank_id: str) -> bytes:
    return named(0, BANK_NAME, f"{tenant}\0{bank_id}")


def change(sequence: int) -> bytes:
    return _head_u64.pack(0, CHANGE, sequence)


def request(request_id: str) -> bytes:
    return named(0, REQUEST, request_id)


def request_of(bank: int, request_id: str) -> bytes:
    """In the bank's own part: that it answered the request, so that deleting it can clear the answer."""
    return named(bank, REQUEST, request_id)


def request_time(instant: int, request_id: str) -> bytes:
    return _head_u64.pack(0, REQUEST_TIME, instant) + name_key(request_id)


def chunk(bank: int, document: int, index: int) -> bytes:
    return _head_u32_u32.pack(bank, CHUNK, document, index)


def chunks(bank: int, document: int) -> bytes:
    """Prefix of a document's chunks."""
    return _head_u32.pack(bank, CHUNK, document)


def follower(bank: int, before: int, uid: int) -> bytes:
    return _head_u32_u32.pack(bank, FOLLOWER, before, uid)


def followers(bank: int, before: int) -> bytes:
    """Prefix of the units that stand behind one in its thread."""
    return _head_u32.pack(bank, FOLLOWER, before)


def half_link(bank: int, uid: int, other: int) -> bytes:
    return _head_u32_u32.pack(bank, HALF_LINK, uid, other)


def half_links(bank: int, uid: int) -> bytes:
    """Prefix of the units whose edges name `uid` while its own do not name them."""
    return _head_u32.pack(bank, HALF_LINK, uid)


def mention(bank: int, unit_id: str, number: int) -> bytes:
    return named(bank, MENTION, unit_id) + _u32.pack(number)


def attribute(bank: int, subject: str, attribute: str) -> bytes:
    """Prefix of the units that say something about an attribute of a subject; both folded."""
    return named(bank, ATTRIBUTE, f"{subject}\0{attribute}")


def about(bank: int, subject: str, what: str, uid: int) -> bytes:
    return attribute(bank, subject, what) + _u32.pack(uid)


def ended_by(bank: int, unit_id: str, ended_id: str) -> bytes:
    return named(bank, ENDED_BY, unit_id) + name_key(ended_id)


def belief_event(bank: int, opinion_id: str, number: int) -> bytes:
    return named(bank, BELIEF_EVENT, opinion_id) + _u32.pack(number)


def believed_by(bank: int, unit_id: str, opinion_id: str) -> bytes:
    return named(bank, BELIEVED_BY, unit_id) + name_key(opinion_id)


def built_on(bank: int, source: int, observation: int) -> bytes:
    return _head_u32_u32.pack(bank, BUILT_ON, source, observation)


def all_built_on(bank: int, source: int) -> bytes:
    """Prefix of the observations, live or ended, that are built on a unit."""
    return _head_u32.pack(bank, BUILT_ON, source)


def audit(bank: int, instant: int, entry_id: str) -> bytes:
    return audit_from(bank, instant) + name_key(entry_id)


def audit_from(bank: int, instant: int) -> bytes:
    """Where the audit log begins that is not older than `instant`."""
    return _head_u64.pack(bank, AUDIT, instant)


def posting(bank: int, term: bytes, block: int) -> bytes:
    return _head.pack(bank, POSTING) + term + _u32.pack(block)


def postings(bank: int, term: bytes) -> bytes:
    """Prefix of a term's blocks, in order, the tail last."""
    return _head.pack(bank, POSTING) + term


def container(bank: int, kind: int, name: bytes, high: int) -> bytes:
    return _head.pack(bank, SET) + bytes((kind,)) + name + high.to_bytes(2, "big")


def containers(bank: int, kind: int, name: bytes) -> bytes:
    """Prefix of one set's containers."""
    return _head.pack(bank, SET) + bytes((kind,)) + name


def operation_key(bank: int, which: int, operation_id: str) -> bytes:
    return _head.pack(bank, which) + name_key(operation_id)


def ledger_call(bank: int, instant: int, call_id: str) -> bytes:
    return _head_u64.pack(bank, LEDGER, instant) + name_key(call_id)


def ledger_from(bank: int, instant: int) -> bytes:
    """Where the calls from an instant on begin."""
    return _head_u64.pack(bank, LEDGER, instant)


def journal(bank: int, operation_id: str, reading: str = "") -> bytes:
    """Facts of one reading of an operation; without a reading the prefix of all of them."""
    prefix = operation_key(bank, JOURNAL, operation_id)
    return prefix + name_key(reading) if reading else prefix


def former(bank: int, model_id: str, number: int) -> bytes:
    return formers(bank, model_id) + _u32.pack(number)


def formers(bank: int, model_id: str) -> bytes:
    """Prefix of what a mental model said before, in order."""
    return named(bank, MODEL_HISTORY, model_id)


def trailing_u32(key: bytes) -> int:
    """The u32 a key ends with."""
    value: int = _u32.unpack_from(key, len(key) - 4)[0]
    return value
