"""What every item goes through before anything of it is stored, queued or logged: recalled text out, policy applied.

The same for a retain, for an upload's text, and for the tags of a document. What comes out is what the rest of recalld
ever sees, so chunks, payloads, receipts and model calls hold nothing that the policy takes out.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recalld.actors.retain.items import ItemEntity, RetainItem
from recalld.actors.retain.marking import source_level
from recalld.actors.retain.prepare import item_config
from recalld.actors.trust import pasted
from recalld.actors.trust.redaction import OFF, REDACT, Sweep, find, map_strings
from recalld.daemon.overrides import Overrides
from recalld.storage.errors import BankNotFound, Redacted

IN_THREAD = 3_000
"""Characters from which on a search would keep the event loop waiting."""

Read = Callable[..., Awaitable[Any]]
_PLACEHOLDER = re.compile(r"\[redacted:([a-z_]+)\]")


class Screening:
    """The screening of one daemon. `read` asks a bank's shard; `defaults` are the server's bank settings."""

    def __init__(self, read: Read, overrides: Overrides, defaults: Callable[[], dict[str, Any]], keys: Path) -> None:
        self._read = read
        self._overrides = overrides
        self._defaults = defaults
        self._keys = keys
        self._secret: bytes | None = None

    async def settings(self, tenant: str, bank_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """(the server's bank settings, what the bank has over them)."""
        return self._defaults(), await self._overrides.of(tenant, bank_id)

    async def items(self, tenant: str, bank_id: str, items: Sequence[RetainItem]) -> list[RetainItem]:
        """The items as they may be stored. Raises `Redacted` when the policy `block` refuses one: then none is."""
        defaults, overrides = await self.settings(tenant, bank_id)
        configs = [item_config(defaults, overrides, item.strategy) for item in items]
        big = sum(len(item.content) for item in items) > IN_THREAD
        run = asyncio.to_thread if big else _here
        items = await self._without_recalled(tenant, bank_id, items, run)
        if any(config.get("redaction", OFF) == REDACT for config in configs):
            await asyncio.to_thread(self._load_secret)
        return await run(self._swept, items, configs)

    async def tags(self, tenant: str, bank_id: str, tags: Sequence[str]) -> tuple[str, ...]:
        """Tags as they may be stored. Raises `Redacted`."""
        defaults, overrides = await self.settings(tenant, bank_id)
        sweep = Sweep(item_config(defaults, overrides, None).get("redaction", OFF))
        if sweep.policy == REDACT:
            await asyncio.to_thread(self._load_secret)
        kept = tuple(dict.fromkeys(self._name(sweep, tag, "tags") for tag in tags))
        if sweep.refusal:
            raise _refused([sweep.refusal])
        return kept

    async def fields(self, tenant: str, bank_id: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The texts among some fields, and lists of texts, as they may be stored. Raises `Redacted`."""
        defaults, overrides = await self.settings(tenant, bank_id)
        sweep = Sweep(item_config(defaults, overrides, None).get("redaction", OFF))
        kept = {name: _texts(sweep, name, value) for name, value in fields.items()}
        if sweep.refusal:
            raise _refused([sweep.refusal])
        return kept

    async def policy(self, tenant: str, bank_id: str, strategy: str | None) -> str:
        """The redaction policy in force for items under a strategy."""
        defaults, overrides = await self.settings(tenant, bank_id)
        return str(item_config(defaults, overrides, strategy).get("redaction", OFF))

    # -- recalled text ---------------------------------------------------------------------------------------------

    async def _without_recalled(self, tenant: str, bank_id: str, items: Sequence[RetainItem], run: Any) -> Any:
        items, listed = await run(_without_blocks, items)
        if not listed:
            return items
        documents = [item.document_id for item in items if item.document_id is not None]
        try:
            stored = await self._read("stored_texts", tenant, bank_id, texts=listed, except_documents=documents)
        except BankNotFound:
            return items
        return await run(_without_lines, items, frozenset(stored)) if stored else items

    # -- the policy ------------------------------------------------------------------------------------------------

    def _swept(self, items: Sequence[RetainItem], configs: Sequence[dict[str, Any]]) -> list[RetainItem]:
        swept: list[RetainItem] = []
        refused: list[str] = []
        for number, (item, config) in enumerate(zip(items, configs, strict=True)):
            item = replace(item, trust=source_level(item, config))
            sweep = Sweep(config.get("redaction", OFF))
            if sweep.policy != OFF:
                item = self._under(sweep, item)
                if sweep.refusal:
                    refused.append(f"items[{number}]: {sweep.refusal}")
            swept.append(item)
        if refused:
            raise _refused(refused)
        return swept

    def _under(self, sweep: Sweep, item: RetainItem) -> RetainItem:
        text = sweep.text
        scopes = item.observation_scopes
        file = None if item.file is None else {**item.file, "name": text(item.file.get("name", ""), "file name")}
        changed = replace(
            item,
            content=sweep.content(item.content),
            context=text(item.context, "context"),
            metadata={text(k, "metadata"): text(v, _place(k), k) for k, v in item.metadata.items()},
            tags=tuple(dict.fromkeys(self._name(sweep, tag, "tags") for tag in item.tags)),
            entities=self._entities(sweep, item.entities),
            observation_scopes=scopes
            if scopes is None or isinstance(scopes, str)
            else tuple(tuple(self._name(sweep, tag, "observation_scopes") for tag in scope) for scope in scopes),
            document_id=None if item.document_id is None else self._name(sweep, item.document_id, "document_id"),
            file=file,
        )
        if not sweep.counts:
            return changed
        # An upload comes through twice: first what is known of it, then its text.
        before = changed.notes.get("redaction", {}).get("found", {})
        counts = {kind: sweep.counts.get(kind, 0) + before.get(kind, 0) for kind in sorted({*sweep.counts, *before})}
        found = {"policy": sweep.policy, "found": counts}
        return replace(changed, notes={**changed.notes, "redaction": found})

    def _name(self, sweep: Sweep, name: str, where: str) -> str:
        """A document id or a tag under the policy. What is taken out leaves a keyed digest, so that two documents stay
        two, and who sees the memories of one tag does not see those of another."""
        kept = sweep.text(name, where)
        if kept == name:
            return name
        assert self._secret is not None
        digest = hmac.digest(self._secret, name.encode("utf-8", "surrogatepass"), "sha256").hex()[:12]
        return _PLACEHOLDER.sub(lambda match: f"[redacted:{match[1]}:{digest}]", kept)

    def _entities(self, sweep: Sweep, entities: Sequence[ItemEntity]) -> tuple[ItemEntity, ...]:
        """Entities without those whose names go: all of them would become one."""
        named = [(one, sweep.text(one.name, "entities"), sweep.text(one.kind, "entities")) for one in entities]
        return tuple(ItemEntity(name, kind) for one, name, kind in named if name == one.name)

    def _load_secret(self) -> None:
        """The key of document ids and tags; made once a home, so that nobody can try out names against the digests."""
        if self._secret is not None:
            return
        path = self._keys / "redaction"
        self._keys.mkdir(mode=0o700, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            self._secret = path.read_bytes()
            return
        self._secret = os.urandom(32)
        with os.fdopen(handle, "wb") as out:
            out.write(self._secret)
            out.flush()
            os.fsync(out.fileno())


async def _here(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _place(key: str) -> str:
    """How a metadata field is called in a refusal, which must not say what a key holds."""
    return f"metadata {key}" if key.isidentifier() and len(key) < 40 and not find(key) else "metadata"


def _texts(sweep: Sweep, name: str, value: Any) -> Any:
    if isinstance(value, str):
        return sweep.text(value, name)
    if isinstance(value, list | tuple):
        return type(value)(_texts(sweep, name, one) for one in value)
    return value


def _refused(reasons: Sequence[str]) -> Redacted:
    said = "; ".join(reasons[:10])
    return Redacted(f"Nothing was stored, since the bank's redaction policy is 'block'. Found {said}.")


def _without_blocks(items: Sequence[RetainItem]) -> tuple[list[RetainItem], list[str]]:
    """The items without recalled blocks, and the lines of theirs that may be stored units."""
    kept: list[RetainItem] = []
    listed: dict[str, None] = {}

    def look(text: str, _: str) -> str:
        listed.update(dict.fromkeys(pasted.listed(text)))
        return text

    for item in items:
        if pasted.may_hold(item.content):
            item = _dropped(item, pasted.without_blocks)
            map_strings(item.content, look)
        kept.append(item)
    return kept, list(listed)


def _without_lines(items: Sequence[RetainItem], stored: frozenset[str]) -> list[RetainItem]:
    return [_dropped(item, lambda text: pasted.without_lines(text, stored)) for item in items]


def _dropped(item: RetainItem, change: Callable[[str], tuple[str, int]]) -> RetainItem:
    """The item after `change` took pieces out of its strings, which its notes count."""
    pieces = characters = 0

    def walk(text: str, _: str) -> str:
        nonlocal pieces, characters
        kept, count = change(text)
        if count:
            pieces, characters = pieces + count, characters + len(text) - len(kept)
        return kept

    whole, count = change(item.content) if pasted.is_recall_answer(item.content) else (item.content, 0)
    content = whole if count else map_strings(item.content, walk)
    if count:
        pieces, characters = count, len(item.content)
    if not pieces:
        return item
    before = list(item.notes.get("dropped", ()))
    dropped = {"reason": pasted.RECALLED, "pieces": pieces, "characters": characters}
    return replace(item, content=content, notes={**item.notes, "dropped": [*before, dropped]})
