"""A model edits a page: it is shown the page with ids of its parts, what is new and what is gone, and gives edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recalld.actors.llm.base import LlmAnswer, system, user
from recalld.actors.pages.blocks import OPERATIONS, outline
from recalld.actors.reflect import disposition as dispositions
from recalld.actors.reflect import prompts
from recalld.actors.reflect.calling import Caller
from recalld.actors.reflect.deps import ReflectDeps
from recalld.actors.reflect.request import ReflectRequest
from recalld.actors.trust.fence import RULE, fence
from recalld.actors.wirecodec import message

Plain = dict[str, Any]
PURPOSE = "mental_model_refresh"
"""What the calls of refreshes are called in the ledger."""

SCHEMA = {
    "type": "object",
    "properties": {
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "op": {"type": "string", "enum": list(OPERATIONS)},
                    "section": {"type": "string"},
                    "block": {"type": "string"},
                    "before": {"type": "string"},
                    "after": {"type": "string"},
                    "heading": {"type": "string"},
                    "level": {"type": "integer", "minimum": 1, "maximum": 6},
                    "text": {"type": "string"},
                },
                "required": ["op"],
                "additionalProperties": False,
            },
        },
        "memory_ids": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["edits", "memory_ids"],
    "additionalProperties": False,
}
TASK = (
    "You keep a page of markdown up to date. It answers one question from the long-term memory of an AI agent. You are"
    " shown the page with an id before each section and block, memories that are new, and statements that are no longer"
    " held. Give the smallest list of edits that makes the page right again.\n\n" + RULE
)
RULES = """\
How to edit:
- What no edit names stays as it is, byte for byte. Never rewrite what is right already.
- Add a new memory only where it bears on the page's question; name the ids of those you used in memory_ids.
- A newer memory that contradicts a block replaces what it contradicts. Give dates in full.
- Take out what rests on a statement that is no longer held, and nothing else.
- Say only what the memories say. Keep the language, the tone and the structure of the page.
- No edits is a right answer: give an empty list.
The edits: add_section {heading, level, text, after: section}, remove_section {section}, rename_section {section,
heading}, replace_section_blocks {section, text}, append_block {section, text}, insert_block {before or after: block,
text}, replace_block {block, text}, remove_block {block}. Ids are those shown, also after other edits."""


@message(1)
@dataclass(frozen=True, slots=True)
class EditPage:
    """Gateway to worker: have a model edit a page. `facts` are new memories in the shape of a recall's result, `gone`
    texts that are no longer held. Answer: {"edits", "memory_ids", "llm_calls", "usage"}.
    """

    request: Any
    defaults: dict[str, Any]
    content: str
    facts: tuple[Any, ...]
    gone: tuple[str, ...]
    directives: tuple[Any, ...] = ()
    seconds: float = 300.0


async def edit_page(job: EditPage, deps: ReflectDeps) -> Plain:
    """Ask the model for edits. Raises what a model raises."""
    request: ReflectRequest = job.request
    caller = Caller(request, deps)
    words = dispositions.words(dispositions.Disposition.of(deps.config, request.bias_strength))
    rules = prompts.directive_rules(job.directives)
    head = "\n\n".join(part for part in (rules, TASK, RULES, "\n".join(words), rules) if part)
    found: LlmAnswer = await caller.ask(
        "delta", (system(head), user(_page(job, request, deps.nonce))), schema=SCHEMA, schema_name="edits"
    )
    parsed = found.parsed if isinstance(found.parsed, dict) else {}
    return {
        "edits": [_without_blanks(one) for one in parsed.get("edits") or [] if isinstance(one, dict)],
        "memory_ids": [str(one) for one in parsed.get("memory_ids") or []],
        "llm_calls": caller.calls,
        "usage": caller.usage,
    }


def _without_blanks(edit: Plain) -> Plain:
    """An edit without fields that a strict schema made the model fill with nothing."""
    return {name: value for name, value in edit.items() if value not in (None, "") or name == "text"}


def _page(job: EditPage, request: ReflectRequest, nonce: str) -> str:
    parts = [
        "Now: " + prompts.moment(request.now, 0),
        "The page's question: " + request.query,
        f"Length: the page may have about {request.max_tokens} tokens.",
        "The page:\n" + fence(outline(job.content), nonce, kind="page"),
    ]
    if job.facts:
        lines = [
            fence(
                str(one["text"]),
                nonce,
                kind=str(one.get("type") or "memory"),
                id=str(one["id"]),
                date=str(one.get("occurred_start") or one.get("mentioned_at") or "")[:10],
                trust=str(one.get("trust") or ""),
            )
            for one in job.facts
        ]
        parts.append("New memories:\n" + "\n".join(lines))
    if job.gone:
        parts.append("No longer held:\n" + "\n".join(fence(one, nonce, kind="retracted") for one in job.gone))
    return "\n\n".join(parts)
