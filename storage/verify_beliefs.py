"""Opinions counted against the events that moved them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recalld.storage import beliefs, codec, keys, mentions
from recalld.storage.beliefs import BeliefEvent, BeliefRecord
from recalld.storage.columns import COLUMN_ROWS, ColumnRow
from recalld.storage.environment import ReadTxn
from recalld.storage.records import OPINION, RETIRED, UnitRecord

if TYPE_CHECKING:
    from recalld.storage.verify import Findings

_NEAR = 1e-6


def check_beliefs(txn: ReadTxn, bank: int, found: Findings) -> None:
    """Each confidence is the replay of its history, each piece of evidence is there, and is found from its unit."""
    known: set[str] = set()
    for _, value in txn.scan(keys.table(bank, keys.BELIEF)):
        held = codec.decode(BeliefRecord, value)
        known.add(held.opinion)
        uid = mentions.uid_of(txn, bank, held.opinion)
        body = None if uid is None else txn.get(keys.number(bank, keys.UNIT, uid))
        if uid is None or body is None:
            found.off("beliefs", held.opinion, "its opinion is not there")
            continue
        record = codec.decode(UnitRecord, body)
        confidence = beliefs.replay(held.base, beliefs.events(txn, bank, held.opinion))
        column = ColumnRow.unpack(COLUMN_ROWS.get(txn, bank, uid)).confidence
        fits = record.confidence == confidence and abs(column - confidence) < _NEAR
        found.expect(fits, "beliefs", held.opinion, f"its confidence is {record.confidence}, its history {confidence}")
        found.expect(record.network == OPINION, "beliefs", held.opinion, "its unit is no opinion")
        low = record.retired_at is None and confidence < held.floor
        found.expect(not low, "beliefs", held.opinion, "it is below the floor and not retired")
        high = record.state == RETIRED and record.reason == beliefs.BELOW_FLOOR and confidence >= held.floor
        found.expect(not high, "beliefs", held.opinion, "it is retired and not below the floor")
    count = 0
    for _, value in txn.scan(keys.table(bank, keys.BELIEF_EVENT)):
        event = codec.decode(BeliefEvent, value)
        count += 1
        found.expect(event.opinion in known, "belief_events", event.opinion, "nothing is known of its opinion")
        if event.unit:
            there = mentions.uid_of(txn, bank, event.unit) is not None
            found.expect(there, "belief_events", event.opinion, f"its evidence {event.unit} is not there")
            back = beliefs.judged(txn, bank, event.opinion, event.unit)
            found.expect(back, "belief_events", event.opinion, f"it is not found from its evidence {event.unit}")
    rows = sum(1 for _ in txn.scan(keys.table(bank, keys.BELIEVED_BY)))
    found.expect(rows <= count, "believed_by", "rows", "more evidence is listed than there is")
    found.checked |= {"beliefs": len(known), "belief_events": count}
