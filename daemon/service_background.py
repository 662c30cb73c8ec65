"""The part of the service that keeps a bank's background: merging, and what a retain tells of the agent itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from recalld.actors import messages
from recalld.actors.llm.base import REFLECT
from recalld.actors.llm.models import SILENT
from recalld.actors.reflect.background import about_itself, merged
from recalld.actors.reflect.messages import MergeJob
from recalld.daemon import bank_profile, bank_settings
from recalld.daemon.settings_llm import llm_config
from recalld.storage.errors import RecalldError, Superseded

if TYPE_CHECKING:
    from recalld.actors.retain.items import RetainItem
    from recalld.daemon.overrides import Overrides
    from recalld.daemon.screening import Screening
    from recalld.daemon.settings_table import Settings

log = structlog.get_logger(__name__)
Answer = dict[str, Any]

ATTEMPTS = 5
STAYS = "The disposition stays as it is: it follows the background only where a language model reads that."


class BackgroundService:
    """Mixed into the façade."""

    settings: Settings
    screening: Screening
    _overrides: Overrides
    _clock: Callable[[], int]
    _new_id: Callable[[], str]
    _work: Callable[..., Awaitable[Any]]
    _put: Callable[..., Awaitable[Any]]
    _changing: Callable[..., Awaitable[Any]]
    retain_defaults: Callable[[], Answer]

    async def add_background(self, tenant: str, bank_id: str, content: str, update_disposition: bool) -> Answer:
        """Merge a text into the background; the former one stays in the audit log. Raises what a model raises."""
        content = (await self.screening.fields(tenant, bank_id, {"content": content}))["content"]
        await self._put(tenant, bank_id, create=True)
        by_model = llm_config(self.settings).of(REFLECT).provider.strip().lower() not in SILENT
        for attempt in range(ATTEMPTS):
            former = (await self._put(tenant, bank_id, create=False))["overrides"].get("reflect_mission")
            updates = await self._merged(tenant, bank_id, former or "", content, update_disposition, by_model)
            told = {
                "former": former or "",
                "background": updates["reflect_mission"],
                "by": "model" if by_model else "rules",
            }
            request = messages.PutBank(
                tenant,
                bank_id,
                self._new_id(),
                self._clock(),
                False,
                updates=updates,
                expects={"reflect_mission": former},
                decisions=(("background_merged", told),),
            )
            try:
                stored = await self._changing(tenant, bank_id, request)
            except Superseded:
                if attempt == ATTEMPTS - 1:
                    raise
                continue
            profile = bank_profile.profile(bank_id, stored["name"], stored["overrides"])
            note = STAYS if update_disposition and not by_model else None
            return {
                "mission": profile["mission"],
                "background": profile["background"],
                "disposition": profile["disposition"],
                "note": note,
            }
        raise AssertionError("the last attempt answers or raises")

    async def _merged(
        self, tenant: str, bank_id: str, former: str, content: str, update_disposition: bool, by_model: bool
    ) -> Answer:
        if not by_model:
            return {"reflect_mission": merged(former, content)}
        job = MergeJob(tenant, bank_id, former, content, update_disposition, self.retain_defaults())
        made: Answer = await self._work(job)
        # A model that gives nothing must not wipe out what stands.
        text = str(made.get("background") or "").strip() or merged(former, content)
        levels = {f"disposition_{trait}": made[trait] for trait in bank_profile.TRAITS if made.get(trait)}
        return bank_settings.validate_updates({"reflect_mission": text, **(levels if update_disposition else {})})

    async def note_background(self, tenant: str, bank_id: str, items: Sequence[RetainItem]) -> None:
        """Merge what the agent says of itself in items that were retained, where the bank wants that."""
        if not (await self._overrides.of(tenant, bank_id)).get("background_from_retain"):
            return
        said = " ".join(filter(None, (about_itself(item.content) for item in items)))
        if not said:
            return
        try:
            await self.add_background(tenant, bank_id, said, False)
        except RecalldError as error:
            log.warning("what an agent said of itself could not be merged into its background", error=error.code)
