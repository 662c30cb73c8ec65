"""The tools of a reflect: what a model may ask for, and what each finds. Everything they gave is kept as evidence.

An argument that is wrong is answered with a sentence the model can act on; only a bank that cannot be read is an error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recalld.actors.llm.base import Tool
from recalld.actors.llm.counting import count_tokens
from recalld.actors.reflect import prompts
from recalld.actors.reflect.deps import Plain, ReflectDeps, Search
from recalld.actors.reflect.request import ReflectRequest
from recalld.storage.records import NETWORK_NAMES, OBSERVATION, OPINION

SEARCH_PAGES, SEARCH_OBSERVATIONS, RECALL = "search_mental_models", "search_observations", "recall"
EXPAND, READ_PAGES, DONE = "expand", "read_mental_models", "done"

OBSERVATION_TOKENS = 5000
READ_TOKENS = 6000
EXPAND_TOKENS = 6000
OPINION_TOKENS = 512
ENTITY_TOKENS = 500
MOST_PAGES = 5
MOST_IDS = 20
_OBSERVATION, _OPINION = NETWORK_NAMES[OBSERVATION], NETWORK_NAMES[OPINION]
_FACTS = ("world", "experience")

_TEXT = {"type": "string"}
_REASON = {"type": "string", "description": "Why this search is needed, in a few words."}
_IDS = {"type": "array", "items": {"type": "string"}}
_TOKENS = {"type": "integer", "description": "How much may come back."}


class WrongCall(Exception):
    """A call that cannot be carried out; the message tells the model what to do."""


@dataclass(slots=True)
class Evidence:
    """What tools gave so far, by id, in the order it came. `parts` are the same as a model reads them."""

    memories: dict[str, Plain] = field(default_factory=dict)
    observations: dict[str, Plain] = field(default_factory=dict)
    pages: dict[str, Plain] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def opinions(self) -> list[Plain]:
        return [one for one in self.memories.values() if one.get("type") == _OPINION]


def tools_for(offered: tuple[str, ...], directives: bool, opinions: Plain | None = None) -> tuple[Tool, ...]:
    """The tools as a model is told of them; `opinions` is the schema of those it may propose when it is done.

    No argument is a must: a missing one is answered, not refused.
    """
    search = {"query": {"type": "string", "description": "What to look for, in full words."}, "reason": _REASON}
    done: dict[str, Any] = {
        "answer": {"type": "string", "description": "The answer in markdown."},
        "answer_found": {"type": "boolean", "description": "Whether the memory holds the answer."},
        "memory_ids": _IDS,
        "observation_ids": _IDS,
        "mental_model_ids": _IDS,
    }
    if directives:
        done["directive_compliance"] = {"type": "string", "description": "How the answer keeps each mandatory rule."}
    if opinions is not None:
        done["opinions"] = opinions
    known = {
        SEARCH_PAGES: ("Search the pages that were written on whole subjects. Look here first.", search),
        SEARCH_OBSERVATIONS: (
            "Search observations: what many facts say together, with opinions that touch the query.",
            {**search, "max_tokens": _TOKENS},
        ),
        RECALL: (
            "Search single facts and experiences, with their sources and opinions that touch the query.",
            {**search, "max_tokens": _TOKENS},
        ),
        EXPAND: (
            "Read the text that memories come from: depth chunk for the piece around each, document for all of it.",
            {"memory_ids": _IDS, "depth": {"type": "string", "enum": ["chunk", "document"]}, "reason": _REASON},
        ),
        READ_PAGES: ("Read mental models in full.", {"mental_model_ids": _IDS, "reason": _REASON}),
        DONE: ("Give the answer and end.", done),
    }
    return tuple(
        Tool(name, known[name][0], {"type": "object", "properties": known[name][1]}) for name in (*offered, DONE)
    )


class Toolbox:
    """The tools of one request. `calls` is the trace, `offered` those there are, without `done`."""

    def __init__(self, request: ReflectRequest, deps: ReflectDeps, pages: bool) -> None:
        self._request, self._deps = request, deps
        types = request.fact_types
        self.fact_types = tuple(one for one in _FACTS if not types or one in types)
        observations = not types or _OBSERVATION in types
        self.opinions = not types or _OPINION in types
        self.offered: tuple[str, ...] = (
            *((SEARCH_PAGES, READ_PAGES) if pages else ()),
            *((SEARCH_OBSERVATIONS,) if observations else ()),
            *((RECALL, EXPAND) if self.fact_types or self.opinions else ()),
        )
        self.forced = [one for one in (SEARCH_PAGES, SEARCH_OBSERVATIONS, RECALL) if one in self.offered]
        self.evidence = Evidence()
        self.calls: list[Plain] = []
        self.searched = False
        """Whether a search of facts was made, which a claim of absence needs."""
        self.fresh_page = False
        self._seen: dict[str, int] = {}
        self._pending: dict[tuple[str, ...], int] = {}

    async def run(self, name: str, arguments: Mapping[str, Any], iteration: int) -> str:
        """What the model is told. Raises what the shard raises."""
        key = f"{name} {sorted((k, str(v)) for k, v in arguments.items() if k != 'reason')}"
        if key in self._seen:
            return f"The same as call {self._seen[key]}: nothing changed since. Search for other words, or answer."
        started = time.perf_counter()
        runs = {
            SEARCH_PAGES: self._search_pages,
            SEARCH_OBSERVATIONS: self._search_observations,
            RECALL: self._recall,
            EXPAND: self._expand,
            READ_PAGES: self._read_pages,
        }
        output: Plain
        if name not in self.offered:
            text = f"There is no tool {name[:60]!r}. There are: {', '.join((*self.offered, DONE))}."
            output = {"error": text}
        else:
            try:
                text, output = await runs[name](arguments)
                self._seen[key] = len(self.calls) + 1
            except WrongCall as wrong:
                text, output = str(wrong), {"error": str(wrong)}
        call = {
            "tool": name[:60],
            "input": dict(arguments),
            "output": output,
            "duration_ms": round((time.perf_counter() - started) * 1000),
            "iteration": iteration,
        }
        self.calls.append(call)
        if self._deps.watch is not None:
            self._deps.watch("tool", {key: value for key, value in call.items() if key != "output"})
        return text

    # -- the searches --------------------------------------------------------------------------------------------------

    def search(self, query: str, types: tuple[str, ...], tokens: int, **more: Any) -> Search:
        """A search within the request's tags, from its point in time."""
        request = self._request
        return Search(
            query=query,
            types=types,
            max_tokens=tokens,
            budget=request.budget,
            tags=request.tags,
            tags_match=request.tags_match,
            tag_groups=request.tag_groups,
            now=request.asked_at,
            utc_offset=request.utc_offset,
            **more,
        )

    async def _search_pages(self, arguments: Mapping[str, Any]) -> tuple[str, Plain]:
        assert self._deps.pages is not None
        query = _query(arguments)
        excluded = self._request.exclude_mental_model_ids
        found = await self._deps.pages.search(query, self.search(query, (), 0), excluded, MOST_PAGES)
        for page in found:
            self._keep_page(page)
        self.fresh_page = self.fresh_page or any(not page.get("is_stale") for page in found)
        return self._told(found, "mental models"), {"mental_models": found}

    async def _read_pages(self, arguments: Mapping[str, Any]) -> tuple[str, Plain]:
        assert self._deps.pages is not None
        ids = [one for one in _ids(arguments, "mental_model_ids") if one in self.evidence.pages]
        if not ids:
            raise WrongCall("Name ids that search_mental_models gave.")
        found = await self._deps.pages.read(ids)
        for page in found:
            self._keep_page(page)
        told = prompts.evidence_text([self.evidence.parts[page["id"]] for page in found], READ_TOKENS, count_tokens)
        return told, {"mental_models": found}

    async def _search_observations(self, arguments: Mapping[str, Any]) -> tuple[str, Plain]:
        query, request, config = _query(arguments), self._request, self._deps.config
        tokens = _tokens(arguments, request.search_observations_max_tokens or OBSERVATION_TOKENS)
        entities = None if request.search_observations_include_entities is False else ENTITY_TOKENS
        sources = int(config.get("reflect_source_facts_max_tokens") or -1)
        search = self.search(
            query, (_OBSERVATION,), tokens, entity_tokens=entities, source_tokens=None if sources < 0 else sources
        )
        found = await self._deps.memory.recall(search)
        results = [{**one, "freshness": await self._freshness(one)} for one in found["results"]]
        for one in results:
            self._keep(self.evidence.observations, one)
        facts = list((found.get("source_facts") or {}).values())
        for one in facts:
            self._keep(self.evidence.memories, one)
        beliefs = await self._beliefs(query)
        told = self._told([*results, *facts, *beliefs], "observations")
        return told, {"observations": results, "source_facts": facts, "opinions": beliefs}

    async def _recall(self, arguments: Mapping[str, Any]) -> tuple[str, Plain]:
        query, request, config = _query(arguments), self._request, self._deps.config
        tokens = _tokens(arguments, request.recall_max_tokens or int(config.get("recall_max_tokens") or 2048))
        chunks = request.include_chunks
        chunks = config.get("recall_include_chunks") is not False if chunks is None else chunks
        most = request.recall_chunks_max_tokens
        most = int(config.get("recall_chunks_max_tokens") or 1000) if most is None else most
        found: Plain = {"results": [], "chunks": None}
        if self.fact_types:
            search = self.search(query, self.fact_types, tokens, chunk_tokens=most if chunks and most else None)
            found = await self._deps.memory.recall(search)
        self.searched = True
        for one in found["results"]:
            self._keep(self.evidence.memories, one)
        pieces = list((found.get("chunks") or {}).values())
        for one in pieces:
            # Its id holds the document's, which may be any text: a model has no use for it.
            self.evidence.parts[one["id"]] = prompts.chunk_text({"text": one["text"]}, self._deps.nonce)
        beliefs = await self._beliefs(query)
        told = self._told([*found["results"], *pieces, *beliefs], "memories")
        return told, {"memories": found["results"], "chunks": pieces, "opinions": beliefs}

    async def _expand(self, arguments: Mapping[str, Any]) -> tuple[str, Plain]:
        known = {**self.evidence.memories, **self.evidence.observations}
        ids = [one for one in _ids(arguments, "memory_ids") if one in known][:MOST_IDS]
        if not ids:
            raise WrongCall("Name in memory_ids the ids of memories that recall or search_observations gave.")
        whole = str(arguments.get("depth") or "chunk") == "document"
        found = await self._deps.memory.expand(ids, whole, self.search("", (), 0))
        parts = []
        for one in found:
            self._keep(self.evidence.memories, one["memory"])
            text = one.get("text") or ""
            told = {"id": one["memory"]["id"], "text": text} if text else None
            parts.append(
                prompts.chunk_text(told, self._deps.nonce) if told else self.evidence.parts[one["memory"]["id"]]
            )
            if told:
                self.evidence.parts[f"source {one['memory']['id']}"] = parts[-1]
        told_all = prompts.evidence_text(parts, EXPAND_TOKENS, count_tokens)
        return told_all or "Nothing more is kept of these memories.", {"results": found}

    async def _beliefs(self, query: str) -> list[Plain]:
        """Opinions that touch the query, labelled as what they are."""
        if not self.opinions:
            return []
        found = await self._deps.memory.recall(self.search(query, (_OPINION,), OPINION_TOKENS))
        beliefs = [{**one, **await self._deps.memory.belief(one["id"])} for one in found["results"]]
        for one in beliefs:
            self._keep(self.evidence.memories, one)
        return beliefs

    async def _freshness(self, observation: Plain) -> str:
        tags = tuple(sorted(observation.get("tags") or ()))
        if tags not in self._pending:
            self._pending[tags] = await self._deps.memory.unconsolidated(tags)
        newer = self._pending[tags]
        return f"stale: {newer} newer facts are not in it yet" if newer else "up to date"

    # -- what was found ------------------------------------------------------------------------------------------------

    def _keep(self, kept: dict[str, Plain], memory: Plain) -> None:
        if memory.get("type") == _OBSERVATION:
            kept = self.evidence.observations
        kept[memory["id"]] = memory
        self.evidence.parts[memory["id"]] = prompts.memory_text(memory, self._deps.nonce)

    def _keep_page(self, page: Plain) -> None:
        self.evidence.pages[page["id"]] = page
        self.evidence.parts[page["id"]] = prompts.page_text(page, self._deps.nonce)

    def _told(self, found: list[Plain], what: str) -> str:
        if not found:
            return f"No {what} were found. Other words may find some."
        parts = [self.evidence.parts[one["id"]] for one in found]
        return f"{len(found)} found:\n" + "\n".join(parts)


def _query(arguments: Mapping[str, Any]) -> str:
    query = str(arguments.get("query") or "").strip()
    if not any(letter.isalnum() for letter in query):
        raise WrongCall("Give a query in words.")
    return query[:4000]


def _tokens(arguments: Mapping[str, Any], default: int) -> int:
    """What the model asked for, within what it may have."""
    asked = arguments.get("max_tokens")
    return default if not isinstance(asked, int) or asked <= 0 else min(asked, default)


def _ids(arguments: Mapping[str, Any], name: str) -> list[str]:
    given = arguments.get(name)
    if isinstance(given, str):
        given = [given]
    return [str(one).strip() for one in given] if isinstance(given, list) else []
