"""The part of the service that knows banks and their settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from recalld.actors import messages
from recalld.daemon import bank_profile, bank_settings
from recalld.storage.errors import BankNotFound

if TYPE_CHECKING:
    from recalld.actors.directory import Shards
    from recalld.daemon.files import FileDesk
    from recalld.daemon.overrides import Overrides
    from recalld.daemon.settings_table import Settings

Answer = dict[str, Any]


class BankService:
    """Mixed into the façade, which gives it shards, settings, files, clock and ids."""

    settings: Settings
    shards: Shards
    files: FileDesk
    _overrides: Overrides
    _clock: Callable[[], int]
    _new_id: Callable[[], str]

    async def _ask_bank(self, what: str, tenant: str, bank_id: str) -> Answer:
        answer: Answer = await self.shards.call(tenant, bank_id, messages.Read(what, tenant, bank_id))
        return answer

    async def _put(
        self,
        tenant: str,
        bank_id: str,
        *,
        create: bool,
        name: str | None = None,
        updates: dict[str, Any] | None = None,
        reset: bool = False,
    ) -> Answer:
        request = messages.PutBank(tenant, bank_id, self._new_id(), self._clock(), create, name, updates or {}, reset)
        return await self._changing(tenant, bank_id, request)

    async def _changing(self, tenant: str, bank_id: str, request: Any, seconds: float = 30.0) -> Answer:
        """Send a change of a bank or of its settings."""
        self._overrides.changed(tenant, bank_id)
        try:
            answer: Answer = await self.shards.call(tenant, bank_id, request, seconds)
        finally:
            self._overrides.changed(tenant, bank_id)
        return answer

    async def list_banks(self, tenant: str, q: str | None, limit: int, offset: int) -> Answer:
        rows: list[Answer] = []
        for found in await self.shards.call_all(messages.Read("list_banks", tenant)):
            rows += found
        if q:
            wanted = q.casefold()
            rows = [r for r in rows if wanted in r["bank_id"].casefold() or wanted in (r["name"] or "").casefold()]
        # Most recently written first; banks nobody wrote to last. ISO dates of one form order as text.
        rows.sort(key=lambda row: row["bank_id"])
        rows.sort(key=lambda row: row["last_write_at"] or "", reverse=True)
        return {"banks": rows[offset : offset + limit], "total": len(rows), "limit": limit, "offset": offset}

    async def put_bank(self, tenant: str, bank_id: str, fields: dict[str, Any]) -> Answer:
        return await self._change_bank(tenant, bank_id, fields, create=True)

    async def patch_bank(self, tenant: str, bank_id: str, fields: dict[str, Any]) -> Answer:
        return await self._change_bank(tenant, bank_id, fields, create=False)

    async def _change_bank(self, tenant: str, bank_id: str, fields: dict[str, Any], *, create: bool) -> Answer:
        name, updates = bank_profile.split_fields(fields)
        await self._check_together(tenant, bank_id, updates)
        stored = await self._put(tenant, bank_id, create=create, name=name, updates=updates)
        return bank_profile.profile(bank_id, stored["name"], stored["overrides"])

    async def enabled_tools(self, tenant: str, bank_id: str) -> list[str] | None:
        """The MCP tools that may be called on a bank; None for all."""
        own: list[str] | None = (await self._overrides.of(tenant, bank_id)).get("mcp_enabled_tools")
        return own

    async def _check_together(self, tenant: str, bank_id: str, updates: dict[str, Any]) -> None:
        if not updates:
            return
        try:
            overrides = (await self._ask_bank("bank", tenant, bank_id))["overrides"]
        except BankNotFound:
            overrides = {}
        merged = {k: v for k, v in {**overrides, **updates}.items() if v is not None}
        bank_settings.check_together(bank_settings.resolve(self.settings, merged))

    async def delete_bank(self, tenant: str, bank_id: str) -> Answer:
        found = await self._changing(tenant, bank_id, messages.DeleteBank(tenant, bank_id, self._new_id()), 120.0)
        await self.files.tidy(tenant, bank_id)
        count = found["deleted"]
        return {"success": True, "message": f"Bank '{bank_id}' deleted", "deleted_count": count}

    async def bank_stats(self, tenant: str, bank_id: str) -> Answer:
        return await self._ask_bank("bank_stats", tenant, bank_id)

    async def bank_config(self, tenant: str, bank_id: str) -> Answer:
        return self._config(bank_id, (await self._ask_bank("bank", tenant, bank_id))["overrides"])

    def _config(self, bank_id: str, overrides: dict[str, Any]) -> Answer:
        return {
            "bank_id": bank_id,
            "config": bank_settings.resolve(self.settings, overrides),
            "overrides": overrides,
        }

    async def patch_config(self, tenant: str, bank_id: str, updates: dict[str, Any]) -> Answer:
        checked = bank_settings.validate_updates(updates)
        await self._check_together(tenant, bank_id, checked)
        stored = await self._put(tenant, bank_id, create=True, updates=checked)
        return self._config(bank_id, stored["overrides"])

    async def reset_config(self, tenant: str, bank_id: str) -> Answer:
        stored = await self._put(tenant, bank_id, create=False, reset=True)
        return self._config(bank_id, stored["overrides"])
