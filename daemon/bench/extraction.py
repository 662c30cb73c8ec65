"""How well the local extractor reads labelled items: figures, and every miss."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recalld.actors.messages import DocumentState
from recalld.actors.retain.extraction import ExtractionInput, Fact, extractor_for
from recalld.actors.retain.items import RetainItem
from recalld.actors.retain.plan import DocumentDraft, lay_out
from recalld.daemon.bench.labelled import FIGURES, Check, Judged, LabelledItem, judge, load
from recalld.daemon.bench.report import Report
from recalld.daemon.commands.common import USAGE, CommandError
from recalld.storage.records import NETWORK_NAMES, EntityMention

WANTED = {
    "dates": 0.95,
    "speaker/subject": 0.95,
    "polarity": 0.97,
    "network": 0.9,
    "entities": 0.85,
    "junk left out": 0.97,
}
"""The least each figure must be: shares that are right, F1 of entities, the share of junk that was left out."""
CHUNK_SIZE = 3000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to score. `mode` is the extraction mode, `only` the ids to keep (none: all); `totals` hides the misses."""

    files: tuple[Path, ...]
    mode: str = "concise"
    only: tuple[str, ...] = ()
    totals: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """`share` is what counts; `found` is the same over facts that were found at all."""

    right: int
    judged: int
    share: float
    found: float
    precision: float | None = None
    recall: float | None = None


def run(plan: Plan) -> Report:
    return report(plan, score(plan))


def score(plan: Plan) -> list[Judged]:
    """Every item of the plan, read and judged."""
    items = load(plan.files)
    if unknown := set(plan.only) - {item.id for item in items}:
        raise CommandError(f"No item has the id {', '.join(sorted(unknown))}.", USAGE)
    return [judge(item, read(item, plan.mode)) for item in items if not plan.only or item.id in plan.only]


def read(labelled: LabelledItem, mode: str = "concise") -> list[Fact]:
    """The facts retain gets from an item: parsed, cut into chunks as a document of its own, and each chunk read."""
    item = RetainItem.parse(labelled.item)
    draft = DocumentDraft(labelled.id, [item], undocumented=True, append=False)
    lay_out(draft, DocumentState(labelled.id, 0, (), 0, ()), CHUNK_SIZE, None)
    extractor = extractor_for("local", mode)
    facts: list[Fact] = []
    for chunk in draft.chunks:
        reading = extractor.read(
            ExtractionInput(
                text=chunk.text,
                context=item.context,
                speaker_hint=item.metadata.get("speaker", ""),
                mentioned_at=item.timestamp or 0,
                utc_offset_minutes=item.utc_offset_minutes,
                mode=mode,
                extra_entities=tuple(EntityMention(entity.name, entity.kind) for entity in item.entities),
            )
        )
        facts += reading.facts
    return facts


def figures(judged: Iterable[Judged]) -> dict[str, Figure]:
    """Each figure over some items; those nothing was judged for are left out."""
    checks: dict[str, list[Check]] = defaultdict(list)
    for one in judged:
        for check in one.checks:
            checks[check.figure].append(check)
    return {name: _figure(name, checks[name]) for name in FIGURES if checks[name]}


def _figure(name: str, checks: Sequence[Check]) -> Figure:
    right = sum(check.right for check in checks)
    if name == "entities":
        wrong = sum(check.kind == "wrong kind" for check in checks)
        extra, lost = (sum(check.kind == kind for check in checks) + wrong for kind in ("extra", "lost"))
        precision = right / (right + extra) if right + extra else 1.0
        recall = right / (right + lost) if right + lost else 1.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return Figure(right, len(checks), f1, f1, precision, recall)
    seen = [check for check in checks if not check.missing]
    share = right / len(checks)
    return Figure(right, len(checks), share, right / len(seen) if seen else 0.0)


