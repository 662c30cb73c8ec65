"""The steps of a retain between plan and commit: items cut and read, texts collected, units put together.

Pure but for the extractor and the ids it is handed. `Preparation` carries one job through the steps, so that a worker
can take several jobs through one embedding call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from recalld.actors.encoder_messages import EmbeddedTexts
from recalld.actors.messages import (
    CommitRetain,
    DocumentState,
    DocumentWanted,
    DocumentWrite,
    Move,
    PlanRetain,
    RetainJob,
    RetainPlan,
    StoredUnit,
    TurnWanted,
)
from recalld.actors.retain import moving
from recalld.actors.retain import plan as planning
from recalld.actors.retain.extraction import Dropped, ExtractionInput, Reading, extractor_for
from recalld.actors.retain.items import RetainItem
from recalld.actors.retain.marking import marked, note, skipped_row
from recalld.actors.retain.model_labels import tag_keys
from recalld.actors.retain.model_prompts import ReadingRules, reading_of, rules_of
from recalld.actors.retain.moving import moved, names_of
from recalld.actors.retain.plan import DocumentDraft, DraftChunk, NewFact, Place, day, text_of
from recalld.actors.retain.supersession import subject_of
from recalld.actors.trust.instructions import NORMAL
from recalld.storage.changes import Embedding
from recalld.storage.errors import BadRequest, Unavailable
from recalld.storage.mentions import claim_of
from recalld.storage.records import EntityMention, PreparedUnit


@dataclass(slots=True)
class Preparation:
    """One retain job on its way. `texts` are (text, before, date) to embed; `owners` says whose each one is."""

    job: RetainJob
    drafts: list[DocumentDraft]
    places: list[list[Place]] = field(default_factory=list)
    turns: list[list[Place]] = field(default_factory=list)
    """Of each document, units of others that its new state leaves without what they were embedded behind."""
    facts: list[list[NewFact]] = field(default_factory=list)
    plan: RetainPlan | None = None
    owners: list[Place] = field(default_factory=list)
    texts: list[tuple[str, str, str]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    left_out: list[tuple[RetainItem, Dropped]] = field(default_factory=list)
    """What the extractor did not keep of an item, for its receipt."""
    skipped: list[RetainItem] = field(default_factory=list)
    """Items of which nothing was left to read when what was recalled before had been taken out."""
    model: str = ""
    """The language model that reads; "" for the rules."""
    readings: dict[str, Reading] = field(default_factory=dict)
    """What the model read, or had read before."""
    usage: dict[str, Any] = field(default_factory=dict)
    claiming: list[bool] = field(default_factory=list)
    """Of each document, whether its facts are claims."""
    moves: list[Move] = field(default_factory=list)
    """Units that go to other mentions of theirs; their texts stand behind those of the owners."""

    @property
    def documents(self) -> set[tuple[str, str, str]]:
        """The documents the job writes, to keep two jobs on one document apart."""
        return {(self.job.tenant, self.job.bank_id, draft.document_id) for draft in self.drafts}


class Unread(Exception):
    """A chunk that a model must read was not read yet: the document changed since its text was looked at."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A chunk that a model is to read. The same `reading` always gives the same facts."""

    reading: str
    chunk: ExtractionInput
    rules: ReadingRules
    document_id: str


def begin(job: RetainJob, new_id: Callable[[], str], model: str = "") -> Preparation:
    """The job's items as documents."""
    items = [RetainItem.from_plain(plain) for plain in job.items]
    left = [item for item in items if item.content.strip()]
    skipped = [item for item in items if not item.content.strip()]
    return Preparation(job, planning.group(left, _ids(new_id)), model=model, skipped=skipped)


def _ids(new_id: Callable[[], str]) -> Iterator[str]:
    while True:
        yield new_id()


