"""What recall reads: one bank at one sequence number, as a protocol. The store's snapshot is one implementation.

Rows are numbered by uid, dense from 0 to `n`. Every array returned is a copy or fixed for the snapshot's life.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from recalld.storage.bodies import Body
from recalld.storage.records import ChunkRecord, DocumentRecord, EntityRecord, UnitRecord

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
AnyInts = npt.NDArray[Any]


class Columns(Protocol):
    """One array of length n a fact about units. Instants are int64 microseconds (`UNKNOWN`, `NEVER`)."""

    @property
    def live(self) -> Bools:
        """Neither retired nor erased, now."""

    @property
    def superseded(self) -> Bools:
        """Ended because another unit took its place; its `occurred_end` is when."""

    @property
    def exists(self) -> Bools:
        """Not erased."""

    @property
    def network(self) -> AnyInts: ...

    @property
    def document(self) -> AnyInts:
        """Document number, 0 for none."""

    @property
    def thread(self) -> AnyInts:
        """Thread number, dense, 0 for none: a document, or turns chained by their predecessor."""

    @property
    def speaker(self) -> AnyInts:
        """Speaker number, 0 for unknown."""

    @property
    def prev(self) -> AnyInts:
        """uid of the unit before in the thread, -1 for none."""

    @property
    def next(self) -> AnyInts:
        """uid of the unit after in the thread, -1 for none."""

    @property
    def length(self) -> AnyInts:
        """Number of analysed terms."""

    @property
    def tokens(self) -> AnyInts:
        """Size of the text for packing."""

    @property
    def occurred_start(self) -> Ints: ...

    @property
    def occurred_end(self) -> Ints: ...

    @property
    def mentioned(self) -> Ints: ...

    @property
    def recorded(self) -> Ints: ...

    @property
    def retired(self) -> Ints: ...

    @property
    def question(self) -> Bools: ...

    @property
    def proof(self) -> AnyInts: ...

    @property
    def confidence(self) -> Floats: ...


class Snapshot(Protocol):
    """A bank as it stood at `seq`."""

    @property
    def seq(self) -> int: ...

    @property
    def n(self) -> int: ...

    @property
    def dim(self) -> int: ...

    @property
    def columns(self) -> Columns: ...

    def semantic(self, query: Floats, k: int, allowed: Bools | None, floor: float) -> tuple[AnyInts, Floats]:
        """At most k uids by cosine, best first, each once (its best row), none below `floor`."""

    def cosine(self, uids: AnyInts, query: Floats) -> Floats: ...

    def maxsim(self, uids: AnyInts, query_tokens: Floats, weights: Floats) -> Floats:
        """Sum over query tokens of weight times best match among the unit's tokens; 0 for a unit without tokens."""

    def postings(self, term: str) -> tuple[AnyInts, AnyInts]:
        """uids ascending and frequencies; dead uids may be among them."""

    def echoes(self) -> Bools:
        """bool[n]: observations that say what one of their sources says, word for word. Do not write to it."""
        ...

    def originals(self) -> int:
        """How many units, live or not, are no echoes."""
        ...

    def without_echoes(self) -> Bools:
        """bool[n]: live units but for echoes, the same array for all recalls of a commit. Do not write to it."""
        ...

    def thread_lengths(self) -> AnyInts:
        """Analysed terms of the live units of each thread, by its number; 0 for thread 0."""

    def token_df(self, token_ids: Sequence[int]) -> AnyInts:
        """Number of units that contain each token."""

    def tag_mask(self, tag: str) -> Bools: ...

    def tagset_mask(self, tags: frozenset[str]) -> Bools:
        """Units with exactly these tags."""

    def all_tags(self) -> list[tuple[str, int]]: ...

    def edges(self, uid: int) -> tuple[AnyInts, AnyInts, AnyInts, Floats]:
        """(entity numbers, linked uids, kinds, weights); links are seen from both ends."""

    def entity_uids(self, entity: int, limit: int) -> AnyInts:
        """Units that mention the entity, newest first."""

    def entity_count(self, entity: int) -> int: ...

    def speaker_numbers(self, text: str) -> list[int]: ...

    def uid_of(self, unit_id: str) -> int | None:
        """The uid a unit id stands for, None when the bank never held it."""

    def units(self, uids: Sequence[int]) -> list[UnitRecord]:
        """Records in the order asked for; a unit that is being erased right now is left out."""

    def bodies(self, uids: Sequence[int]) -> list[Body]:
        """`units`, kept decoded with what readers derive from them."""

    def confidence_at(self, opinion: UnitRecord, at: int) -> float | None:
        """How surely an opinion was held at an instant."""

    def entity_label(self, number: int) -> tuple[str, str] | None:
        """(id, name) of an entity, which never change; None when there is none."""

    def entity(self, number: int) -> EntityRecord | None: ...

    def chunk(self, document: int, index: int) -> ChunkRecord | None: ...

    def document(self, number: int) -> DocumentRecord | None: ...
