"""What was forgotten is gone, from the vectors of its neighbours too; what was kept is found, wherever it stood."""

from __future__ import annotations

import contextlib
import random
import sys
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "flight"))

from flight_service import TENANT, ended, item, opened, queue, recall, retain, texts

from recalld.daemon.composition import clock, new_id
from recalld.daemon.service import MemoryService
from recalld.storage.home import Home
from recalld.storage.partition import StoreSettings

QUESTION = "Did you bring the passport to the embassy?"
ANSWER = "Yes, I took it there on Friday."
SAID = {"timestamp": "2026-03-02T10:00:00Z", "document_id": "talk"}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    running = await opened(tmp_path / "home")
    yield running
    await running.close()


def rows_of(home: Path, bank: str) -> dict[str, tuple[bytes, bytes]]:
    """(vector row, token row) as stored, by text, of the live units of a bank. The home must not be open."""
    place = Home(home)
    number = place.partition_of(TENANT, bank)
    partition = place.open_partition(number, StoreSettings(), clock, new_id)
    try:
        with partition.read(TENANT, bank) as snap:
            live = [uid for uid in range(snap.n) if snap.columns.live[uid]]
            return {unit.text: (snap.vector_row(unit.uid), snap.token_row(unit.uid)) for unit in snap.units(live)}
    finally:
        partition.close()


@pytest.mark.parametrize("mode", ["chunks", "concise"])
async def test_a_follower_forgets_what_it_was_embedded_behind(tmp_path: Path, mode: str) -> None:
    """The answer is embedded behind its question; without the question its vectors are those it has alone."""
    home = tmp_path / "home"
    service = await opened(home, retain_extraction_mode=mode)
    try:
        await retain(service, "both", item(QUESTION, **SAID), item(ANSWER, **SAID))
        await retain(service, "alone", item(ANSWER, **SAID))
        await retain(service, "changed", item(QUESTION, **SAID), item(ANSWER, **SAID))
        await retain(service, "changed", item(ANSWER, **SAID))
        await retain(service, "deleted", item(QUESTION, **{**SAID, "document_id": "q"}))
        assert await texts(service, "changed") == await texts(service, "alone")
    finally:
        await service.close()
    both, alone, changed = (rows_of(home, bank) for bank in ("both", "alone", "changed"))
    answers = [text for text in alone if "took it there" in text]
    assert len(answers) == 1
    assert changed[answers[0]] == alone[answers[0]]
    assert both[answers[0]][0] != alone[answers[0]][0], "the answer carries its question, so the test shows something"


async def test_an_undocumented_turn_forgets_the_deleted_turn_before_it(tmp_path: Path) -> None:
    """Two calls without a document id: the second turn is embedded behind the first, until that is deleted."""
    home = tmp_path / "home"
    service = await opened(home)
    when = {"timestamp": "2026-03-02T10:00:00Z"}
    try:
        for bank in ("both", "deleted"):
            await retain(service, bank, item(QUESTION, **when))
            await retain(service, bank, item(ANSWER, **when))
        await retain(service, "alone", item(ANSWER, **when))
        from recalld.actors.filters import MemoryFilters

        listed = await service.list_memories(TENANT, "deleted", MemoryFilters(limit=10))
        question = next(row for row in listed["items"] if row["text"] == QUESTION)
        await service.delete_document(TENANT, "deleted", question["document_id"])
        assert await texts(service, "deleted") == [ANSWER]
    finally:
        await service.close()
    both, alone, deleted = (rows_of(home, bank) for bank in ("both", "alone", "deleted"))
    assert both[ANSWER] != alone[ANSWER]
    assert deleted[ANSWER] == alone[ANSWER]


# -- no byte is left ---------------------------------------------------------------------------------------------------


def needles(word: str) -> list[bytes]:
    return [word.encode(), word.encode("utf-16-le"), word.lower().encode(), word.upper().encode()]


def traces(home: Path, *words: str) -> list[str]:
    """Files under the home that hold one of the words, plain or inside a zlib stream."""
    found = []
    wanted = [(word, needle) for word in words for needle in needles(word)]
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        data = path.read_bytes()
        found += [f"{path.relative_to(home)}: {word}" for word, needle in wanted if needle in data]
        for inflated in streams(data):
            found += [f"{path.relative_to(home)} (packed): {word}" for word, needle in wanted if needle in inflated]
    return sorted(set(found))


def streams(data: bytes) -> Iterator[bytes]:
    for magic in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"):
        at = data.find(magic)
        while at >= 0:
            with contextlib.suppress(zlib.error):
                yield zlib.decompressobj().decompress(data[at : at + (1 << 20)])
            at = data.find(magic, at + 1)