def plan_request(preparation: Preparation) -> PlanRetain:
    """What to ask the shard before anything is read or embedded."""
    job = preparation.job
    documents = tuple(DocumentWanted(draft.document_id, draft.append, _tag_sets(draft)) for draft in preparation.drafts)
    turns = tuple(
        TurnWanted(draft.items[0].context, draft.items[0].tags, _anchor(draft.items[0], job))
        for draft in preparation.drafts
        if draft.undocumented and not draft.items[0].undated
    )
    return PlanRetain(job.tenant, job.bank_id, documents, turns)


def _tag_sets(draft: DocumentDraft) -> tuple[tuple[str, ...], ...]:
    return tuple({tuple(sorted(set(item.tags))): None for item in draft.items})


def _anchor(item: RetainItem, job: RetainJob) -> int:
    return _now(job) if item.timestamp is None else item.timestamp


def _now(job: RetainJob) -> int:
    """The time of items that give none."""
    return job.now if job.anchor is None else job.anchor


def wanted(preparation: Preparation, plan: RetainPlan) -> list[Wanted]:
    """The chunks that a model must read before `extract` can go on, each reading once."""
    found: dict[str, Wanted] = {}
    for draft, state in zip(preparation.drafts, plan.documents, strict=True):
        _, rules = _lay_out(preparation, plan, draft, state)
        for chunk in draft.chunks:
            if rules is not None and chunk.kept is None and chunk.reading not in found:
                read = input_of(chunk.item, chunk.text, rules.mode, _now(preparation.job))
                found[chunk.reading] = Wanted(chunk.reading, read, rules, draft.document_id)
    return list(found.values())


def _lay_out(
    preparation: Preparation, plan: RetainPlan, draft: DocumentDraft, state: DocumentState
) -> tuple[dict[str, Any], ReadingRules | None]:
    """The settings a document is read under, and the rules a model reads it by, its chunks laid out for them."""
    job = preparation.job
    for item in draft.items:
        check_strategy(job.defaults, plan.overrides, item.strategy)
    config = item_config(job.defaults, plan.overrides, draft.items[0].strategy)
    rules = None
    if preparation.model and config["retain_extraction_mode"] != "chunks":
        rules = rules_of(config, preparation.model)
    planning.lay_out(
        draft,
        state,
        int(config["retain_chunk_size"]),
        config.get("retain_structured_chunk_size"),
        extractor="" if rules is None else rules.identity,
        label_tags=() if rules is None else tag_keys(rules.labels),
        fresh=job.fresh,
    )
    if rules is not None:
        draft.chunks = [
            replace(chunk, extractor=rules.identity, reading=_reading(job, rules, chunk)) if not chunk.kept else chunk
            for chunk in draft.chunks
        ]
    return config, rules


def _reading(job: RetainJob, rules: ReadingRules, chunk: DraftChunk) -> str:
    return reading_of(input_of(chunk.item, chunk.text, rules.mode, _now(job)), rules, chunk.item.anchor_missing)


def extract(
    preparation: Preparation, plan: RetainPlan, new_id: Callable[[], str], stopping: Callable[[], bool] = lambda: False
) -> None:
    """Cut the texts, read facts out of new chunks, place every unit, and list what must be embedded.

    A long text takes many seconds: once `stopping` says so, it ends between two chunks with `Unavailable`.
    """
    job = preparation.job
    preparation.plan = plan
    turns = iter(plan.turns)
    written = {unit.uid for state in plan.documents for chunk in state.chunks for unit in chunk.units}
    for draft, state in zip(preparation.drafts, plan.documents, strict=True):
        first = draft.items[0]
        turn_before = next(turns) if draft.undocumented and not first.undated else None
        config, _ = _lay_out(preparation, plan, draft, state)
        preparation.config = config
        facts: list[NewFact] = []
        for index, chunk in enumerate(draft.chunks):
            if stopping():
                raise Unavailable("recalld is stopping; nothing of the request was stored. Send it again.")
            if chunk.kept is None:
                read, left_out = _read_chunk(preparation, config, chunk, index, new_id)
                facts += read
                preparation.left_out += [(chunk.item, one) for one in left_out]
        facts = marked(facts, config)
        places = planning.places(draft, state, facts, turn_before)
        preparation.facts.append(facts)
        preparation.places.append(places)
        preparation.turns.append(planning.turns_behind(draft, state, places, written))
        for place in (*places, *preparation.turns[-1]):
            if isinstance(place.unit, NewFact) or place.stale:
                preparation.owners.append(place)
                preparation.texts.append((text_of(place.unit), text_of(place.before), _date(place, job)))
        preparation.claiming.append(claiming(config["retain_extraction_mode"], job.provider, preparation.model))
    preparation.moves = planning.moves(preparation.drafts, plan.documents)
    preparation.texts += [(move.text, move.before_text, move.date) for move in preparation.moves]


