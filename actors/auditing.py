"""Entries of the audit log about what callers asked for, written with what they changed. Off unless switched on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from recalld.actors.retain.outcome import keep_from
from recalld.storage import codec, keys
from recalld.storage.apply import Applier
from recalld.storage.audit import AuditRecord
from recalld.storage.changes import Audited
from recalld.storage.records import BankRecord

T = TypeVar("T")


def audited(
    run: Callable[[Applier], T], action: str, entry_id: str, clock: Callable[[], int], defaults: Mapping[str, Any]
) -> Callable[[Applier], T]:
    """`run`, then an entry about it in the same write, where the bank, or else the server, has that switched on."""
    started = clock()

    def run_and_tell(applier: Applier) -> T:
        result = run(applier)
        value = None if applier.erased else applier.txn.get(keys.table(applier.bank, keys.BANK))
        if value is not None:
            chosen = {**defaults, **codec.decode(BankRecord, value).overrides}
            if chosen.get("audit_log_enabled"):
                entry = AuditRecord(entry_id, action, "http", started, clock())
                days = int(chosen.get("audit_log_retention_days", -1))
                applier.apply(Audited((entry,), keep_from(started, days)))
        return result

    return run_and_tell
