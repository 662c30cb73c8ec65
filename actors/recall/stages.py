"""What a recall knew at each stage, kept so that a trace can tell why a unit came where it did, or did not come."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recalld.actors.recall.arms import Hits
from recalld.actors.recall.fusion import Fused
from recalld.actors.recall.graph import Visit
from recalld.actors.recall.packing import Selection
from recalld.actors.recall.rank import Boosts, Features
from recalld.actors.recall.snapshot import Bools, Floats, Ints


@dataclass(slots=True)
class Ranking:
    """The scored candidates, best first. `place` maps nothing: arrays share one order. `features` is None when a single
    arm ruled alone and its own score is final."""

    uids: Ints
    final: Floats
    features: Features | None = None
    boosts: Boosts | None = None
    scored: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Candidates in the order the features stand in (uids ascending)."""

    def feature_place(self, uid: int) -> int | None:
        """Where in the feature arrays a unit stands."""
        at = int(np.searchsorted(self.scored, uid))
        return at if at < len(self.scored) and int(self.scored[at]) == uid else None


@dataclass(slots=True)
class Stages:
    """The way of one recall, filled as it goes."""

    allowed: Bools
    k: int
    arms: dict[str, Hits] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    seeds: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    visits: list[Visit] = field(default_factory=list)
    terms: tuple[str, ...] = ()
    fused: Fused = field(default_factory=lambda: Fused(np.empty(0, np.int64), np.empty(0, np.float32)))
    ranking: Ranking = field(default_factory=lambda: Ranking(np.empty(0, np.int64), np.empty(0, np.float32)))
    below: dict[int, float] = field(default_factory=dict)
    """uid -> final score, of candidates under the least score asked for."""
    spoken_for: dict[int, int] = field(default_factory=dict)
    """uid -> the observation built from it that stands in its place."""
    selection: Selection = field(default_factory=lambda: Selection(np.empty(0, np.int64), [], {}))
