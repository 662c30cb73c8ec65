"""Records that recalls return again and again, kept decoded with what was derived from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recalld.storage.records import UnitRecord

LIMIT = 16 * 2**20
"""Bytes of one bank's bodies from which all are let go; the next recalls bring back those in use."""
_EACH = 1500
"""Bytes of a record beside its texts: some twenty small objects."""


class Body:
    """A unit's record. `claim` and `shown` hold what a reader derived from it, for the next reader; None until then."""

    __slots__ = ("claim", "record", "shown")

    def __init__(self, record: UnitRecord) -> None:
        self.record = record
        self.claim: tuple[Any, Any] | None = None
        self.shown: str | None = None


class Bodies:
    """uid -> body of units whose stored record has not changed since. Shared by all readers of a bank.

    A commit that changes records goes on with a copy `without` them, whether they were held or not: a reader of the
    commit before may still add one of them, to the bodies it knows.
    """

    def __init__(self) -> None:
        self._known: dict[int, Body] = {}
        self.nbytes = 0
        """Roughly; readers that add at the same moment may lose a few bytes of each other's count."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, uid: int) -> Body | None:
        return self._known.get(uid)

    def keep(self, body: Body, size: int) -> None:
        """Remember a body whose stored record has `size` bytes."""
        if self.nbytes > LIMIT:
            self._known, self.nbytes = {}, 0
        self._known[body.record.uid] = body
        self.nbytes += _EACH + 3 * size  # the texts stand in the record, the shown form and the claim

    def without(self, uids: Iterable[int]) -> Bodies:
        """A copy that lacks `uids`, or these bodies when there are none."""
        changed = set(uids)
        if not changed:
            return self
        left = Bodies()
        held = dict(self._known)  # in one step: readers add to it meanwhile
        left._known = {uid: body for uid, body in held.items() if uid not in changed}
        left.nbytes = self.nbytes * len(left._known) // max(1, len(held))
        return left
