"""`recalld doctor` on language models: what it finds, what it costs, and that it shows no key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from recalld.daemon.doctor import Check
from recalld.daemon.doctor_models import check_models
from recalld.daemon.settings import load

from .model_server import Heard, ModelServer, Say

WORD = '{"word": "tea"}'


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    made = await ModelServer().start()
    made.say(WORD)
    yield made
    await made.stop()


def env(server: ModelServer, **more: str) -> dict[str, str]:
    given = {"LLM_API_KEY": "sk-the-secret-key", "LLM_MODEL": "test-model", "LLM_BASE_URL": server.url, **more}
    return {f"RECALLD_{name}": value for name, value in given.items()}


async def checks(given: dict[str, str]) -> list[Check]:
    return await check_models(load({"RECALLD_LLM_MAX_RETRIES": "0", **given}))


async def test_with_no_model_nobody_is_called_and_all_is_well() -> None:
    (check,) = await checks({})
    assert check.outcome == "ok" and "rules" in check.found
    (check,) = await checks({"RECALLD_LLM_PROVIDER": "none"})
    assert check.outcome == "ok" and "kept as they are" in check.found


async def test_a_model_that_works_is_tried_once_for_all_operations(server: ModelServer) -> None:
    (check,) = await checks(env(server))
    assert check.outcome == "ok" and "openai/test-model" in check.found and "bound to a schema" in check.found
    assert len(server.heard) == 1 and server.heard[0].body["max_tokens"] == 256


async def test_the_way_a_schema_travels_is_told(server: ModelServer) -> None:
    server.says.clear()

    def script(heard: Heard) -> Say:
        return Say(status=400, message="response_format") if "response_format" in heard.body else Say(text=WORD)

    server.script = script
    (check,) = await checks(env(server))
    assert check.outcome == "ok" and "in the prompt" in check.found


async def test_a_model_the_provider_does_not_have_is_named(server: ModelServer) -> None:
    server.says = [Say(status=404, message="model not found")]
    (check,) = await checks(env(server, LLM_MODEL="other"))
    assert check.outcome == "fail" and "does not have this model" in check.found and "llm.model" in check.advice


async def test_a_wrong_key_is_told_without_showing_it(server: ModelServer) -> None:
    server.says = [Say(status=401, message="Incorrect API key provided: sk-the-secret-key")]
    (check,) = await checks(env(server))
    assert check.outcome == "fail" and "llm.api_key" in check.found
    assert "secret" not in json.dumps(check.to_wire())


async def test_nobody_there_is_told_with_what_to_do() -> None:
    given = {"RECALLD_LLM_API_KEY": "k", "RECALLD_LLM_BASE_URL": "http://127.0.0.1:9/v1"}
    (check,) = await checks(given)
    assert check.outcome == "fail" and "connection" in check.found and "llm.base_url" in check.advice


async def test_a_model_that_keeps_to_no_schema_is_a_warning(server: ModelServer) -> None:
    server.says = [Say(text="tea")]
    (check,) = await checks(env(server))
    assert check.outcome == "warn" and "larger" in check.advice


async def test_each_model_of_an_operation_is_tried_by_name(server: ModelServer) -> None:
    found = await checks(env(server, LLM_REFLECT_MODEL="big"))
    assert [one.name for one in found] == ["model of retain and consolidate", "model of reflect"]
    assert [one.body["model"] for one in server.heard] == ["test-model", "big"]


def start(code: str, **more: str) -> dict[str, Any]:
    environment = {**os.environ, **more}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_settings_and_service_import_no_sdk() -> None:
    """The SDK takes half a second and 50 MB: the daemon pays for it when a model is first called."""
    code = (
        "import sys, json; import recalld.daemon.composition, recalld.daemon.service, recalld.daemon.settings;"
        "print(json.dumps({'found': [n for n in ('openai', 'litellm', 'anthropic', 'httpx') if n in sys.modules]}))"
    )
    assert start(code) == {"found": []}


async def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    (check,) = await checks({"RECALLD_LLM_PROVIDER": "litellm", "RECALLD_LLM_MODEL": "bedrock/x"})
    assert check.outcome == "fail" and "pip install 'recalld[litellm]'" in check.found
