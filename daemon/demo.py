"""`make demo`: a real daemon in a temporary home retains a real conversation and answers six questions about it.

With `--once` it checks that the turns which answer the questions were found, and ends; the exit code says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from recalld.client import AsyncClient, RecalldError
from recalld.daemon.commands import output
from recalld.daemon.sandbox import DidNotStart, sandbox

BANK = "priya-and-mateo"
DEPTH = 10  # evidence must be among this many
SHOWN = 3
REQUIRED = 5  # questions of six


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the ids of the turns that answer it."""

    text: str
    kind: str
    answer: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a recall found: results as on the wire, arms by id, and the milliseconds seen by the client."""

    question: Question
    results: list[dict[str, Any]]
    arms: dict[str, str]
    milliseconds: float

    @property
    def found(self) -> bool:
        """Whether every turn of the evidence is among the first ten."""
        top = {turn_of(result) for result in self.results[:DEPTH]}
        return set(self.question.evidence) <= top


def load() -> tuple[list[dict[str, Any]], list[Question]]:
    """The shipped conversation: sessions as in the file, and the questions."""
    text = (files("recalld.daemon") / "data" / "demo_conversation.json").read_text(encoding="utf-8")
    talk = json.loads(text)
    questions = [Question(q["question"], q["kind"], q["answer"], tuple(q["evidence"])) for q in talk["questions"]]
    return talk["sessions"], questions


def items_of(session: dict[str, Any]) -> list[dict[str, Any]]:
    """A session as retain items, one a turn: all of one document, dated, and carrying the turn's id."""
    return [
        {
            "content": f"{turn['speaker']}: {turn['text']}",
            "timestamp": session["date_time"],
            "document_id": session["id"],
            "metadata": {"turn": f"{session['id']}:{number}"},
        }
        for number, turn in enumerate(session["turns"], 1)
    ]


def turn_of(result: dict[str, Any]) -> str:
    return str((result.get("metadata") or {}).get("turn", ""))


async def retain(client: AsyncClient, sessions: list[dict[str, Any]]) -> float:
    """Retain every session in one call each; seconds it took."""
    turns = sum(len(session["turns"]) for session in sessions)
    begun = time.perf_counter()
    with output.progress("Retaining", turns) as advance:
        for session in sessions:
            await client.retain_batch(BANK, items_of(session))
            advance(len(session["turns"]))
    return time.perf_counter() - begun


async def ask(client: AsyncClient, question: Question) -> Answer:
    begun = time.perf_counter()
    answer = await client.recall(BANK, question.text)
    spent = (time.perf_counter() - begun) * 1000
    # Asked again for its trace: writing one takes time that an ordinary recall does not spend.
    traced = await client.recall(BANK, question.text, trace=True)
    return Answer(question, answer["results"], output.arms_of(traced.get("trace")), spent)


def shown(answer: Answer) -> Table:
    """One question and its best memories: date, text, and the place at which each arm found it; evidence is marked."""
    mark = "[green]found[/]" if answer.found else "[red]not found[/]"
    facts = f"{answer.question.kind}, {answer.milliseconds:.1f} ms, evidence {mark}"
    table = Table(
        title=f"[bold]{escape(answer.question.text)}[/]\n[dim]{facts}[/]",
        title_justify="left",
        title_style="",
        box=None,
        show_header=False,
        pad_edge=False,
        expand=True,
    )
    table.add_column(width=1)
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(ratio=1, overflow="fold")
    for result in answer.results[:SHOWN]:
        star = "[green]*[/]" if turn_of(result) in answer.question.evidence else ""
        day = str(result.get("mentioned_at") or result.get("occurred_start") or "")[:10]
        arms = answer.arms.get(result["id"], "")
        table.add_row(star, day, f"{escape(output.text_of(result))} [dim]({arms})[/]")
    return table


def verdict(answers: Sequence[Answer]) -> tuple[int, str]:
    """(exit code, sentence) of a whole run."""
    missed = [answer for answer in answers if not answer.found]
    good = len(answers) - len(missed)
    if good >= REQUIRED:
        return 0, f"{good} of {len(answers)} questions have all their evidence among the first {DEPTH} memories."
    lines = [f"Only {good} of {len(answers)} questions have their evidence among the first {DEPTH}; {REQUIRED} must."]
    for answer in missed:
        have = {turn_of(result) for result in answer.results[:DEPTH]}
        gone = ", ".join(turn for turn in answer.question.evidence if turn not in have)
        lines.append(f"  {answer.question.text} -> missing {gone} ({answer.question.answer})")
    return 1, "\n".join(lines)


async def run(*, once: bool, runtime: str) -> int:
    """The demonstration; its exit code."""
    console = Console(highlight=False)
    sessions, questions = load()
    turns = sum(len(session["turns"]) for session in sessions)
    console.print(f"Starting a daemon ({runtime}) in a temporary home.")
    async with sandbox({"runtime": runtime}) as daemon, AsyncClient(daemon.url) as client:
        console.print(f"Ready after {daemon.cold_start:.1f} s at [bold]{daemon.url}[/].")
        seconds = await retain(client, sessions)
        console.print(
            f"Retained {turns} turns of {len(sessions)} sessions in {seconds:.1f} s ({turns / seconds:.0f}/s).\n"
        )
        await client.recall(BANK, "warm up")
        answers = []
        for question in questions:
            answers.append(await ask(client, question))
            console.print(shown(answers[-1]))
            console.print()
        code, sentence = verdict(answers)
        console.print(sentence, style=None if code == 0 else "red", markup=False)
        if once:
            return code
        bank = f"{daemon.url}/v1/default/banks/{BANK}/memories/recall"
        console.print(f"\nThe daemon stays up at [bold]{daemon.url}[/] (API reference: {daemon.url}/docs). Try:")
        console.print(
            f"  curl -s {bank} -H 'Content-Type: application/json' -d '{{\"query\": \"Who is Hanne?\"}}'",
            markup=False, soft_wrap=True,
        )  # fmt: skip
        console.print("Ctrl+C ends it and removes the home.")
        await asyncio.Event().wait()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m recalld.daemon.demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="check the answers and end")
    parser.add_argument("--runtime", choices=("ray", "inline"), default="ray", help="runtime of the daemon")
    chosen = parser.parse_args(arguments)
    try:
        return asyncio.run(run(once=chosen.once, runtime=chosen.runtime))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nStopped; the temporary home is gone.")
        return 0 if not chosen.once else 130
    except (DidNotStart, RecalldError) as error:
        print(f"The demonstration failed: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
