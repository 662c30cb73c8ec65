"""Every number recall ranks by, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Weights of the linear score. Each feature lies between 0 and 1, so a weight is the most a feature can add.

    They were found by coordinate search on two conversations and reported on others; a small change of any of them
    moves the result by less than a point. `near1` and `near2` are the best late interaction of the turns one and two
    away, `answers` that of the turn before when it is a question: then this unit is its answer, and more wanted than
    the question itself, which `question` holds back.
    """

    maxsim: float = 1.2
    cosine: float = 0.2
    keyword: float = 0.2
    window_keyword: float = 0.05
    thread_keyword: float = 0.15
    speaker: float = 0.15
    near1: float = 0.4
    near2: float = 0.4
    near_keyword: float = 0.1
    answers: float = 0.15
    question: float = -0.1


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """Numbers of the arms, of fusion, of the score and of the deadline; the defaults are the product's."""

    # Candidates an arm may return.
    budget_low: int = 100
    budget_mid: int = 300
    budget_high: int = 1000

    # Semantic arm. A floor belongs to the model: with the default one the cosine between a loose paraphrase and the one
    # sentence it paraphrases in a long chunk lies below .3, though no other text comes near it. No floor finds 9 of 10
    # such sentences first where .3 finds 1, and costs chat nothing.
    semantic_floor: float = 0.0

    # Keyword arm: BM25, and how many terms of a long query are looked at and kept.
    bm25_k1: float = 1.2
    bm25_b: float = 0.75
    query_terms: int = 16
    probed_terms: int = 512

    # Graph arm: spreading activation.
    graph_seeds: int = 20
    graph_hops: int = 2
    graph_decay: float = 0.5
    graph_causal: float = 1.5
    graph_entity: float = 1.2
    graph_semantic: float = 1.0
    graph_temporal: float = 0.8
    graph_entity_units: int = 200
    graph_stop: float = 0.05
    graph_entities: int = 8
    """Entities a hop may open; each is one read of the store."""
    graph_frontier: int = 8
    """Units the second hop spreads from, strongest first."""
    graph_hours: float = 24.0
    """Neighbours in a thread further apart than this are not linked in time."""
    graph_sigma: float = 24.0
    """Hours in which a link in time loses two thirds of its weight: `exp(-hours / sigma)`."""

    semantic_link: float = 0.0
    """Least cosine of a stored semantic link; 0 takes what suits the embedding model."""

    # Temporal arm.
    temporal_floor: float = 0.1

    # Fusion and the candidate list.
    rrf_k: int = 60
    candidates_low: int = 60
    candidates_mid: int = 100
    candidates_high: int = 300
    """Fused units that are scored, by budget; the rest follow in fused order. With the neighbours, mid comes to about
    250: as many again found nothing more in a bank of 3,000 units and took twice the time."""
    neighbour_heads: int = 80
    """Candidates, best first, whose neighbours one and two away join the list."""

    # Late interaction.
    late_tokens: int = 32
    """Query tokens of the greatest weight that take part."""
    prior_units: float = 100.0
    """Units the model's token prior counts for beside the bank's own."""

    weights: RankWeights = field(default_factory=RankWeights)

    # Boosts: 1 + alpha * (signal - 0.5) each. Recency and proof break ties: a recency alpha of 0.2 was measured to
    # cost a point of evidence recall. A window the question names is evidence: 0.3 gave ten points on the questions
    # that name one, and more gave no more.
    recency_alpha: float = 0.02
    recency_days: float = 365.0
    temporal_alpha: float = 0.3
    told_days: float = 7.0
    told_share: float = 0.8
    """What being told right after the window counts for, beside 1 for lying in it."""
    proof_alpha: float = 0.05

    # Tags.
    tag_similarity: float = 0.35
    tag_runner_up: float = 0.8
    """A fuzzy tag also takes tags this close to its best match, as a share of the best one's similarity."""
    tag_group_depth: int = 16
    tag_group_nodes: int = 256

    # Deadline: seconds that must be left for a part to start, and what one candidate of late interaction costs.
    graph_seconds: float = 0.003
    temporal_seconds: float = 0.002
    late_seconds_each: float = 0.00001

    # Answer.
    trace_bodies: int = 50
    """Bodies fetched an arm to make a trace readable."""
    observations_checked: int = 64

    def candidates(self, budget: str) -> int:
        """Fused units that are scored for `low`, `mid` or `high`."""
        by_budget = {"low": self.candidates_low, "mid": self.candidates_mid, "high": self.candidates_high}
        return by_budget.get(budget, self.candidates_mid)

    def k(self, budget: str, n: int) -> int:
        """Candidates an arm may return for `low`, `mid` or `high`, never more than the bank holds."""
        wanted = {"low": self.budget_low, "mid": self.budget_mid, "high": self.budget_high}.get(budget, self.budget_mid)
        return max(1, min(wanted, n))
