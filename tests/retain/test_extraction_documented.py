"""The examples of docs/extraction.md are what recalld does."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from recalld.actors.retain.model_labels import checked
from recalld.actors.spending import PriceTable
from recalld.daemon import bank_settings
from recalld.daemon.settings_table import BY_NAME
from recalld.daemon.wire.model_requests import DryRunExtractRequest, PriceRequest

from .model_server import TENANT, model_server, service_with

PAGE = (Path(__file__).parents[2] / "docs" / "extraction.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


async def test_the_dry_run_and_the_price_of_the_page_work(tmp_path: Path) -> None:
    dry = DryRunExtractRequest.model_validate(json.loads(block("json dry-run")))
    price = PriceRequest.model_validate(json.loads(block("json price")))
    async with model_server() as server, service_with(server, tmp_path / "home") as service:
        await service.put_bank(TENANT, "b", {})
        found = await service.dry_run_extract(TENANT, "b", dry.to_item(), dry.to_overrides())
        assert found["facts"] and found["usage"]["total_tokens"] > 0
        from recalld.daemon.routes.memories import to_items
        from recalld.daemon.wire.requests import RetainRequest

        items = to_items(RetainRequest.model_construct(items=price.items, document_tags=None))
        said = await service.price_preview(TENANT, "b", {"operation": "retain", "items": items})
        assert said["least"] == said["most"] and said["most"]["cost"] is None


def test_the_labels_and_prices_of_the_page_are_valid() -> None:
    assert [group["key"] for group in checked(json.loads(block("json labels")))] == ["mood", "place"]
    budget = tomllib.loads(block("toml"))["budget"]
    prices = PriceTable(budget["prices"])
    known = prices.of("openai/gpt-4o-mini")
    assert known is not None and known.of(1_000_000, 0) == 150_000_000 and known.of(10, 0, 10) == 750
    free = prices.of("ollama/llama3")
    assert free is not None and free.of(10, 10) == 0
    assert prices.of("openai/gpt-5") is None


def test_every_setting_the_page_names_exists() -> None:
    dotted = set(re.findall(r"`((?:budget|ledger|extraction|operations)\.[a-z_]+)`", PAGE))
    assert len(dotted) > 8 and dotted <= set(BY_NAME)
    plain = set(re.findall(r"`((?:retain|entit|budget|llm)[a-z]*_[a-z_]+)`", PAGE))
    assert plain - set(bank_settings.BY_NAME) == set()
