"""Every call of the API, written once for the blocking and the asynchronous client.

`Calls[R]` builds a request and hands it to `_send`, whose answer type is the only difference: a dict for `Client`,
an awaitable of one for `AsyncClient`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

R = TypeVar("R")
Json = dict[str, Any]


class Calls(ABC, Generic[R]):
    """The methods both clients share. Answers are the daemon's JSON objects, untouched."""

    tenant: str = "default"

    @abstractmethod
    def _send(self, method: str, path: str, body: Any = None, *, retry: bool = False) -> R: ...

    @abstractmethod
    def _send_files(self, path: str, files: Sequence[Path], request: Json) -> R: ...

    def request(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Any = None) -> R:
        """Any route by hand: `path` starts with a slash and is sent as it is; `body` becomes JSON."""
        return self._send(method, path + query_string(params or {}), body)

    # -- memories

    def retain(
        self,
        bank_id: str,
        content: str,
        *,
        timestamp: datetime | str | None = None,
        context: str | None = None,
        document_id: str | None = None,
        metadata: Mapping[str, str] | None = None,
        entities: Sequence[Mapping[str, str]] | None = None,
        tags: Sequence[str] | None = None,
        update_mode: str | None = None,
        asynchronous: bool = False,
        operation_id: str | None = None,
    ) -> R:
        """Store one text. `timestamp` is when it was said; without an offset it is read as UTC."""
        item = {
            "content": content,
            "timestamp": timestamp,
            "context": context,
            "document_id": document_id,
            "metadata": metadata,
            "entities": entities,
            "tags": tags,
            "update_mode": update_mode,
        }
        return self.retain_batch(bank_id, [item], asynchronous=asynchronous, operation_id=operation_id)

    def retain_batch(
        self,
        bank_id: str,
        items: Iterable[Mapping[str, Any]],
        *,
        asynchronous: bool = False,
        operation_id: str | None = None,
    ) -> R:
        """Store several items at once, all or none; each is a dict with at least `content`.

        With `asynchronous` the answer names an operation and comes back before extraction is done; a call repeated
        with the same `operation_id` stores nothing twice.
        """
        body: Json = {"items": [_without_none(item) for item in items], "async": asynchronous}
        if operation_id is not None:
            body["operation_id"] = operation_id
        return self._send("POST", self._bank(bank_id, "memories"), body)

    def retain_files(
        self,
        bank_id: str,
        files: Sequence[Path | str],
        *,
        files_metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> R:
        """Upload files; each is converted to text and retained in the background, as an operation of its own.

        `files_metadata` has one dict a file, in their order: document_id, context, metadata, tags, timestamp, strategy,
        trust. The answer holds `operation_ids`.
        """
        paths = [Path(file) for file in files]
        entries = [_without_none(entry) for entry in files_metadata or [{} for _ in paths]]
        return self._send_files(self._bank(bank_id, "files", "retain"), paths, {"files_metadata": entries})

    def recall(self, bank_id: str, query: str, **options: Any) -> R:
        """Ranked memories inside a token budget.

        `options` are the fields of the request: types, budget, max_tokens, tags, tags_match, tag_groups, min_scores,
        query_timestamp, temporal_window, include, trace, prefer_observations, max_ms, as_of, valid_at, why_not, arms.
        A busy daemon (503) is asked again, twice, after the time it names.
        """
        body = {"query": query} | _without_none(options)
        return self._send("POST", self._bank(bank_id, "memories", "recall"), body, retry=True)

    def reflect(self, bank_id: str, query: str, **options: Any) -> R:
        """An answer from what the bank knows and believes.

        `options` are the fields of the request: budget, context, max_tokens, include, response_schema, tags,
        tags_match, tag_groups, apply_all_directives, fact_types, exclude_mental_models, exclude_mental_model_ids, mode,
        query_timestamp, bias_strength, max_cost, max_llm_calls, form_opinions. It is not asked again by itself: each
        time may cost model calls.
        """
        body = {"query": query} | _without_none(options)
        return self._send("POST", self._bank(bank_id, "reflect"), body)

    def list_memories(self, bank_id: str, **filters: Any) -> R:
        """A page of memories. Filters: type, q, state, document_id, entity_id, tags, tags_match, time_field,
        start_date, end_date, limit, offset."""
        return self._send("GET", self._bank(bank_id, "memories", "list") + query_string(filters))

    def get_memory(self, bank_id: str, memory_id: str) -> R:
        return self._send("GET", self._bank(bank_id, "memories", memory_id))

    def clear_memories(self, bank_id: str, type: str | None = None) -> R:
        """Erase all memories of a bank, or those of one type; the bank stays."""
        return self._send("DELETE", self._bank(bank_id, "memories") + query_string({"type": type}))

    # -- banks

    def list_banks(self, q: str | None = None, *, limit: int = 100, offset: int = 0) -> R:
        return self._send("GET", self._root("banks") + query_string({"q": q, "limit": limit, "offset": offset}))

    def put_bank(self, bank_id: str, **fields: Any) -> R:
        """Create a bank or change it: name, mission, disposition and the other settings of a bank."""
        return self._send("PUT", self._bank(bank_id), fields)

    def patch_bank(self, bank_id: str, **fields: Any) -> R:
        """Change an existing bank; never creates one."""
        return self._send("PATCH", self._bank(bank_id), fields)

    def delete_bank(self, bank_id: str) -> R:
        return self._send("DELETE", self._bank(bank_id))

    def stats(self, bank_id: str) -> R:
        return self._send("GET", self._bank(bank_id, "stats"))

    def get_config(self, bank_id: str) -> R:
        return self._send("GET", self._bank(bank_id, "config"))

    def update_config(self, bank_id: str, **updates: Any) -> R:
        """Override settings of one bank; None removes an override."""
        return self._send("PATCH", self._bank(bank_id, "config"), {"updates": updates})

    def reset_config(self, bank_id: str) -> R:
        return self._send("DELETE", self._bank(bank_id, "config"))

    def list_tags(self, bank_id: str, **filters: Any) -> R:
        return self._send("GET", self._bank(bank_id, "tags") + query_string(filters))

    def list_entities(self, bank_id: str, **filters: Any) -> R:
        return self._send("GET", self._bank(bank_id, "entities") + query_string(filters))

    # -- documents

    def list_documents(self, bank_id: str, **filters: Any) -> R:
        """A page of documents. Filters: q, tags, tags_match, time_field, start_date, end_date, limit, offset."""
        return self._send("GET", self._bank(bank_id, "documents") + query_string(filters))

    def get_document(self, bank_id: str, document_id: str) -> R:
        return self._send("GET", self._bank(bank_id, "documents", document_id))

    def list_chunks(self, bank_id: str, document_id: str, *, limit: int = 100, offset: int = 0) -> R:
        path = self._bank(bank_id, "documents", document_id, "chunks")
        return self._send("GET", path + query_string({"limit": limit, "offset": offset}))

    def patch_document(self, bank_id: str, document_id: str, **fields: Any) -> R:
        return self._send("PATCH", self._bank(bank_id, "documents", document_id), fields)

    def delete_document(self, bank_id: str, document_id: str) -> R:
        """Erase a document and every memory that only it supports."""
        return self._send("DELETE", self._bank(bank_id, "documents", document_id))

    # -- operations

    def list_operations(self, bank_id: str, **filters: Any) -> R:
        """A page of background work, newest first. Filters: status, type, limit, offset, exclude_parents."""
        return self._send("GET", self._bank(bank_id, "operations") + query_string(filters))

    def get_operation(self, bank_id: str, operation_id: str) -> R:
        return self._send("GET", self._bank(bank_id, "operations", operation_id))

    def cancel_operation(self, bank_id: str, operation_id: str) -> R:
        return self._send("DELETE", self._bank(bank_id, "operations", operation_id))

    def retry_operation(self, bank_id: str, operation_id: str) -> R:
        return self._send("POST", self._bank(bank_id, "operations", operation_id, "retry"))

    # -- the daemon

    def health(self) -> R:
        return self._send("GET", "/health")

    def version(self) -> R:
        return self._send("GET", "/version")

    def _root(self, *parts: str) -> str:
        return "/v1/" + "/".join(quote(part, safe="") for part in (self.tenant, *parts))

    def _bank(self, bank_id: str, *parts: str) -> str:
        return self._root("banks", bank_id, *parts)


def query_string(params: Mapping[str, Any]) -> str:
    """`?a=1&tags=x&tags=y` out of a mapping; None is left out, lists repeat, booleans are lower case. "" when empty."""
    pairs: list[tuple[str, str]] = []
    for name, value in params.items():
        for one in value if isinstance(value, list | tuple | set) else [value]:
            if one is not None:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else _plain(one)))
    return "?" + urlencode(pairs) if pairs else ""


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _without_none(fields: Mapping[str, Any]) -> Json:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in fields.items()
        if value is not None
    }
