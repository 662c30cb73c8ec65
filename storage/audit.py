"""The audit log of a bank: what was done, when and why, in ids, counts and words of the code; never in a user's words.

Rows are in order of time. A write that adds some also lets go of those older than the bank keeps, some at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from recalld.storage import codec, keys
from recalld.storage.environment import ReadTxn, WriteTxn

TRIM = 100
"""Old rows a write removes at most: more than most writes add, so that the rest follows."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One entry. `transport` is http, mcp or system; `metadata` holds ids, counts and reasons."""

    id: str
    action: str
    transport: str
    started_at: int
    ended_at: int
    metadata: dict[str, Any] = field(default_factory=dict)


def record(txn: WriteTxn, bank: int, entries: tuple[AuditRecord, ...], keep_from: int) -> None:
    """Store entries and let go of some that began before `keep_from` (µs)."""
    for entry in entries:
        txn.put(keys.audit(bank, entry.started_at, entry.id), codec.encode(entry))
    start = keys.audit_from(bank, max(0, keep_from))
    old: list[bytes] = []
    for key, _ in txn.scan(keys.table(bank, keys.AUDIT)):
        if key >= start or len(old) >= TRIM:
            break
        old.append(bytes(key))
    for key in old:
        txn.delete(key)


def entries(txn: ReadTxn, bank: int, start: int = 0) -> Iterator[AuditRecord]:
    """Entries that began at `start` (µs) or later, oldest first."""
    for _, value in txn.scan(keys.table(bank, keys.AUDIT), keys.audit_from(bank, max(0, start))):
        yield codec.decode(AuditRecord, value)


def plain(value: Any) -> Any:
    """Metadata as JSON has it: lists, no tuples."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
