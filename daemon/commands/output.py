"""What commands print: tables for people, one JSON object for programs. Results on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def console() -> Console:
    return Console(highlight=False)


def screen(status: Mapping[str, Any]) -> Table:
    """What a daemon runs with, on one screen; `status` is the answer of the status route."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in screen_rows(status):
        table.add_row(name, escape(value))
    return table


def screen_rows(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The rows of `screen` as (name, text); a part the status does not know is left out."""
    rows: list[tuple[str, str]] = []

    def put(name: str, text: Any) -> None:
        if text not in (None, ""):
            rows.append((name, str(text)))

    put("recalld", status.get("version"))
    put("home", status.get("home"))
    put("runtime", _runtime(status))
    put("partitions", status.get("partitions"))
    put("embedding", _embedding(status.get("embedding")))
    put("ranking", _words(status.get("ranking")))
    put("model", _provider(status.get("model")))
    put("durability", _durability(status.get("durability")))
    put("banks", status.get("banks"))
    waiting = status.get("operations_queued")
    if waiting:
        put("waiting", plural(waiting, "operation") + ("" if status.get("url") else "; a daemon works them off"))
    put("quarantined", ", ".join(str(one) for one in status.get("quarantined") or ()))
    put("URL", status.get("url") or "not running")
    return rows


def _runtime(status: Mapping[str, Any]) -> str:
    runtime, shards = status.get("runtime"), status.get("shards")
    return f"{runtime}, {shards} shard{'' if shards == 1 else 's'}" if runtime and shards else str(runtime or "")


def _embedding(part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part or "")
    return f"{part.get('model')}, {part.get('dimensions')} dimensions, {part.get('provider')}"


def _words(part: Any) -> str:
    if isinstance(part, Mapping):
        return ", ".join(f"{name} {value}" for name, value in part.items())
    return ", ".join(str(one) for one in part) if isinstance(part, list | tuple) else str(part or "")


def _provider(part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part or "")
    named = " ".join(str(part[key]) for key in ("provider", "model") if part.get(key))
    return f"{named}: {part['check']}" if part.get("check") else named


def _durability(part: Any) -> str:
    if part == "none":
        return "none: a power loss loses acknowledged writes"
    return "" if part is None else f"{part}: flushed before every acknowledgement" if part == "local" else str(part)


def memories(results: Sequence[Mapping[str, Any]], *, arms: Mapping[str, str] | None = None) -> Table:
    """Recalled memories with score, date and text; `arms` maps an id to the arms that found it."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right")
    table.add_column("score", justify="right")
    table.add_column("date", no_wrap=True)
    if arms is not None:
        table.add_column("arms", no_wrap=True)
    table.add_column("memory", overflow="fold", ratio=1)
    for place, result in enumerate(results, 1):
        cells = [str(place), f"{score_of(result):.3f}", date_of(result)]
        if arms is not None:
            cells.append(arms.get(str(result.get("id")), ""))
        table.add_row(*cells, escape(text_of(result)))
    return table


def score_of(result: Mapping[str, Any]) -> float:
    return float((result.get("scores") or {}).get("final") or 0.0)


def date_of(result: Mapping[str, Any]) -> str:
    """The day a memory is about, as YYYY-MM-DD: when it happened, else when it was said."""
    return str(result.get("occurred_start") or result.get("mentioned_at") or "")[:10]


def text_of(result: Mapping[str, Any]) -> str:
    """The text on one line; an opinion and an observation say that they are one, and a risk says what it is."""
    text = " ".join(str(result.get("text", "")).split())
    if risks := result.get("risks"):
        text = f"[risk: {', '.join(risks)}] {text}"
    kind = result.get("type")
    if kind == "opinion" and result.get("confidence") is not None:
        return f"[opinion, {float(result['confidence']):.2f}] {text}"
    return f"[{kind}] {text}" if kind in ("opinion", "observation") else text


class Advance(Protocol):
    def __call__(self, steps: int = 1) -> None: ...


@contextmanager
def progress(label: str, total: int | None, *, quiet: bool = False) -> Iterator[Advance]:
    """A progress bar on stderr; nothing where stderr is no terminal. `total` None shows a spinner."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    err = Console(stderr=True)
    if quiet or not err.is_terminal:
        yield lambda steps=1: None
        return
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    waiting = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*(parts if total is not None else waiting), console=err, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda steps=1: bar.update(task, advance=steps)


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 item`, `2 items`."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def size(count: float) -> str:
    """Bytes for a person: 1.5 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


_LETTERS = {"semantic": "sem", "keyword": "key", "graph": "graph", "temporal": "time"}


def arms_of(trace: Mapping[str, Any] | None) -> dict[str, str]:
    """Which arms found a memory and at what place, by its id: `sem 1 key 4`. Out of a recall's trace."""
    found: dict[str, list[str]] = {}
    for arm in (trace or {}).get("retrieval_results", ()):
        name = _LETTERS.get(arm["method_name"], arm["method_name"])
        for result in arm["results"]:
            found.setdefault(result["id"], []).append(f"{name} {result['rank']}")
    for result in (trace or {}).get("final_results", ()):
        # What no arm found came in beside a hit of its document.
        found.setdefault(result["id"], ["neighbour"])
    return {unit: " ".join(names) for unit, names in found.items()}


def receipt_lines(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """What became of retained items, in a line, and a line for each reason something was left out."""

    def count(name: str) -> int:
        return sum(len(item.get(name) or ()) for item in items)

    parts = [plural(count("unit_ids"), "memory", "memories")] if items else []
    if count("mention_ids"):
        parts.append(f"{count('mention_ids'):,} said before")
    if count("superseded"):
        parts.append(f"{count('superseded'):,} superseded")
    if count("restored_ids"):
        parts.append(f"{count('restored_ids'):,} restored")
    unchanged = sum(item.get("chunks_unchanged") or 0 for item in items)
    if unchanged:
        parts.append(f"{plural(unchanged, 'chunk')} unchanged")
    dropped: dict[str, int] = {}
    for item in items:
        for one in item.get("dropped") or ():
            dropped[one["reason"]] = dropped.get(one["reason"], 0) + one["pieces"]
    lines = [", ".join(parts) + "."] if parts else []
    return lines + [f"left out: {plural(pieces, 'piece')}, {reason}" for reason, pieces in dropped.items()]
