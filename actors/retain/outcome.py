"""What a retain brought about, for its receipt and for the audit log: ids, counts and reasons."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recalld.actors.retain.supersession import Change
from recalld.storage.audit import AuditRecord

_DAY_US = 86_400_000_000
_SPACE = uuid.UUID("6f1c33d0-1d0c-4f57-9c11-3c0a7f0b8a55")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`units` maps each prepared unit to the one it became; those in `mentioned` were said before."""

    now: int
    units: Mapping[str, str]
    mentioned: frozenset[str]
    changes: tuple[Change, ...] = ()
    restored: tuple[str, ...] = ()
    replaced: int = 0
    moved: tuple[str, ...] = ()

    def receipt(self, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The rows of the items, with what became of each fact."""
        out = [self._row(row) for row in rows]
        if out and self.restored:
            out[0]["restored_ids"] = list(self.restored)
        return out

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        entries = row.get("unit_ids", ())
        made = [self.units.get(entry, entry) for entry in entries if entry not in self.mentioned]
        said = [self.units[entry] for entry in entries if entry in self.mentioned]
        out = {**row, "unit_ids": made}
        if said:
            out["mention_ids"] = said
        own = {*made, *said}
        ended = [change for change in self.changes if change.by in own or change.superseded in own]
        if ended:
            out["superseded"] = [{"unit_id": one.superseded, "by": one.by, "reason": one.reason} for one in ended]
        return out

    def entries(self, rows: Sequence[Mapping[str, Any]], operation_id: str | None) -> tuple[AuditRecord, ...]:
        """The decisions of this retain for the audit log."""
        found: list[tuple[str, dict[str, Any]]] = []
        said = [unit_id for row in rows for unit_id in row.get("mention_ids", ())]
        if said:
            found.append(("mention_added", {"unit_ids": said, "reason": "said before"}))
        for change in self.changes:
            found.append(("superseded", superseded(change)))
        if self.restored:
            found.append(("restored", {"unit_ids": list(self.restored), "reason": "what superseded it is gone"}))
        if self.moved:
            found.append(("moved", {"unit_ids": list(self.moved), "reason": "its first place is gone"}))
        if self.replaced:
            found.append(("replaced", {"count": self.replaced, "reason": "no longer in the document"}))
        dropped: dict[str, int] = {}
        for row in rows:
            for one in row.get("dropped", ()):
                dropped[one["reason"]] = dropped.get(one["reason"], 0) + int(one.get("pieces", 1))
        for reason, count in dropped.items():
            found.append(("dropped", {"count": count, "reason": reason}))
        return audit_entries(found, self.now, operation_id or "")


def superseded(change: Change) -> dict[str, Any]:
    return {"unit_id": change.superseded, "by": change.by, "reason": change.reason}


def audit_entries(
    decisions: Sequence[tuple[str, dict[str, Any]]], now: int, operation_id: str, transport: str = "system"
) -> tuple[AuditRecord, ...]:
    """Decisions of one moment as entries; their ids follow from what they say, so that a repeat makes none twice."""
    common = {"operation_id": operation_id} if operation_id else {}
    return tuple(
        AuditRecord(
            id=str(uuid.uuid5(_SPACE, f"{now} {operation_id} {number} {action} {sorted(metadata.items())}")),
            action=action,
            transport=transport,
            started_at=now,
            ended_at=now,
            metadata={**metadata, **common},
        )
        for number, (action, metadata) in enumerate(decisions)
    )


def keep_from(now: int, days: int) -> int:
    """The oldest instant a bank's audit log keeps; `days` below 0 keeps everything."""
    return 0 if days < 0 else now - days * _DAY_US