WORDS = (
    "Quvexandrum",
    "Zlimborato",
    "Praxitegol",
    "Wuntherbork",
    "Ostrivalda",
    "Kyrmelonth",
    "Drubalonex",
    "Fendrakulo",
)


def secret(document: str) -> dict[str, object]:
    """An item with a marker in everything that holds text."""
    text, context, metadata, tag, entity, speaker, second, third = WORDS
    return {
        "content": f"{speaker}: The {text} stands in the cellar of {second} Ltd. I love the {third} very much.\n" * 3,
        "context": f"a talk about {context}",
        "metadata": {"note": metadata, "speaker": speaker},
        "tags": [tag],
        "entities": [{"text": entity, "type": "ORG"}],
        "document_id": document,
        "timestamp": "2026-03-02T10:00:00Z",
    }


@pytest.mark.parametrize("mode", ["chunks", "concise"])
async def test_after_deletion_and_compaction_no_byte_is_left(tmp_path: Path, mode: str) -> None:
    home = tmp_path / "home"
    service = await opened(home, retain_extraction_mode=mode)
    try:
        for i in range(20):
            await retain(service, "b", f"Something else, number {i}, that stays where it is.")
        await service.retain(
            TENANT,
            "b",
            [item(**secret("sync"))],
            asynchronous=False,
            operation_id=None,  # type: ignore[arg-type]
        )
        await ended(service, "b", await queue(service, "b", item(**secret("async"))))  # type: ignore[arg-type]
        await retain(service, "b", item("Rewritten without.", document_id="sync", timestamp="2026-03-02T10:00:00Z"))
        for i in range(20):
            await retain(service, "b", f"Something after, number {i}, that stays where it is.")
        assert traces(home, *WORDS), "the words are on disk while the document is there"
        await service.delete_document(TENANT, "b", "sync")
        await service.delete_document(TENANT, "b", "async")
        for word in WORDS:
            assert not any(word.lower() in text.lower() for text in await recall(service, "b", f"{word} {word}"))
        await service.compact()
        assert traces(home, *WORDS) == []
        assert len(await texts(service, "b")) == 40
    finally:
        await service.close()
    assert traces(home, *WORDS) == []


async def test_after_deleting_a_bank_and_compaction_no_byte_is_left(tmp_path: Path) -> None:
    home = tmp_path / "home"
    service = await opened(home)
    try:
        await retain(service, "stays", "Something else stays.")
        await retain(service, f"bank {WORDS[0]}", item(**secret(f"doc {WORDS[1]}")))  # type: ignore[arg-type]
        await queue(service, f"bank {WORDS[0]}", item(**secret(f"other {WORDS[1]}")))  # type: ignore[arg-type]
        await service.delete_bank(TENANT, f"bank {WORDS[0]}")
        await service.compact()
        assert [one for one in traces(home, *WORDS)] == []
        assert await texts(service, "stays") == ["Something else stays."]
    finally:
        await service.close()


# -- and what was kept is found ----------------------------------------------------------------------------------------

MARKERS = [
    (
        "Grandmother's ring was pawned to pay for the flight.",
        "Which family jewel did they sell to afford plane tickets?",
    ),
    ("The veterinarian said the old spaniel has gone deaf.", "What health problem does the elderly dog have?"),
    ("Her landlord doubled the rent without any notice.", "Why did housing suddenly become so expensive for her?"),
    ("Two of the violin's strings snapped during the recital.", "What went wrong with the instrument at the concert?"),
    ("The baker switched to oats because of his gluten intolerance.", "What change was made due to a food allergy?"),
    ("A tornado flattened the barn last spring.", "Which farm building was destroyed by a storm?"),
    ("He proposed to Elena on the ferry to Naxos.", "Where did the man ask his girlfriend to marry him?"),
    (
        "The surgeon removed her appendix in the middle of the night.",
        "Which emergency operation did the woman undergo?",
    ),
    ("They adopted twin boys from Guatemala.", "How did the couple become parents?"),
    ("The submarine's sonar picked up a humpback whale.", "Which animal was detected under the sea?"),
]
WHO = ("the committee", "a neighbour", "the treasurer", "our supplier", "the night shift", "an auditor", "the mayor")
DID = ("discussed", "postponed", "approved", "measured", "painted", "repaired", "counted", "forgot", "described")
WHAT = ("the northern bridge", "the parking fees", "a shipment of tiles", "the heating pipes", "the seating plan")
WHEN = ("on Tuesday", "before lunch", "in the second week", "after the holidays", "at the last meeting", "twice")
WHY = ("because the budget was late", "although nobody had asked", "while it rained", "for the annual report", "again")


def filler(chance: random.Random, characters: int) -> list[str]:
    """Sentences of everyday business, `characters` long in all."""
    sentences, size = [], 0
    while size < characters:
        who, did, what, when, why = (chance.choice(part) for part in (WHO, DID, WHAT, WHEN, WHY))
        sentence = f"{when[0].upper()}{when[1:]} {who} {did} {what} {why}, item {chance.randrange(1000)}."
        sentences.append(sentence)
        size += len(sentence) + 1
    return sentences


