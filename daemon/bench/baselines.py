"""What plain methods find on the same turns, as a yardstick: BM25, cosine, and the rank fusion of the two.

Textbook forms on purpose, with the daemon's own analyser and embedding model, so that a difference is one of ranking.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from recalld.actors.embedding import Embedder
from recalld.daemon.bench.data import Conversation
from recalld.daemon.bench.score import Asked, inside_budgets
from recalld.storage.analysis import analyse, query_terms

METHODS = ("BM25", "cosine", "rank fusion")
_K1, _B = 1.5, 0.75
_FUSED, _RRF = 100, 60.0


class Bm25:
    """BM25 over analysed texts, held in dictionaries: slow to build, plain to read."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self.count = len(texts)
        lengths = np.array([len(text) for text in texts], np.float32)
        self.norm = _K1 * (1 - _B + _B * lengths / max(1.0, float(lengths.mean()) if len(lengths) else 1.0))
        self.postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, text in enumerate(texts):
            for term, frequency in Counter(text).items():
                self.postings[term].append((place, frequency))

    def score(self, terms: Sequence[str]) -> npt.NDArray[np.float32]:
        scores = np.zeros(self.count, np.float32)
        for term in dict.fromkeys(terms):
            found = self.postings.get(term, [])
            weight = math.log(1 + (self.count - len(found) + 0.5) / (len(found) + 0.5))
            for place, frequency in found:
                scores[place] += weight * frequency * (_K1 + 1) / (frequency + self.norm[place])
        return scores


def rank(talk: Conversation, embedder: Embedder, questions: int = 0) -> dict[str, list[Asked]]:
    """How each method answers the questions of one conversation (the first `questions` of them; 0: all)."""
    texts = [turn.text for turn in talk.turns]
    ids = [turn.id for turn in talk.turns]
    with ThreadPoolExecutor(2) as pool:
        embedded = list(pool.map(embedder.embed_text, texts))
    owner = np.repeat(np.arange(len(texts)), [len(one.vectors) for one in embedded])
    rows = np.concatenate([one.vectors for one in embedded])
    costs = [one.tokens for one in embedded]
    bm25 = Bm25([analyse(text) for text in texts])
    answers: dict[str, list[Asked]] = {method: [] for method in METHODS}
    for question in talk.questions[: questions or None]:
        keyword = bm25.score(query_terms(question.text))
        cosine = np.full(len(texts), -1.0, np.float32)
        np.maximum.at(cosine, owner, rows @ embedder.embed_query(question.text).vector)
        for method, scores in zip(METHODS, (keyword, cosine, fuse(keyword, cosine)), strict=True):
            order = np.argsort(-scores, kind="stable")
            ranked = tuple(ids[place] for place in order)
            inside = inside_budgets(ranked, [costs[place] for place in order])
            answers[method].append(Asked(question.category, question.evidence, ranked, inside))
    return answers


def fuse(*scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Reciprocal rank fusion of the first hundred of each score; the rest is 0."""
    fused = np.zeros(len(scores[0]), np.float32)
    for one in scores:
        top = np.argsort(-one, kind="stable")[:_FUSED]
        fused[top] += 1 / (_RRF + 1 + np.arange(len(top), dtype=np.float32))
    return fused
