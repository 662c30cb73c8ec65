"""`MemorySnapshot`: the interface recall reads from, over plain Python lists and dicts. Clear before fast.

It is the second implementation of the contract beside the store's, and what the engine's own tests run on.
"""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recalld.storage.bodies import Body
from recalld.storage.columns import Columns
from recalld.storage.records import (
    NEVER,
    UNKNOWN,
    ChunkRecord,
    DocumentRecord,
    EntityRecord,
    UnitRecord,
)


@dataclass
class MemorySnapshot:
    """A frozen bank. Build it with `MemoryBank.snapshot()`."""

    n: int
    dim: int
    columns: Columns
    records: list[UnitRecord]
    vectors: np.ndarray
    row_uid: np.ndarray
    tokens: np.ndarray
    token_start: np.ndarray
    token_count: np.ndarray
    token_units: dict[int, int]
    index: dict[str, tuple[np.ndarray, np.ndarray]]
    tags: dict[str, np.ndarray]
    links: dict[int, list[tuple[int, int, float]]]
    entities: dict[int, EntityRecord]
    mentions: dict[int, list[int]]
    speakers: dict[str, int]
    documents: dict[int, DocumentRecord]
    chunks: dict[tuple[int, int], ChunkRecord]
    seq: int = 1
    reads: int = 0
    """Calls that a store would answer from disk."""

    def semantic(self, query, k, allowed, floor):  # type: ignore[no-untyped-def]
        best = np.full(self.n, -2.0, np.float32)
        scores = self.vectors @ query
        if len(self.row_uid) == self.n:
            best[self.row_uid] = scores
        else:
            np.maximum.at(best, self.row_uid, scores)
        best[~(self.columns.live if allowed is None else allowed)] = -2.0
        found = np.flatnonzero(best >= floor)
        if len(found) > k:
            found = found[np.argpartition(-best[found], k - 1)[:k]]
        found = found[np.argsort(-best[found], kind="stable")]
        return found, best[found]

    def echoes(self):  # type: ignore[no-untyped-def]
        return np.zeros(self.n, np.bool_)

    def originals(self):  # type: ignore[no-untyped-def]
        return self.n

    def without_echoes(self):  # type: ignore[no-untyped-def]
        return self.columns.live

    def thread_lengths(self):  # type: ignore[no-untyped-def]
        lengths = np.zeros(int(self.columns.thread.max(initial=0)) + 1)
        for thread, length, live in zip(self.columns.thread, self.columns.length, self.columns.live, strict=True):
            lengths[thread] += float(length) if live and thread else 0.0
        return lengths

    def cosine(self, uids, query):  # type: ignore[no-untyped-def]
        if len(self.row_uid) == self.n:
            return self.vectors[uids] @ query
        best = np.full(self.n, -2.0, np.float32)
        np.maximum.at(best, self.row_uid, self.vectors @ query)
        return best[uids]

    def maxsim(self, uids, query_tokens, weights):  # type: ignore[no-untyped-def]
        counts = self.token_count[uids]
        out = np.zeros(len(uids), np.float32)
        has = counts > 0
        if not has.any():
            return out
        ends = np.cumsum(counts[has])
        starts = ends - counts[has]
        rows = np.arange(ends[-1]) + np.repeat(self.token_start[uids][has] - starts, counts[has])
        products = self.tokens.take(rows, axis=0).astype(np.float32) @ np.ascontiguousarray(query_tokens.T)
        out[has] = np.maximum.reduceat(products, starts, axis=0) @ (weights / np.float32(127.0))
        return out

    def postings(self, term):  # type: ignore[no-untyped-def]
        self.reads += 1
        none = np.empty(0, np.uint32), np.empty(0, np.uint8)
        uids, frequencies = self.index.get(term, none)
        return uids.copy(), frequencies.copy()

    def token_df(self, token_ids: Sequence[int]):  # type: ignore[no-untyped-def]
        self.reads += len(token_ids)
        return np.array([self.token_units.get(int(token), 0) for token in token_ids], np.uint32)

    def tag_mask(self, tag: str) -> np.ndarray:
        self.reads += 1
        return self.tags.get(tag, np.zeros(self.n, np.bool_))

    def tagset_mask(self, tags: frozenset[str]) -> np.ndarray:
        return np.array([frozenset(record.tags) == tags for record in self.records], np.bool_)

    def all_tags(self) -> list[tuple[str, int]]:
        return sorted((tag, int((mask & self.columns.live).sum())) for tag, mask in self.tags.items())

    def edges(self, uid: int):  # type: ignore[no-untyped-def]
        self.reads += 1
        links = self.links.get(uid, [])
        return (
            np.array(self.records[uid].entities, np.uint32),
            np.array([other for other, _, _ in links], np.uint32),
            np.array([kind for _, kind, _ in links], np.uint8),
            np.array([weight for _, _, weight in links], np.float32),
        )

    def entity_uids(self, entity: int, limit: int) -> np.ndarray:
        self.reads += 1
        return np.array(self.mentions.get(entity, [])[::-1][:limit], np.uint32)

    def entity_count(self, entity: int) -> int:
        self.reads += 1
        return len(self.mentions.get(entity, []))

    def speaker_numbers(self, text: str) -> list[int]:
        folded = _fold(text)
        return [n for name, n in self.speakers.items() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded)]

    def uid_of(self, unit_id: str) -> int | None:
        return next((record.uid for record in self.records if record.id == unit_id), None)

    def units(self, uids: Sequence[int]) -> list[UnitRecord]:
        self.reads += len(uids)
        return [self.records[int(uid)] for uid in uids]

    def bodies(self, uids: Sequence[int]) -> list[Body]:
        return [Body(record) for record in self.units(uids)]

    def confidence_at(self, opinion: UnitRecord, at: int) -> float | None:
        return opinion.confidence

    def entity_label(self, number: int) -> tuple[str, str] | None:
        entity = self.entity(number)
        return None if entity is None else (entity.id, entity.name)

    def entity(self, number: int) -> EntityRecord:
        return self.entities[number]

    def chunk(self, document: int, index: int) -> ChunkRecord | None:
        return self.chunks.get((document, index))

    def document(self, number: int) -> DocumentRecord | None:
        return self.documents.get(number)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@dataclass