def claiming(mode: str, provider: str, model: str) -> bool:
    """Whether facts are claims, of which the same again is a mention; verbatim text is a unit each time it is sent."""
    return mode not in ("verbatim", "chunks") and (provider != "none" or bool(model))


def check_strategy(defaults: dict[str, Any], overrides: dict[str, Any], strategy: str | None) -> None:
    """Raises `BadRequest` for the name of a strategy that the bank does not have."""
    known = {**defaults, **overrides}.get("retain_strategies") or {}
    if strategy is not None and strategy not in known:
        have = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise BadRequest(
            f"The bank has no strategy named '{strategy}': {have}. Define it under retain_strategies in the bank's"
            " configuration, or leave 'strategy' out."
        )


def item_config(defaults: dict[str, Any], overrides: dict[str, Any], strategy: str | None) -> dict[str, Any]:
    """The settings an item is read under: the server's, the bank's over them, then those of its strategy."""
    config = {**defaults, **overrides}
    name = strategy or config.get("retain_default_strategy")
    chosen = (config.get("retain_strategies") or {}).get(name) if name else None
    return {**config, **chosen} if chosen else config


def _read_chunk(
    preparation: Preparation, config: dict[str, Any], chunk: DraftChunk, index: int, new_id: Callable[[], str]
) -> tuple[list[NewFact], tuple[Dropped, ...]]:
    job, item = preparation.job, chunk.item
    mode = config["retain_extraction_mode"]
    if chunk.reading:
        held = preparation.readings.get(chunk.reading)
        if held is None:
            raise Unread
        reading = held
    else:
        provider = "local" if preparation.model else job.provider
        reading = extractor_for(provider, mode).read(input_of(item, chunk.text, mode, _now(job)))
    found = list(reading.facts)
    if not item.resolve_entities:
        found = [replace(f, entities=tuple(replace(entity, exact=True) for entity in f.entities)) for f in found]
    if not config.get("retain_extract_causal_links", True):
        found = [replace(fact, causes=()) for fact in found]
    left_out = (*reading.dropped, *[Dropped("", "unread date")] * reading.undated)
    return [NewFact(new_id(), fact, item, index, (*item.tags, *fact.tags)) for fact in found], left_out


def input_of(item: RetainItem, text: str, mode: str, now: int) -> ExtractionInput:
    """A chunk of an item as an extractor gets it; `now` (µs) is the time of an item that gives none."""
    exact = not item.resolve_entities
    return ExtractionInput(
        text=text,
        context=item.context,
        speaker_hint=item.metadata.get("speaker", ""),
        mentioned_at=now if item.timestamp is None else item.timestamp,
        utc_offset_minutes=item.utc_offset_minutes,
        mode=mode,
        extra_entities=tuple(EntityMention(entity.name, entity.kind, exact) for entity in item.entities),
        undated=item.undated,
    )


def _date(place: Place, job: RetainJob) -> str:
    unit = place.unit
    if isinstance(unit, StoredUnit):
        return unit.date
    start = unit.fact.occurred_start
    return day(start if start is not None else _mentioned(unit, job))


def _mentioned(fact: NewFact, job: RetainJob) -> int | None:
    if fact.fact.mentioned_at is not None:
        return fact.fact.mentioned_at
    return None if fact.item.undated else _anchor(fact.item, job)


