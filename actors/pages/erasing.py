"""What erased memories and failed refreshes do to mental models, inside a write."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from recalld.actors.pages import extractive
from recalld.actors.pages.blocks import apply_edits
from recalld.storage import page_rows
from recalld.storage.analysis import term_frequencies
from recalld.storage.apply import Applier
from recalld.storage.pages import MentalModel, PageContent, PagesChanged
from recalld.storage.records import OBSERVATION


def mark_failed(applier: Applier, model_id: str, now: int) -> None:
    """A refresh ended without success: automatic ones hold back from now on."""
    model = page_rows.model(applier.txn, applier.bank, model_id)
    if model is not None:
        failed = dataclasses.replace(model, last_refresh_failed_at=now)
        applier.apply(PagesChanged(now, models=(failed,)))


def forget_erased(applier: Applier, now: int) -> None:
    """Memories were erased in this write: what rests on them alone leaves every page, former contents that rest on one
    go. An observation that ended counts as erased, since its sources may be what was.

    Text that a model wrote cannot be taken apart by rules: what it rests on goes from its sources, and the page is due
    for a refresh that takes it out.
    """
    for model in page_rows.models(applier.txn, applier.bank):
        formers = tuple(
            (model.id, number, None)
            for number, former in page_rows.formers(applier.txn, applier.bank, model.id)
            if erased(applier, former.cited)
        )
        dead = erased(applier, model.cited)
        if dead:
            changed, content = _without(applier, model, dead)
            applier.apply(PagesChanged(now, models=(changed,), contents=((model.id, content),), formers=formers))
        elif formers:
            applier.apply(PagesChanged(now, formers=formers))


def erased(applier: Applier, unit_ids: Iterable[str]) -> set[str]:
    """Which of the units are not there any more, or are observations that ended: their sources may be what went."""
    gone = set()
    for unit_id in unit_ids:
        uid = applier.uid_of(unit_id)
        unit = None if uid is None else applier.unit(uid)
        if unit is None or (unit.network == OBSERVATION and unit.retired_at is not None):
            gone.add(unit_id)
    return gone


def _without(applier: Applier, model: MentalModel, dead: set[str]) -> tuple[MentalModel, PageContent]:
    held = page_rows.content(applier.txn, applier.bank, model.id)
    left = tuple(one for one in model.cited if one not in dead)
    text = apply_edits(held.text, extractive.without(held.text, dead)).text if left else ""
    written = text and extractive.NOTICE not in held.text
    changed = dataclasses.replace(
        model,
        cited=left,
        retract=(*model.retract, *sorted(dead)) if written else (),
        has_content=bool(text),
        revision=model.revision + 1,
    )
    # Found by its words until the next refresh: the vector was made from what is gone, too.
    return changed, PageContent(text, _response(held.response, dead, text), terms=term_frequencies(text))


def _response(response: dict[str, Any], gone: set[str], text: str) -> dict[str, Any]:
    if not response:
        return {}
    based_on = {
        kind: [one for one in facts if one.get("id") not in gone]
        for kind, facts in (response.get("based_on") or {}).items()
    }
    kept = {name: value for name, value in response.items() if name not in ("trace", "structured_output")}
    return {**kept, "text": text, "based_on": based_on}