def with_marker(chance: random.Random, characters: int, marker: str, tenth: int) -> str:
    sentences = filler(chance, characters - len(marker) - 1)
    sentences.insert(int(len(sentences) * (tenth + 0.5) / 10), marker)
    return " ".join(sentences)[:characters]


async def ranks(service: MemoryService, bank: str, **fields: object) -> list[int | None]:
    """Where each marker's unit stands in a recall for its paraphrase, from 1; None when it is not among the results."""
    found = []
    for marker, paraphrase in MARKERS:
        results = await recall(service, bank, paraphrase, **fields)
        # A chunk may be cut inside the marker: the larger part of it counts.
        part = marker[: len(marker) * 2 // 3]
        found.append(next((i + 1 for i, text in enumerate(results) if part in text), None))
    return found


def shares(found: list[int | None]) -> dict[int, float]:
    return {k: sum(rank is not None and rank <= k for rank in found) / len(found) for k in (1, 3, 5, 10, 20)}


async def measure(service: MemoryService, what: str) -> tuple[dict[int, float], dict[int, float]]:
    """Shares of markers found within k: by the semantic arm alone, by all arms."""
    meaning = await ranks(service, "b", arms=("semantic",), budget="high")
    everything = await ranks(service, "b", budget="high")
    print(f"{what}: ranks by the semantic arm alone {meaning}, by all arms {everything}")
    print(f"shares within k: {shares(meaning)}, {shares(everything)}")
    return shares(meaning), shares(everything)


def check_found(meaning: dict[int, float], everything: dict[int, float]) -> None:
    assert meaning[5] >= 0.8
    assert everything[1] >= 0.7
    assert everything[5] >= 0.8


@pytest.mark.parametrize("mode", ["chunks", pytest.param("concise", marks=pytest.mark.slow)])
async def test_a_marker_in_each_tenth_of_a_chunk_is_found_by_a_paraphrase(tmp_path: Path, mode: str) -> None:
    """Chunks of 3,000 characters, each longer than the model's window, one marker each, others around them."""
    service = await opened(tmp_path / "home", retain_extraction_mode=mode)
    try:
        chance = random.Random(9)
        items = [
            item(with_marker(chance, 2900, marker, tenth), document_id=f"d{tenth}")
            for tenth, (marker, _) in enumerate(MARKERS)
        ]
        others = [item(" ".join(filler(chance, 2900))[:2900], document_id=f"o{i}") for i in range(5)]
        await retain(service, "b", *items, *others)
        check_found(*await measure(service, f"chunks of 3,000 characters, {mode}"))
    finally:
        await service.close()


async def test_where_a_sentence_stands_in_a_chunk_does_not_decide_whether_it_is_found(tmp_path: Path) -> None:
    """Nothing is cut silently: the last tenth counts as the first does."""
    from recalld.daemon.composition import embedding_values, make_embedder
    from recalld.daemon.settings_table import Settings

    embedder = make_embedder(embedding_values(Settings()))
    for marker, paraphrase in MARKERS[1:4]:
        query = embedder.embed_query(paraphrase).vector
        without = float((embedder.embed_text(" ".join(filler(random.Random(5), 2900))).vectors @ query).max())
        gains = []
        for tenth in (0, 1, 8, 9):
            embedded = embedder.embed_text(with_marker(random.Random(5), 2900, marker, tenth))
            assert embedded.windows > 1
            gains.append(float((embedded.vectors @ query).max()) - without)
        late, early = sum(gains[2:]) / 2, sum(gains[:2]) / 2
        assert late > early - 0.1, f"{marker} counts {late:.2f} at the end and {early:.2f} at the start"


@pytest.mark.parametrize(
    "characters", [60_000, pytest.param(2_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
async def test_a_marker_in_each_tenth_of_a_long_document_is_found_by_a_paraphrase(
    tmp_path: Path, characters: int
) -> None:
    service = await opened(tmp_path / "home")
    try:
        chance = random.Random(10)
        sentences = filler(chance, characters)
        for tenth in reversed(range(10)):
            sentences.insert(int(len(sentences) * (tenth + 0.5) / 10), MARKERS[tenth][0])
        await retain(service, "b", item(" ".join(sentences), document_id="long"))
        meaning, everything = await measure(service, f"a document of {characters} characters")
        # Of 20,000 everyday sentences some come closer to a loose paraphrase than its own marker does.
        large = characters > 1_000_000
        assert meaning[20] >= (0.3 if large else 0.6)
        assert everything[10] >= (0.6 if large else 0.7)
    finally:
        await service.close()
