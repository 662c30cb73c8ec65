"""What is known of the consolidation of a bank's facts: rows and their reads.

A fact without a row is pending, so that none can be forgotten. The facts with one are counted by two sets, those that
are consolidated and those that failed; both hold live facts only.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyroaring import BitMap

from recalld.storage import codec, keys
from recalld.storage.environment import ReadTxn
from recalld.storage.records import EXPERIENCE, WORLD, BankCounters

EVERY = bytes(16)
"""The name of both sets: a bank has one of each."""
FACTS = (WORLD, EXPERIENCE)
HISTORY = 50
"""Former versions of an observation that are kept."""


@dataclass(frozen=True, slots=True)
class FactState:
    """How a fact stands: consolidated at `done_at`, or failed `attempts` times and tried again from `next_at` on."""

    done_at: int | None = None
    failed_at: int | None = None
    attempts: int = 0
    next_at: int | None = None
    error: str = ""


def state_of(txn: ReadTxn, bank: int, uid: int) -> FactState:
    """A fact's state; that of a pending one is empty."""
    value = txn.get(keys.number(bank, keys.CONSOLIDATION, uid))
    return FactState() if value is None else codec.decode(FactState, value)


def members(txn: ReadTxn, bank: int, kind: int) -> BitMap:
    """The facts that are consolidated (`SET_CONSOLIDATED`) or failed (`SET_FAILED`)."""
    held = BitMap()
    for _, value in txn.scan(keys.containers(bank, kind, EVERY)):
        held |= BitMap.deserialize(bytes(value))
    return held


def counts(txn: ReadTxn, bank: int, counters: BankCounters) -> tuple[int, int]:
    """(pending, failed) facts of a bank, without looking at one of them."""
    done, failed = (len(members(txn, bank, kind)) for kind in (keys.SET_CONSOLIDATED, keys.SET_FAILED))
    return sum(counters.live[network] for network in FACTS) - done - failed, failed


def built_on(txn: ReadTxn, bank: int, uid: int) -> list[int]:
    """Observations, live or ended, that are built on a unit."""
    return [keys.trailing_u32(key) for key, _ in txn.scan(keys.all_built_on(bank, uid))]
