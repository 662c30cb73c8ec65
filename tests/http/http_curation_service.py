"""What the in-memory service answers about the audit log: nothing was decided yet."""

from __future__ import annotations

from typing import Any


class CurationAnswers:
    async def list_audit(self, tenant: str, bank_id: str, *filters: Any) -> dict[str, Any]:
        return {"bank_id": bank_id, "total": 0, "limit": filters[-2], "offset": filters[-1], "items": []}

    async def audit_stats(self, tenant: str, bank_id: str, action: str | None, days: int) -> dict[str, Any]:
        start = "2026-01-01T00:00:00.000000+00:00"
        return {"bank_id": bank_id, "period": f"{days}d", "trunc": "day", "start": start, "buckets": []}
