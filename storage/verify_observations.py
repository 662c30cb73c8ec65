"""Observations counted against what they are built on, and the state of facts against the facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recalld.storage import codec, keys
from recalld.storage.consolidation import FACTS, members
from recalld.storage.environment import ReadTxn
from recalld.storage.records import OBSERVATION, UnitRecord

if TYPE_CHECKING:
    from recalld.storage.verify import Findings


def check_observations(txn: ReadTxn, bank: int, found: Findings) -> None:
    """A current observation stands on current facts alone, each once, and is found from each of them."""
    links: set[tuple[int, int]] = set()
    current: set[int] = set()
    observations: list[UnitRecord] = []
    for _, value in txn.scan(keys.table(bank, keys.UNIT)):
        record = codec.decode(UnitRecord, value)
        if record.network == OBSERVATION:
            observations.append(record)
            links |= {(source, record.uid) for source in record.sources}
        if record.retired_at is None and record.network in FACTS:
            current.add(record.uid)
    for one in observations:
        sources = set(one.sources)
        if one.retired_at is None:
            gone = sources - current
            found.expect(not gone, "observations", one.uid, f"it is built on {sorted(gone)[:3]}, which are not current")
            found.expect(bool(sources), "observations", one.uid, "it is built on nothing")
        fits = one.proof_count == len(sources) == len(one.sources)
        found.expect(fits, "observations", one.uid, f"it counts {one.proof_count} proofs, and has {len(sources)}")
    strangers = set(members(txn, bank, keys.SET_ECHO)) - {one.uid for one in observations}
    found.expect(not strangers, "echoes", sorted(strangers)[:3], "they are no observations")
    held = set()
    for key, _ in txn.scan(keys.table(bank, keys.BUILT_ON)):
        raw = bytes(key)
        held.add((int.from_bytes(raw[-8:-4], "big"), int.from_bytes(raw[-4:], "big")))
    for source, uid in sorted(links ^ held)[:3]:
        found.off("observations", uid, f"its being built on unit {source} is not known from both")
    for key, _ in txn.scan(keys.table(bank, keys.CONSOLIDATION)):
        uid = keys.trailing_u32(key)
        found.expect(uid in current, "consolidated facts", uid, "it is no current fact")
    found.checked["observations"] = len(observations)