def assemble(preparation: Preparation, embedded: EmbeddedTexts, start: int, model: dict[str, Any]) -> CommitRetain:
    """The commit of one job, whose texts are `embedded` from index `start` on."""
    job, plan = preparation.job, preparation.plan
    assert plan is not None
    at = {id(place): start + offset for offset, place in enumerate(preparation.owners)}
    units: list[PreparedUnit] = []
    embeddings: list[Embedding] = []
    documents: list[DocumentWrite] = []
    receipt: list[dict[str, Any]] = []
    left_out: dict[int, list[Dropped]] = {}
    for item, dropped in preparation.left_out:
        left_out.setdefault(id(item), []).append(dropped)
    for draft, state, places, turns, facts, claims in zip(
        preparation.drafts,
        plan.documents,
        preparation.places,
        preparation.turns,
        preparation.facts,
        preparation.claiming,
        strict=True,
    ):
        of_chunk: dict[int, list[str]] = {}
        for new in facts:
            of_chunk.setdefault(new.chunk, []).append(new.id)
        for place in (*places, *turns):
            index = at.get(id(place))
            if index is None:
                continue
            before = place.before
            reference = before.id if isinstance(before, NewFact) else before.uid if before is not None else None
            if isinstance(place.unit, NewFact):
                unit = _unit(place.unit, job, embedded, index, reference, of_chunk)
                units.append(replace(unit, claim=claim_of(unit)) if claims else unit)
            else:
                embeddings.append(
                    Embedding(
                        place.unit.uid,
                        embedded.vectors[index],
                        embedded.scales[index],
                        embedded.token_vectors[index],
                        embedded.token_ids[index],
                        reference,
                    )
                )
        documents.append(_document(draft, state, places, facts, preparation.config))
        texts = {place.unit.id: at[id(place)] for place in places if isinstance(place.unit, NewFact)}
        receipt += _receipt(draft, facts, job, texts, embedded, left_out)
    receipt += [skipped_row(item) for item in preparation.skipped]
    after = start + len(preparation.owners)
    moves = [moved(move, move.unit, embedded, after + offset) for offset, move in enumerate(preparation.moves)]
    return CommitRetain(
        tenant=job.tenant,
        bank_id=job.bank_id,
        request_id=job.request_id,
        now=job.now,
        model=model,
        documents=tuple(documents),
        units=tuple(units),
        embeddings=tuple(embeddings),
        receipt=tuple(receipt),
        operation_id=job.operation_id,
        bank=plan.bank,
        usage=preparation.usage,
        moves=tuple(moves),
        audit_days=int(preparation.config.get("audit_log_retention_days", -1)),
    )


def _unit(
    new: NewFact,
    job: RetainJob,
    embedded: EmbeddedTexts,
    index: int,
    predecessor: int | str | None,
    of_chunk: dict[int, list[str]],
) -> PreparedUnit:
    fact, item = new.fact, new.item
    same_chunk = of_chunk[new.chunk] if fact.causes else []
    return PreparedUnit(
        id=new.id,
        text=fact.text,
        network=fact.network,
        context=item.context,
        speaker=fact.speaker,
        entities=fact.entities,
        occurred_start=fact.occurred_start,
        occurred_end=fact.occurred_end,
        mentioned_at=_mentioned(new, job),
        anchor_assumed=item.anchor_missing and fact.mentioned_at is None,
        metadata=item.metadata,
        tags=new.tags,
        chunk_index=new.chunk,
        tokens=embedded.tokens[index],
        terms=terms_of(fact.text, item.context, fact.entities),
        question=fact.question,
        trust=fact.trust,
        risks=fact.risks,
        confidence=fact.confidence,
        vectors=embedded.vectors[index],
        scales=embedded.scales[index],
        token_vectors=embedded.token_vectors[index],
        token_ids=embedded.token_ids[index],
        predecessor=predecessor,
        causes=tuple(same_chunk[cause] for cause in fact.causes),
        cause_weights=fact.cause_weights,
        aliases=fact.aliases,
        subject=subject_of(fact.subject, fact.speaker, fact.text) if fact.attribute else fact.subject,
        attribute=fact.attribute,
        value=fact.value,
        polarity=fact.polarity,
        corrects=fact.corrects,
    )


