"""Which of some texts a bank holds already, word for word: pasted memories are known by this."""

from __future__ import annotations

from typing import Any

from recalld.storage.analysis import term_frequencies
from recalld.storage.partition import Partition
from recalld.storage.snapshot import Snapshot

MOST_TEXTS = 300
MOST_BODIES = 20


def stored_texts(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> list[str]:
    """Those of `texts` that are a live unit's whole text, outside the documents `except_documents`.

    Found by the rarest of its words, so a text is compared with a handful of units. Raises `BankNotFound`.
    """
    others = set(params.get("except_documents") or ())
    with partition.read(tenant, bank_id) as snap:
        return [text for text in params["texts"][:MOST_TEXTS] if _stored(snap, text, others)]


def _stored(snap: Snapshot, text: str, others: set[str]) -> bool:
    found = None
    for term, _ in sorted(term_frequencies(text), key=lambda pair: -len(pair[0]))[:8]:
        uids, _ = snap.postings(term)
        live = {uid for uid in uids.tolist() if uid < snap.n and snap.columns.live[uid]} if len(uids) < 2000 else None
        if live is not None:
            found = live if found is None else found & live
        if found is not None and len(found) <= MOST_BODIES:
            break
    near = snap.units(sorted(found or ())[-MOST_BODIES:])
    return any(unit.text == text and unit.document_id not in others for unit in near)
