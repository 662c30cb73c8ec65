"""`docs/models.md` is true: its snippets load, its names exist, its tables are those of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from recalld.actors.llm.base import Limits
from recalld.actors.llm.models import PRESETS, PROVIDERS, filled
from recalld.daemon.settings import load
from recalld.daemon.settings_llm import llm_config
from recalld.daemon.settings_table import BY_NAME
from recalld.storage import errors

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_snippet_loads_and_names_models_that_can_be_opened(snippet: str, tmp_path: Path) -> None:
    file = tmp_path / "recalld.toml"
    file.write_text(snippet)
    config = llm_config(load({}, file))
    named = tomllib.loads(snippet)["llm"]
    assert filled(config.general).provider == named["provider"]
    for operation, choice in config.operations.items():
        assert filled(choice).model == named[operation]["model"]


def test_the_providers_named_are_those_there_are() -> None:
    table = PAGE.split("## Providers")[1].split("##")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([a-z]+)`", row.split("|")[1])} == set(PROVIDERS)
    for address in re.findall(r"`(https://[^`]+)`", table):
        assert address in {one.base_url for one in PRESETS.values()}


def test_the_settings_variables_and_errors_named_exist() -> None:
    for name in re.findall(r"`(llm\.[a-z_]+)`", PAGE):
        assert name in BY_NAME, name
    for variable in re.findall(r"`RECALLD_(LLM_[A-Z_]+)`", PAGE):
        assert variable.lower().replace("_", ".", 1) in BY_NAME
    for status, code in re.findall(r"\| (\d{3}) `(model_[a-z_]+)` \|", PAGE):
        (kind,) = [one for one in vars(errors).values() if getattr(one, "code", None) == code]
        assert kind.status == int(status)


def test_the_defaults_named_are_those_in_force() -> None:
    settings, limits = load({}), llm_config(load({})).limits
    assert (limits.concurrent, limits.timeout, limits.deadline) == (32, 120.0, 300.0)
    assert settings.llm_reflect_timeout == 30.0
    assert limits.retries == Limits().retries == 3 and limits.backoff_max == 60.0