def terms_of(text: str, context: str, entities: tuple[EntityMention, ...]) -> tuple[tuple[str, int], ...]:
    """Keyword terms of a unit: its text and context, and entity names that the text does not hold already."""
    return moving.terms_of(text, context, names_of(entities))


def _document(
    draft: DocumentDraft, state: DocumentState, places: list[Place], facts: list[NewFact], config: dict[str, Any]
) -> DocumentWrite:
    append = draft.append and not draft.merged and state.revision > 0
    text = "".join(chunk.glue + chunk.text for chunk in draft.chunks)
    first, last = draft.items[0], draft.items[-1]
    tags = tuple(dict.fromkeys(tag for item in draft.items for tag in item.tags))
    params: dict[str, Any] = {"context": first.context, "metadata": first.metadata}
    if last.timestamp is not None:
        params["event_date"] = last.timestamp
    if last.utc_offset_minutes:
        params["utc_offset_minutes"] = last.utc_offset_minutes
    if last.undated:
        params["undated"] = True
    if last.observation_scopes is not None:
        params["observation_scopes"] = last.observation_scopes
    if last.strategy:
        params["strategy"] = last.strategy
    if last.file is not None and last.file.get("key"):
        params["file"] = last.file
    if last.trust not in (None, NORMAL):
        params["trust"] = last.trust
    return DocumentWrite(
        document_id=draft.document_id,
        revision=state.revision,
        append=append,
        chunks=planning.chunk_writes(draft, facts),
        # An appended document's hash covers text this step does not have; it is made when somebody asks.
        content_hash="" if append else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        text_length=len(text),
        tags=tags,
        metadata=first.metadata,
        params=params,
        keep_text=bool(config.get("store_document_text", True)),
        undocumented=draft.undocumented,
        sequence=tuple(p.unit.id if isinstance(p.unit, NewFact) else p.unit.uid for p in places),
    )


def _receipt(
    draft: DocumentDraft,
    facts: list[NewFact],
    job: RetainJob,
    texts: dict[str, int],
    embedded: EmbeddedTexts,
    left_out: dict[int, list[Dropped]],
) -> list[dict[str, Any]]:
    """What became of each item of a document: its units, chunks kept, and what a user might not expect.

    `left_out` is by the `id` of an item.
    """
    rows = []
    facts_of: dict[int, list[NewFact]] = {}
    for fact in facts:
        facts_of.setdefault(id(fact.item), []).append(fact)
    chunks_of: dict[int, list[DraftChunk]] = {}
    for chunk in draft.chunks:
        chunks_of.setdefault(id(chunk.item), []).append(chunk)
    for item in draft.items:
        own, chunks = facts_of.get(id(item), []), chunks_of.get(id(item), [])
        kept = sum(chunk.kept is not None for chunk in chunks)
        row: dict[str, Any] = {
            "document_id": draft.document_id,
            "unit_ids": [fact.id for fact in own],
            "chunks": len(chunks),
            "chunks_unchanged": kept,
        }
        windows = sum(embedded.windows[texts[fact.id]] > 1 for fact in own)
        if windows:
            row["embedded_in_windows"] = windows
        if item.anchor_missing:
            row["time_assumed"] = _anchor(item, job)
        reasons = dropped_by_reason(left_out.get(id(item), ()))
        if reasons:
            row["dropped"] = reasons
        note(row, item, own)
        if not own and not kept:
            row["nothing_stored"] = "no fact was found in the text"
        rows.append(row)
    return rows


def dropped_by_reason(dropped: Iterable[Dropped]) -> list[dict[str, Any]]:
    """How much was not kept for each reason, never its words: an erase must find them nowhere."""
    counts: dict[str, list[int]] = {}
    for one in dropped:
        count = counts.setdefault(one.reason, [0, 0])
        count[0] += 1
        count[1] += len(one.text)
    return [{"reason": reason, "pieces": n, "characters": length} for reason, (n, length) in counts.items()]