def report(plan: Plan, judged: Sequence[Judged]) -> Report:
    groups: dict[str, dict[str, list[Judged]]] = {"language": defaultdict(list), "source": defaultdict(list)}
    for one in judged:
        groups["language"][one.item.language].append(one)
        groups["source"][one.item.source].append(one)
    total = figures(judged)
    parts = {by: {name: figures(rows) for name, rows in found.items()} for by, found in groups.items()}
    data: dict[str, Any] = {
        "benchmark": "extract",
        "mode": plan.mode,
        "items": len(judged),
        "figures": {name: asdict(figure) | {"wanted": WANTED.get(name)} for name, figure in total.items()},
    }
    for by, found in parts.items():
        data[by] = {group: {name: figure.share for name, figure in rows.items()} for group, rows in found.items()}
    made = Report(data)
    made.table(
        f"Local extraction, mode {plan.mode}: {len(judged)} labelled items",
        ["", "share", "right", "judged", "of those found", "wanted", ""],
        [_row(name, figure) for name, figure in total.items()],
    )
    if entities := total.get("entities"):
        kinds = Counter(check.kind for one in judged for check in one.checks if check.figure == "entities")
        data["figures"]["entities"]["misses"] = {kind: kinds[kind] for kind in ("wrong kind", "lost", "extra")}
        row = ["", entities.precision, entities.recall, entities.share, *data["figures"]["entities"]["misses"].values()]
        made.table("Entities", ["", "precision", "recall", "F1", "wrong kind", "lost", "invented"], [row])
    for by, found in parts.items():
        table: list[list[Any]] = [["items", *(len(groups[by][group]) for group in found)]]
        for name in total:
            table.append([name, *(rows[name].share if name in rows else "" for rows in found.values())])
        made.table(f"By {by}", ["", *found], table)
    if not plan.totals:
        data["misses"] = [described(one) for one in judged if one.misses]
        made.lines = [line for one in judged if one.misses for line in _shown(one)]
    return made


def _row(name: str, figure: Figure) -> list[Any]:
    wanted = WANTED.get(name)
    state = "" if wanted is None else "ok" if figure.share >= wanted else "below"
    return [name, figure.share, figure.right, figure.judged, figure.found, "" if wanted is None else wanted, state]


def described(one: Judged) -> dict[str, Any]:
    """A missed item for programs: what went in, what came out, what is wrong."""
    return {
        "id": one.item.id,
        "content": one.item.item["content"],
        "timestamp": one.item.item.get("timestamp"),
        "misses": [{"figure": check.figure, "note": check.note} for check in one.misses],
        "facts": [fact_row(fact) for fact in one.facts],
    }


def fact_row(fact: Fact) -> dict[str, Any]:
    return {
        "text": fact.text,
        "network": NETWORK_NAMES[fact.network],
        "speaker": fact.speaker,
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "polarity": fact.polarity,
        "question": fact.question,
        "occurred": [_instant(fact.occurred_start), _instant(fact.occurred_end)],
        "entities": [f"{entity.name}/{entity.kind}" for entity in fact.entities],
    }


def _instant(value: int | None) -> str | None:
    return None if value is None else (_EPOCH + timedelta(microseconds=value)).isoformat()


def _shown(one: Judged) -> list[str]:
    """A missed item for people: what went in, what came out, what is wrong."""
    lines = [f"{one.item.id}  {one.item.source}, {one.item.language}, {one.item.item.get('timestamp')}"]
    lines += [f"  | {line}" for line in str(one.item.item["content"]).splitlines()]
    for fact in one.facts:
        row = fact_row(fact)
        known = [f"{name}={row[name]}" for name in ("speaker", "subject", "attribute", "value") if row[name]]
        known += ["negated"] * (fact.polarity < 0) + ["question"] * fact.question
        dates = " to ".join(str(day)[:16] for day in row["occurred"] if day)
        lines.append(
            f"  + {fact.text!r}  {row['network']} {' '.join(known)} {dates} {', '.join(row['entities'])}".rstrip()
        )
    return [*lines, *(f"  ! {check.figure}: {check.note}" for check in one.misses), ""]
