"""Settings: precedence, checks, warnings, secrets, and docs that cannot rot."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from recalld.actors.recall.bank import with_budgets
from recalld.actors.recall.settings import RecallSettings
from recalld.daemon.bank_settings import BANK_SETTINGS, resolve, validate_updates
from recalld.daemon.settings import SETTINGS, Settings, SettingsError, docs_page, load, shown
from recalld.daemon.settings_llm import llm_config
from recalld.daemon.settings_recall import recall_settings
from recalld.storage.errors import BadRequest


def test_flags_beat_own_variables_beat_theirs_beat_the_file(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(
        'port = 1\nhost = "localhost"\nlog_level = "debug"\n'
        '[embedding]\nmodel = "m"\n[admission.recall]\nmax_wait_ms = 7\n'
    )
    env = {"HINDSIGHT_API_PORT": "2", "RECALLD_PORT": "3", "HINDSIGHT_API_LOG_LEVEL": "ERROR"}
    found = load(env, file, {"port": 4, "home": None})
    assert (found.port, found.host, found.log_level, found.embedding_model) == (4, "localhost", "error", "m")
    assert found.admission_recall_max_wait_ms == 7
    assert load(env, file).port == 3
    assert load({"HINDSIGHT_API_PORT": "2"}, file).port == 2
    assert load({}, file).port == 1
    assert load({}).port == 8888


def test_yaml_is_read_where_its_package_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "r.yaml"
    file.write_text("port: 5\nembedding:\n  device: cpu\n")
    assert (load({}, file).port, load({}, file).embedding_device) == (5, "cpu")
    real = importlib.import_module

    def without(name: str, *rest: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(SettingsError, match="pyyaml"):
        load({}, file)


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text("prot = 1\ngraph = {decay = 3}\n")
    env = {
        "RECALLD_PORT": "many",
        "RECALLD_RUNTIME": "threads",
        "HINDSIGHT_API_RETAIN_CHUNK_SIZE": "-1",
        "RECALLD_ACCESS_LOG": "maybe",
    }
    with pytest.raises(SettingsError) as caught:
        load(env, file, {"hosts": "x"})
    text = str(caught.value)
    assert len(caught.value.problems) == 7
    for part in (
        "prot; did you mean port?",
        "graph.decay: must be a number from 0 to 1, not 3",
        "RECALLD_PORT: must be a whole number from 0 to 65535, not 'many'",
        "RECALLD_RUNTIME: must be one of ray, inline",
        "HINDSIGHT_API_RETAIN_CHUNK_SIZE: must be a whole number from 200",
        "RECALLD_ACCESS_LOG: must be true or false",
        "--hosts: unknown flag",
    ):
        assert part in text, part


def test_a_kubernetes_service_link_is_ignored_with_a_warning() -> None:
    warnings: list[str] = []
    found = load({"HINDSIGHT_API_PORT": "tcp://10.0.0.1:80", "RECALLD_PORT": "tcp://10.0.0.1:8888"}, warnings=warnings)
    assert found.port == 8888 and len(warnings) == 2 and "HINDSIGHT_API_PORT" in warnings[0]


def test_an_unknown_variable_is_a_warning_with_a_near_match() -> None:
    warnings: list[str] = []
    load(
        {"RECALLD_EMBEDING_MODEL": "m", "HINDSIGHT_API_DATABASE_URL": "pg0", "RECALLD_SERVICE_HOST": "x"},
        warnings=warnings,
    )
    assert warnings == ["Unknown variable RECALLD_EMBEDING_MODEL is ignored; did you mean RECALLD_EMBEDDING_MODEL?"]


def test_secrets_print_as_stars_everywhere() -> None:
    found = load({"RECALLD_API_KEY": "sesame"})
    assert found.api_key == "sesame" and shown(found)["api_key"] == "********"
    assert "sesame" not in repr(found)
    assert shown(Settings())["api_key"] is None


def test_listening_beyond_loopback_needs_a_key_or_a_decision() -> None:
    with pytest.raises(SettingsError, match="ALLOW_INSECURE_BIND"):
        load({"HINDSIGHT_API_HOST": "0.0.0.0"})
    assert load({"HINDSIGHT_API_HOST": "0.0.0.0", "RECALLD_API_KEY": "k"}).host == "0.0.0.0"
    assert load({"RECALLD_HOST": "0.0.0.0", "RECALLD_ALLOW_INSECURE_BIND": "1"}).host == "0.0.0.0"
    assert load({"RECALLD_HOST": "::1"}).host == "::1"


def test_their_retries_become_our_attempts() -> None:
    assert load({"HINDSIGHT_API_WORKER_MAX_RETRIES": "3"}).operations_max_attempts == 4
    assert (
        load({"HINDSIGHT_API_WORKER_MAX_RETRIES": "3", "RECALLD_OPERATIONS_MAX_ATTEMPTS": "9"}).operations_max_attempts
        == 9
    )


def test_code_of_a_model_folder_is_refused_and_explained() -> None:
    warnings: list[str] = []
    load({"HINDSIGHT_API_EMBEDDINGS_LOCAL_TRUST_REMOTE_CODE": "true"}, warnings=warnings)
    assert len(warnings) == 1 and "never runs code" in warnings[0]


def test_their_names_of_the_model_settings_mean_ours() -> None:
    given = {
        "HINDSIGHT_API_LLM_PROVIDER": "OpenAI",
        "HINDSIGHT_API_LLM_API_KEY": "sk-secret-general",
        "HINDSIGHT_API_LLM_MODEL": "general",
        "HINDSIGHT_API_LLM_BASE_URL": "http://127.0.0.1:9/v1/",
        "HINDSIGHT_API_LLM_MAX_CONCURRENT": "7",
        "HINDSIGHT_API_LLM_TEMPERATURE_RETAIN": "none",
        "HINDSIGHT_API_RETAIN_LLM_MODEL": "small",
        "HINDSIGHT_API_CONSOLIDATION_LLM_PROVIDER": "anthropic",
        "HINDSIGHT_API_CONSOLIDATION_LLM_API_KEY": "sk-secret-consolidation",
        "HINDSIGHT_API_REFLECT_LLM_BASE_URL": "http://127.0.0.1:8/v1",
        "HINDSIGHT_API_REFLECT_LLM_TIMEOUT": "12",
    }
    settings = load(given)
    config = llm_config(settings)
    assert (config.general.provider, config.general.model, config.limits.concurrent) == ("openai", "general", 7)
    assert config.limits.temperatures == {"retain": None, "consolidate": 0.0, "reflect": 0.9}
    assert config.limits.timeouts == {"reflect": 12.0}
    retain, consolidate, reflect = (config.of(one) for one in ("retain", "consolidate", "reflect"))
    assert (retain.model, retain.key, retain.base_url) == ("small", "sk-secret-general", "http://127.0.0.1:9/v1/")
    assert (reflect.model, reflect.base_url) == ("general", "http://127.0.0.1:8/v1")
    assert (consolidate.provider, consolidate.key, consolidate.model) == ("anthropic", "sk-secret-consolidation", "")
    for text in (repr(settings), repr(config), str(shown(settings))):
        assert "sk-secret" not in text


def test_the_rules_work_until_there_is_a_key_or_a_provider() -> None:
    assert load({}).llm_provider == "local"
    assert load({"RECALLD_LLM_API_KEY": "sk-x"}).llm_provider == "openai"
    assert load({"RECALLD_LLM_API_KEY": "sk-x", "RECALLD_LLM_PROVIDER": "none"}).llm_provider == "none"
    assert load({"HINDSIGHT_API_LLM_PROVIDER": "none"}).llm_provider == "none"


def test_the_key_of_one_provider_is_never_sent_to_another() -> None:
    general = {"RECALLD_LLM_API_KEY": "sk-x", "RECALLD_LLM_MODEL": "m", "RECALLD_LLM_BASE_URL": "http://127.0.0.1:9"}
    own = llm_config(load({**general, "RECALLD_LLM_RETAIN_PROVIDER": "ollama", "RECALLD_LLM_RETAIN_MODEL": "q"}))
    assert (own.of("retain").key, own.of("retain").base_url) == (None, "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"RECALLD_LLM_PROVIDER": "anthropic"}, "needs a key"),
        ({"RECALLD_LLM_PROVIDER": "ollama"}, "needs the name of a model"),
        ({"RECALLD_LLM_PROVIDER": "opnai"}, "must be one of"),
        ({"RECALLD_LLM_EXTRA_BODY": "[1]"}, "must be a JSON object"),
        ({"RECALLD_LLM_DEFAULT_HEADERS": '{"x": 1}'}, "every value must be text"),
        ({"RECALLD_LLM_API_KEY": "k", "RECALLD_LLM_BASE_URL": "localhost:80"}, "must begin with http"),
        ({"RECALLD_LLM_REFLECT_PROVIDER": "gemini"}, "llm.reflect: The model provider gemini needs a key"),
    ],
)
def test_model_settings_that_cannot_work_are_named_at_start(given: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load(given)


def test_every_default_obeys_its_own_rule() -> None:
    env = {row.variable: str(row.default) for row in SETTINGS if row.default is not None and row.type != "list"}
    assert load(env) == Settings()


def test_names_and_variables_are_unique_and_every_row_has_help() -> None:
    names = (
        [row.name for row in SETTINGS]
        + [row.variable for row in SETTINGS]
        + [a for row in SETTINGS for a in row.aliases]
    )
    assert len(names) == len(set(names))
    assert all(row.help.endswith(".") and re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)?", row.name) for row in SETTINGS)


def test_the_settings_page_is_made_from_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == docs_page(), "run: python -m recalld.daemon.settings_docs"


def test_the_engine_gets_its_own_defaults_and_what_was_set() -> None:
    assert recall_settings(Settings()) == RecallSettings()
    found = load({"RECALLD_GRAPH_DECAY": "0.25", "RECALLD_RANK_NEAR1": "0.9"}, flags={"recall.query_terms": 8})
    engine = recall_settings(found)
    assert (engine.graph_decay, engine.weights.near1, engine.query_terms) == (0.25, 0.9, 8)
    engine_rows = [row.engine for row in SETTINGS if row.engine]
    assert len(engine_rows) == len(set(engine_rows)) > 35


def test_adaptive_budgets_follow_the_tokens_asked_for() -> None:
    bank = resolve(Settings(), {"recall_budget_function": "adaptive", "recall_budget_min": 50})
    engine = with_budgets(RecallSettings(), bank, 1000)
    assert (engine.budget_low, engine.budget_mid, engine.budget_high) == (50, 75, 250)
    fixed = with_budgets(RecallSettings(), resolve(Settings(), {"recall_budget_fixed_mid": 200}), 1000)
    assert (fixed.budget_low, fixed.budget_mid, fixed.budget_high) == (100, 200, 1000)


def test_bank_fields_have_defaults_that_obey_their_rules() -> None:
    assert len(BANK_SETTINGS) >= 58
    resolved = resolve(Settings(), {})
    for field in BANK_SETTINGS:
        value = resolved[field.name]
        assert value is None or field.check(value), field.name
        if field.server and field.default is not None:
            assert value == field.default, field.name
    assert resolve(Settings(retain_chunk_size=900), {})["retain_chunk_size"] == 900
    assert resolve(Settings(retain_chunk_size=900), {"retain_chunk_size": 400})["retain_chunk_size"] == 400


def test_a_refusal_names_every_field_and_why() -> None:
    with pytest.raises(BadRequest) as caught:
        validate_updates(
            {"llm_api_key": "x", "retain_chunk_siz": 1, "port": 1, "enable_reranking": "yes", "RETAIN_MISSION": 5}
        )
    text = str(caught.value)
    for part in ("llm_api_key is a credential", "did you mean retain_chunk_size", "port can only be set on the server",
                 "enable_reranking must be true or false", "retain_mission must be text"):  # fmt: skip
        assert part in text
    with pytest.raises(BadRequest, match="given twice"):
        validate_updates({"retain_mission": "a", "RETAIN_MISSION": "b"})
