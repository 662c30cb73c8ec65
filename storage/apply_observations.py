"""Carrying out what happens to observations and to the facts they are built on.

Whatever ends, erases or retags a fact takes what was built on it along in the same write: an observation of which a
source ended is retired, one of which a source is erased is erased with all its versions, because their text may hold
the source's words. The sources that are left are pending again, so that the next consolidation builds from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyroaring import BitMap

from recalld.storage import codec, keys
from recalld.storage.changes import FactsConsolidated, UnitsRetired
from recalld.storage.consolidation import EVERY, FACTS, FactState, built_on, members
from recalld.storage.edges import Edges
from recalld.storage.environment import WriteTxn
from recalld.storage.records import EVIDENCE, OBSERVATION, UnitRecord
from recalld.storage.vector_rows import TOKEN_ROWS, VECTOR_ROWS


class ObservationChanges:
    """The part of an `Applier` that knows observations."""

    txn: WriteTxn
    bank: int
    unit: Callable[[int], UnitRecord | None]
    uid_of: Callable[[str], int | None]
    is_live: Callable[[int], bool]
    _numbers: dict[str, int]
    _join_set: Callable[[int, bytes, list[int]], None]
    _leave_set: Callable[[int, bytes, int], bool]
    _retire: Callable[[UnitsRetired], None]
    _link: Callable[[dict[int, Edges], int, Iterable[int], int, list[float]], None]

    # -- observations ----------------------------------------------------------------------------------------------

    def _build_on(self, links: dict[int, Edges], uid: int, sources: tuple[int, ...], echo: bool) -> None:
        """An observation is built on its sources; an `echo` says what one of them says, word for word."""
        if echo:
            self._join_set(keys.SET_ECHO, EVERY, [uid])
        self._link(links, uid, sources, EVIDENCE, [1.0] * len(sources))
        for source in sources:
            self.txn.put(keys.built_on(self.bank, source, uid), b"")

    def _drop_sources(self, record: UnitRecord) -> None:
        """The rows of an observation that is erased."""
        for source in record.sources:
            self.txn.delete(keys.built_on(self.bank, source, record.uid))
        if record.sources:
            self._leave_set(keys.SET_ECHO, EVERY, record.uid)

    def _is_echo(self, record: UnitRecord) -> bool:
        if record.network != OBSERVATION:
            return False
        value = self.txn.get(keys.container(self.bank, keys.SET_ECHO, EVERY, record.uid >> 16))
        return value is not None and record.uid in BitMap.deserialize(bytes(value))

    def _rows_of(self, uid: int) -> tuple[bytes, bytes]:
        """The stored vectors and token vectors of a unit."""
        return bytes(VECTOR_ROWS.get(self.txn, self.bank, uid)), bytes(TOKEN_ROWS.get(self.txn, self.bank, uid))

    def _end_built_on(self, uids: list[int], at: int) -> None:
        """The units are current no more, or say it to others: what was built on them ends with them."""
        found = {one for uid in uids for one in built_on(self.txn, self.bank, uid) if self.is_live(one)}
        if found:
            self._retire(UnitsRetired(tuple(sorted(found)), at))

    def _with_built_on(self, uids: Iterable[int]) -> set[int]:
        """The units, and every version of every observation that is built on one of them."""
        gone = set(uids)
        for uid in uids:
            for one in built_on(self.txn, self.bank, uid):
                if one not in gone:
                    gone |= self.versions(one)
        return gone

    def versions(self, uid: int) -> set[int]:
        """The versions of an observation that are kept, from the newest of its id on, and `uid` itself."""
        found = {uid}
        record = self.unit(uid)
        newest = None if record is None else self.uid_of(record.id)
        record = record if newest is None else self.unit(newest)
        while record is not None:
            found.add(record.uid)
            record = None if record.former is None else self.unit(record.former)
        return found

    # -- facts -----------------------------------------------------------------------------------------------------

    def _unsettle(self, record: UnitRecord) -> None:
        """A unit ended, or changed: it is consolidated no more; nor are the sources of an observation."""
        for uid in record.sources if record.network == OBSERVATION else (record.uid,):
            self._set_state(uid, None)

    def _set_state(self, uid: int, state: FactState | None) -> None:
        key = keys.number(self.bank, keys.CONSOLIDATION, uid)
        if self.txn.get(key) is not None:
            for kind in (keys.SET_CONSOLIDATED, keys.SET_FAILED):
                self._leave_set(kind, EVERY, uid)
            self.txn.delete(key)
        if state is not None:
            self._join_set(keys.SET_FAILED if state.done_at is None else keys.SET_CONSOLIDATED, EVERY, [uid])
            self.txn.put(key, codec.encode(state))

    def fact(self, uid: int) -> UnitRecord | None:
        """A fact that is current."""
        record = self.unit(uid)
        return record if record is not None and record.retired_at is None and record.network in FACTS else None

    def _consolidate(self, change: FactsConsolidated) -> None:
        if change.everything:
            self.txn.delete_prefix(keys.table(self.bank, keys.CONSOLIDATION))
            for kind in (keys.SET_CONSOLIDATED, keys.SET_FAILED):
                self.txn.delete_prefix(keys.containers(self.bank, kind, EVERY))
        if change.recovered:
            for uid in members(self.txn, self.bank, keys.SET_FAILED):
                self._set_state(uid, None)
        for uid in change.done:
            if self.fact(uid) is not None:
                self._set_state(uid, FactState(done_at=change.at))
        for one in change.failed:
            if self.fact(one.uid) is not None:
                self._set_state(one.uid, FactState(None, change.at, one.attempts, one.next_at, one.error))
        for uid in change.pending:
            self._set_state(uid, None)
        self._end_built_on(list(change.pending), change.at)
        if change.done or change.failed:
            self._numbers["last_consolidated_at"] = change.at
