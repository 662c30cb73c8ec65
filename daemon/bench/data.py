"""LoCoMo-shaped conversations: a list of `{sample_id, conversation, qa}`.

`conversation` holds, for each n, `session_n` (a list of `{speaker, dia_id, text, blip_caption?}`) and
`session_n_date_time` such as `1:56 pm on 8 May, 2023`; `qa` items hold question, evidence (dia_ids) and category.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recalld.daemon.commands.common import USAGE, CommandError, read_text

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single hop", 5: "adversarial"}
TUNED_OF_FIVE = 2
_SESSION = re.compile(r"session_(\d+)")
_DATE = re.compile(r"(\d{1,2}):(\d{2})\s*(am|pm)\s+on\s+(\d{1,2})\s+(\w+),?\s+(\d{4})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: its id, what is retained, the session it belongs to, and the session's date (ISO, UTC)."""

    id: str
    text: str
    session: str
    when: str | None


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    def sessions(self) -> list[list[Turn]]:
        """The turns of each session, in order."""
        found: dict[str, list[Turn]] = {}
        for turn in self.turns:
            found.setdefault(turn.session, []).append(turn)
        return list(found.values())


def load(path: Path, split: str = "all") -> list[Conversation]:
    """The conversations of a file; `split` tune is the first two of every five, held the others.

    Raises a usage error for a file of another shape.
    """
    text = read_text(path)
    try:
        samples = json.loads(text)
        if not samples:
            raise CommandError(f"{path} holds no conversations.", USAGE)
        talks = [_conversation(number, sample) for number, sample in enumerate(samples)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{path} is not a LoCoMo-shaped file ({type(error).__name__}: {error}).", USAGE) from None
    if split == "all":
        return talks
    part = [talk for at, talk in enumerate(talks) if (at % 5 < TUNED_OF_FIVE) == (split == "tune")]
    if not part:
        raise CommandError(f"{path} holds no conversations of the split {split}.", USAGE)
    return part


def _conversation(number: int, sample: dict[str, Any]) -> Conversation:
    talk = sample["conversation"]
    numbers = sorted(int(match[1]) for match in map(_SESSION.fullmatch, talk) if match)
    turns = []
    for n in numbers:
        when = session_date(talk.get(f"session_{n}_date_time", ""))
        for turn in talk[f"session_{n}"]:
            shares = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            turns.append(Turn(turn["dia_id"], f"{turn['speaker']}: {turn['text']}{shares}", f"session_{n}", when))
    known = {turn.id for turn in turns}
    questions = []
    for entry in sample["qa"]:
        evidence = tuple(dict.fromkeys(one for one in entry.get("evidence", ()) if one in known))
        if evidence:
            category = CATEGORIES.get(entry["category"], str(entry["category"]))
            questions.append(Question(str(entry["question"]), category, evidence))
    return Conversation(str(sample.get("sample_id", number)), tuple(turns), tuple(questions))


def session_date(text: str) -> str | None:
    """`1:56 pm on 8 May, 2023` as ISO in UTC; ISO stays; None when it is neither."""
    match = _DATE.search(text)
    if match:
        hour = int(match[1]) % 12 + (12 if match[3].lower() == "pm" else 0)
        try:
            day = datetime.strptime(f"{match[4]} {match[5]} {match[6]}", "%d %B %Y").replace(tzinfo=UTC)
        except ValueError:
            return None
        return day.replace(hour=hour, minute=int(match[2])).isoformat()
    try:
        return datetime.fromisoformat(text).isoformat() if text else None
    except ValueError:
        return None
