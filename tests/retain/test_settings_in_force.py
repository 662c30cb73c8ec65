"""Settings and fields of an item that change what is stored, and those that say they change nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recalld.actors.messages import DocumentState, RetainJob, RetainPlan
from recalld.actors.retain import prepare
from recalld.actors.retain.entities import deduplicated
from recalld.actors.retain.items import RetainItem
from recalld.daemon.bank_settings import resolve
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import MODEL_ONLY, SETTINGS, Settings
from recalld.storage.errors import BadRequest
from recalld.storage.records import EntityMention

from .conftest import Bank

ROOT = Path(__file__).parents[2]
PASSED_ON = {"daemon/bank_settings.py", "daemon/wire/requests.py"}
UNUSED = (MODEL_ONLY, "Accepted and not used")


@pytest.mark.parametrize("row", [row for row in SETTINGS if not row.engine], ids=lambda row: row.name)
def test_every_setting_is_read_somewhere_or_says_that_it_is_not(row: object) -> None:
    name, words = row.attribute, row.help  # type: ignore[attr-defined]
    stem = re.sub(r"_(low|mid|high)$", "_{level}", name)
    spelled = re.compile(rf"(settings|self)\.{name}\b|['\"]({re.escape(name)}|{re.escape(stem)})['\"]")
    files = [path for folder in ("daemon", "actors") for path in (ROOT / folder).rglob("*.py")]
    read = any(
        spelled.search(path.read_text(encoding="utf-8"))
        for path in files
        if str(path.relative_to(ROOT)) not in PASSED_ON
    )
    said = any(phrase in words for phrase in UNUSED)
    assert read != said, f"{name} is read by nobody, or read although its help says it is not"


async def test_an_unknown_strategy_is_refused_by_name(bank: Bank) -> None:
    with pytest.raises(BadRequest, match="'swift'"):
        await bank.retain({"content": "Ana keeps bees.", "strategy": "swift"})
    await bank.service.patch_config("default", "b", {"retain_strategies": {"slow": {"retain_chunk_size": 300}}})
    with pytest.raises(BadRequest, match="it has slow"):
        await bank.retain({"content": "Ana keeps bees.", "strategy": "swift"})
    await bank.retain({"content": "Ana keeps bees.", "strategy": "slow"})
    assert await bank.texts("Ana bees") == ["Ana keeps bees."]


async def names(service: MemoryService) -> list[tuple[str, str | None]]:
    found = await service.list_entities("default", "b", (), "any", None, 100, 0)
    return sorted((row["canonical_name"], row["mention_count"]) for row in found["items"])


async def test_names_that_are_not_resolved_are_taken_literally(bank: Bank) -> None:
    def one(name: str, kind: str, resolve: bool) -> dict[str, object]:
        entity = {"text": name, "type": kind}
        return {"content": f"About {name}.", "entities": [entity], "resolve_entities": resolve}

    await bank.retain(one("Mercury", "LOCATION", True), one("Mercury", "PERSON", True))
    assert await names(bank.service) == [("Mercury", 1), ("Mercury", 1)], "kinds separate what is resolved"
    await bank.retain(one("MERCURY", "PRODUCT", False))
    assert sorted(count for _, count in await names(bank.service)) == [1, 2], "and not what is not"
    await bank.retain(one('"Dr. Who\'s"', "PERSON", False))
    assert '"Dr. Who\'s"' in [name for name, _ in await names(bank.service)]


def test_an_exact_name_is_kept_as_it_was_written() -> None:
    cleaned = deduplicated([EntityMention("“Anna's”", "PERSON")])
    literal = deduplicated([EntityMention("“Anna's”", "PERSON", exact=True)])
    assert [one.name for one in cleaned] == ["Anna"]
    assert [one.name for one in literal] == ["“Anna's”"]


@pytest.mark.parametrize("wanted", [True, False])
def test_causes_are_linked_only_when_the_setting_says_so(wanted: bool) -> None:
    defaults = {**resolve(Settings(), {}), "retain_extract_causal_links": wanted}
    text = "Ana: The seal broke in May.\nBen: Because of that we closed hall three.\nAna: Lunch is at noon."
    items = (RetainItem.parse({"content": text, "document_id": "d"}).to_plain(),)
    job = RetainJob("t", "b", items, "r", 1_750_000_000_000_000, defaults)
    preparation = prepare.begin(job, lambda: "00000000-0000-4000-8000-000000000000")
    plan = RetainPlan((DocumentState("d", 0, (), 0, ()),), (), {})
    prepare.extract(preparation, plan, lambda: "00000000-0000-4000-8000-000000000000")
    assert any(fact.fact.causes for facts in preparation.facts for fact in facts) is wanted
