"""Banks of made-up units of any size, written straight through the store: nothing is embedded but a few sentences.

A unit stands near one of the shipped conversation's turns (its vector is that turn's with noise, its token vectors are
those of two turns mixed), and its words follow a Zipf law, so that real questions find what they would in a real bank.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recalld.actors.embedding import Embedder
from recalld.daemon.bench import texts
from recalld.storage.analysis import term_frequencies
from recalld.storage.apply import Applier
from recalld.storage.changes import DocumentStored, NewUnit, UnitsAdded
from recalld.storage.quantise import pack_rows, unit_rows
from recalld.storage.records import WORLD, ChunkRecord, DocumentRecord, EntityMention, PreparedUnit

BATCH = 1000
A_DOCUMENT = 20
DAY = 86_400_000_000
START = 1_700_000_000_000_000
_VOCABULARY, _ENTITIES, _NOISE = 30_000, 2_000, 0.6
_ZIPF = 1.3


@dataclass(frozen=True, slots=True)
class Seeds:
    """The real turns everything is made from: `vectors` f32[s, dim], and each turn's token vectors, ids and words."""

    vectors: npt.NDArray[np.float32]
    tokens: list[npt.NDArray[np.int8]]
    token_ids: list[npt.NDArray[np.uint32]]
    words: list[list[str]]


def seeds(embedder: Embedder) -> Seeds:
    made = [embedder.embed_text(text) for text in texts.sentences()]
    return Seeds(
        np.stack([one.vectors[0] for one in made]),
        [one.token_vectors for one in made],
        [one.token_ids for one in made],
        [text.split(": ", 1)[1].split() for text in texts.sentences()],
    )


class Maker:
    """Makes units in batches; two makers with the same number of the batch make the same units."""

    def __init__(self, found: Seeds) -> None:
        self._seeds = found
        self._names = [f"Person{n} Example{n % 97}" for n in range(_ENTITIES)]

    def batch(self, number: int, count: int) -> list[PreparedUnit]:
        rng = np.random.default_rng(number)
        pick = rng.integers(0, len(self._seeds.vectors), (count, 2))
        noise = rng.normal(size=(count, self._seeds.vectors.shape[1])).astype(np.float32)
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        vectors = unit_rows(self._seeds.vectors[pick[:, 0]] + np.float32(_NOISE) * noise)
        codes = [pack_rows(row[None, :]) for row in vectors]
        words = rng.zipf(_ZIPF, (count, 12)) % _VOCABULARY
        names = rng.zipf(_ZIPF, count) % _ENTITIES
        return [self._unit(number * BATCH + at, pick[at], codes[at], words[at], int(names[at])) for at in range(count)]

    def _unit(
        self,
        number: int,
        pick: npt.NDArray[Any],
        code: tuple[bytes, bytes],
        words: npt.NDArray[Any],
        name: int,
    ) -> PreparedUnit:
        first, second = int(pick[0]), int(pick[1])
        half = [len(self._seeds.token_ids[one]) // 2 + 1 for one in (first, second)]
        tokens = np.concatenate([self._seeds.tokens[first][: half[0]], self._seeds.tokens[second][: half[1]]])
        ids = np.concatenate([self._seeds.token_ids[first][: half[0]], self._seeds.token_ids[second][: half[1]]])
        real = self._seeds.words[first][: len(self._seeds.words[first]) // 2]
        text = " ".join([*real, *(f"word{word}" for word in words), self._names[name]])
        said = START + (number // A_DOCUMENT) * (DAY // 8) + number % A_DOCUMENT * 60_000_000
        return PreparedUnit(
            id=str(uuid.UUID(int=number + 1, version=4)),
            text=text,
            network=WORLD,
            context="",
            speaker="",
            entities=(EntityMention(self._names[name], "PERSON"),),
            occurred_start=said if number % 3 == 0 else None,
            occurred_end=said + DAY if number % 3 == 0 else None,
            mentioned_at=said,
            anchor_assumed=False,
            metadata={},
            tags=(),
            chunk_index=0,
            tokens=len(ids),
            terms=term_frequencies(text),
            question=False,
            trust="normal",
            confidence=None,
            vectors=code[0],
            scales=code[1],
            token_vectors=tokens.tobytes(),
            token_ids=ids.astype("<u4").tobytes(),
        )


def writer(units: list[PreparedUnit], now: int) -> Callable[[Applier], int]:
    """What writes one batch: every twenty units are a document of one chunk."""

    def run(applier: Applier) -> int:
        uid = applier.allocate("uid", len(units))
        for at in range(0, len(units), A_DOCUMENT):
            part = units[at : at + A_DOCUMENT]
            number = applier.allocate("document")
            thread = applier.allocate("thread")
            name = f"document-{number}"
            text = "\n".join(unit.text for unit in part)
            digest = hashlib.sha256(text.encode()).hexdigest()
            uids = tuple(range(uid + at, uid + at + len(part)))
            record = DocumentRecord(
                number, name, digest, len(text), 1, now, now, 1, live_units=len(part), thread=thread
            )
            applier.apply(DocumentStored(record, (ChunkRecord(number, 0, text, digest, "", uids, now),)))
            placed = tuple(
                NewUnit(
                    unit=unit,
                    uid=uids[place],
                    document=number,
                    document_id=name,
                    chunk_index=0,
                    chunk_id=f"bank_{name}_0",
                    thread=thread,
                    prev=uids[place - 1] if place else -1,
                    predecessor=uids[place - 1] if place else None,
                )
                for place, unit in enumerate(part)
            )
            applier.apply(UnitsAdded(placed, now))
        applier.touch(now, new_document=True)
        return uid

    return run


def most_common(units: list[PreparedUnit], count: int) -> list[str]:
    """The terms that most units hold: a query of them is the dearest there is."""
    counted: Counter[str] = Counter(term for unit in units for term, _ in unit.terms)
    return [term for term, _ in counted.most_common(count)]
