"""A document as the items it could be sent as again: what reprocessing reads."""

from __future__ import annotations

from typing import Any

from recalld.actors.retain.items import RetainItem
from recalld.storage.errors import Conflict, NotFound
from recalld.storage.partition import Partition
from recalld.storage.snapshot import Snapshot

GLUE = "\n"


def document_source(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """{"items"} that give the document its stored text again, in plain form.

    One item, or several where parts of the text carry other tags than those before. Raises `BankNotFound`, `NotFound`,
    `Conflict` when no text was kept.
    """
    document_id: str = params["document_id"]
    with partition.read(tenant, bank_id) as snap:
        record = snap.document_by_id(document_id)
        if record is None:
            raise NotFound(f"Document '{document_id}' not found")
        if not record.keep_text:
            raise Conflict(
                f"The text of document '{document_id}' was not kept (store_document_text is off), so it cannot be read"
                " again. Send it again."
            )
        parts: list[tuple[str, tuple[str, ...]]] = []
        for index in range(record.chunks):
            chunk = snap.chunk(record.number, index)
            if chunk is None:
                continue
            tags = _tags(snap, chunk.uids, parts[-1][1] if parts else record.tags)
            text = chunk.glue + chunk.text
            if parts and (parts[-1][1] == tags or chunk.glue != GLUE):
                parts[-1] = (parts[-1][0] + text, parts[-1][1])
            else:
                parts.append((chunk.text if parts else text, tags))
    given = record.params
    undated = given.get("undated") is True
    stamp = given.get("event_date")
    if not isinstance(stamp, int) and not undated:
        # It was taken to be said when it came; now is later.
        stamp = record.created_at
    items = [
        RetainItem(
            content=text,
            timestamp=None if undated else stamp,
            undated=undated,
            utc_offset_minutes=int(given.get("utc_offset_minutes") or 0),
            context=str(given.get("context") or ""),
            metadata={str(k): str(v) for k, v in (given.get("metadata") or record.metadata or {}).items()},
            document_id=document_id,
            tags=tags,
            observation_scopes=given.get("observation_scopes"),
            strategy=given.get("strategy"),
            trust=given.get("trust"),
            file=given.get("file"),
        ).to_plain()
        for text, tags in parts
        if text.strip()
    ]
    if not items:
        raise Conflict(f"Document '{document_id}' holds no text; send it again.")
    return {"items": items}


def _tags(snap: Snapshot, uids: tuple[int, ...], otherwise: tuple[str, ...]) -> tuple[str, ...]:
    """Tags that all units of a chunk share; tags that labels gave to some of them are not the item's."""
    found = [frozenset(unit.tags) for unit in snap.units(uids)]
    return tuple(sorted(frozenset.intersection(*found))) if found else otherwise