class MemoryBank:
    """Collects units, then freezes them. `add` gives the uid; every argument but the text has a plain default."""

    dim: int = 8
    rows: list[dict[str, Any]] = field(default_factory=list)
    links: dict[int, list[tuple[int, int, float]]] = field(default_factory=lambda: defaultdict(list))
    documents: dict[str, DocumentRecord] = field(default_factory=dict)
    chunks: dict[tuple[int, int], ChunkRecord] = field(default_factory=dict)
    entities: dict[str, int] = field(default_factory=dict)
    speakers: dict[str, int] = field(default_factory=dict)
    last_in: dict[int, int] = field(default_factory=dict)

    def add(
        self,
        text: str,
        *,
        vector: Any = None,
        token_vectors: Any = None,
        token_ids: Sequence[int] = (),
        terms: Sequence[tuple[str, int]] | None = None,
        network: int = 0,
        document: str | None = None,
        chunk_index: int = 0,
        speaker: str = "",
        tags: Sequence[str] = (),
        entities: Sequence[str] = (),
        occurred: tuple[int | None, int | None] = (None, None),
        mentioned: int | None = None,
        recorded: int = 0,
        retired: int | None = None,
        erased: bool = False,
        tokens: int | None = None,
        proof: int = 1,
        confidence: float | None = None,
        context: str = "",
        metadata: dict[str, str] | None = None,
        sources: Sequence[int] = (),
        id: str | None = None,
    ) -> int:
        uid = len(self.rows)
        number = 0
        if document is not None:
            if document not in self.documents:
                self.documents[document] = DocumentRecord(
                    number=len(self.documents) + 1, id=document, content_hash="", text_length=0, chunks=1, created_at=0,
                    updated_at=0, revision=1, tags=tuple(tags),
                )  # fmt: skip
            number = self.documents[document].number
            self.chunks.setdefault(
                (number, chunk_index),
                ChunkRecord(number, chunk_index, f"chunk {chunk_index} of {document}", "", "", (), 0),
            )
        numbers = tuple(self.entities.setdefault(name, len(self.entities) + 1) for name in entities)
        record = UnitRecord(
            uid=uid,
            id=id or str(uuid.UUID(int=uid + 1)),
            text=text,
            network=network,
            context=context,
            speaker=speaker,
            entities=numbers,
            occurred_start=occurred[0],
            occurred_end=occurred[1],
            mentioned_at=mentioned,
            recorded_at=recorded,
            retired_at=retired,
            metadata=metadata or {},
            tags=tuple(tags),
            document=number,
            document_id=document,
            chunk_index=chunk_index,
            chunk_id=f"bank_{document}_{chunk_index}" if document else None,
            tokens=tokens if tokens is not None else max(1, len(text.split())),
            confidence=confidence,
            proof_count=proof,
            sources=tuple(sources),
            state="valid" if retired is None else "invalidated",
        )
        if terms is None:
            words: dict[str, int] = defaultdict(int)
            for word in re.findall(r"\w+", _fold(text)):
                words[word] += 1
            terms = tuple(words.items())
        prev = self.last_in.get(number, -1) if number else -1
        if number:
            self.last_in[number] = uid
        self.rows.append(
            {
                "record": record,
                "vector": np.atleast_2d(np.zeros(self.dim) if vector is None else np.asarray(vector, np.float32)),
                "token_vectors": np.zeros((0, 64), np.int8)
                if token_vectors is None
                else np.asarray(token_vectors, np.int8),
                "token_ids": tuple(token_ids),
                "terms": terms,
                "speaker": self.speakers.setdefault(_fold(speaker), len(self.speakers) + 1) if speaker else 0,
                "prev": prev,
                "erased": erased,
            }
        )
        return uid

    def link(self, a: int, b: int, kind: int, weight: float = 1.0) -> None:
        self.links[a].append((b, kind, weight))
        self.links[b].append((a, kind, weight))

    def snapshot(self) -> MemorySnapshot:
        rows, n = self.rows, len(self.rows)
        records = [row["record"] for row in rows]
        exists = np.array([not row["erased"] for row in rows], np.bool_)
        live = exists & np.array([record.retired_at is None for record in records], np.bool_)
        prev = np.array([row["prev"] for row in rows], np.int32)
        after = np.full(n, -1, np.int32)
        for behind in ((prev >= 0) & exists & ~live, (prev >= 0) & live):
            after[prev[behind]] = np.flatnonzero(behind)
        documents = np.array([record.document for record in records], np.uint32)

        def instants(name: str, unknown: int) -> np.ndarray:
            return np.array([unknown if (v := getattr(r, name)) is None else v for r in records], np.int64)

        columns = Columns(
            live=live,
            exists=exists,
            network=np.array([r.network for r in records], np.uint8),
            document=documents,
            thread=documents,
            speaker=np.array([row["speaker"] for row in rows], np.uint32),
            prev=prev,
            next=after,
            length=np.array([sum(f for _, f in row["terms"]) for row in rows], np.uint32),
            tokens=np.array([r.tokens for r in records], np.uint32),
            occurred_start=instants("occurred_start", UNKNOWN),
            occurred_end=instants("occurred_end", UNKNOWN),
            mentioned=instants("mentioned_at", UNKNOWN),
            recorded=instants("recorded_at", 0),
            retired=instants("retired_at", NEVER),
            question=np.array([r.text.rstrip().endswith("?") for r in records], np.bool_),
            proof=np.array([r.proof_count for r in records], np.uint16),
            confidence=np.array([np.nan if r.confidence is None else r.confidence for r in records], np.float32),
            superseded=np.array([r.state == "superseded" for r in records], np.bool_),
        )
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        token_units: dict[int, int] = defaultdict(int)
        mentions: dict[int, list[int]] = defaultdict(list)
        tags: dict[str, np.ndarray] = {}
        for uid, row in enumerate(rows):
            for term, frequency in row["terms"]:
                postings[term].append((uid, min(frequency, 255)))
            for token in set(row["token_ids"]):
                token_units[int(token)] += 1
            for number in row["record"].entities:
                mentions[number].append(uid)
            for tag in row["record"].tags:
                tags.setdefault(tag, np.zeros(n, np.bool_))[uid] = True
        counts = np.array([len(row["token_vectors"]) for row in rows], np.int64)
        return MemorySnapshot(
            n=n,
            dim=self.dim,
            columns=columns,
            records=records,
            vectors=np.concatenate([row["vector"] for row in rows]).astype(np.float32)
            if n
            else np.zeros((0, self.dim), np.float32),
            row_uid=np.repeat(np.arange(n), [len(row["vector"]) for row in rows]),
            tokens=np.concatenate([row["token_vectors"] for row in rows]) if n else np.zeros((0, 64), np.int8),
            token_start=np.cumsum(counts) - counts,
            token_count=counts,
            token_units=dict(token_units),
            index={
                term: (np.array([u for u, _ in found], np.uint32), np.array([f for _, f in found], np.uint8))
                for term, found in postings.items()
            },
            tags=tags,
            links={uid: list(links) for uid, links in self.links.items()},
            entities={
                number: EntityRecord(
                    number, str(uuid.UUID(int=10**6 + number)), name, "CONCEPT", len(mentions[number]), None, None
                )
                for name, number in self.entities.items()
            },
            mentions=dict(mentions),
            speakers=dict(self.speakers),
            documents={document.number: replace(document) for document in self.documents.values()},
            chunks=dict(self.chunks),
        )
