"""`recalld doctor`: whether the language models of the settings are there, have the model named, and take a schema."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from recalld.actors.llm.models import SILENT, Models
from recalld.actors.llm.modes import JSON_OBJECT, JSON_SCHEMA, TEXT
from recalld.actors.llm.probe import Probe, probe
from recalld.daemon.settings_llm import OWN, llm_config
from recalld.storage.errors import ModelAnswerUnusable, ModelOverflow, ModelRefused

if TYPE_CHECKING:
    from recalld.daemon.doctor import Check
    from recalld.daemon.settings import Settings

_MODES = {
    JSON_SCHEMA: "answers are bound to a schema",
    JSON_OBJECT: "schemas go in an older form",
    TEXT: "schemas go in the prompt, and answers are mended",
}


async def check_models(settings: Settings) -> list[Check]:
    """One check a model: a single call of a few tokens each, none where no model is set."""
    from recalld.daemon.doctor import Check

    config = llm_config(settings)
    used = {name: config.of(name) for name in OWN}
    if all(one.provider in SILENT for one in used.values()):
        left = "nobody: texts are kept as they are" if settings.llm_provider == "none" else "rules, and calls nobody"
        return [Check("model", "ok", f"none is set; the work is left to {left}")]
    models = Models(config, chance=random.random)
    try:
        found: list[Check] = []
        tried: list[object] = []
        for name, choice in used.items():
            if choice.provider in SILENT or choice in tried:
                continue
            tried.append(choice)
            sharing = [other for other, its in used.items() if its == choice]
            title = "model" if len(sharing) == len(used) else f"model of {' and '.join(sharing)}"
            found.append(_told(title, await probe(models.llm(name), name)))
        return found
    finally:
        await models.close()


def _told(title: str, seen: Probe) -> Check:
    from recalld.daemon.doctor import Check

    name = f"{seen.provider}/{seen.model}"
    if seen.error is None:
        return Check(title, "ok", f"{name} answers in {seen.milliseconds:.0f} ms; {_MODES.get(seen.mode, seen.mode)}")
    said = f" It said: {seen.detail}" if seen.detail else ""
    if seen.listed is False:
        advice = "Set llm.model to one the provider has."
        return Check(title, "fail", f"{name}: the provider does not have this model.{said}", advice)
    if isinstance(seen.error, ModelAnswerUnusable | ModelOverflow):
        advice = "Facts will be left out or wrong with this model; choose a larger one, or leave the work to rules."
        return Check(title, "warn", f"{name} is there and does not keep to a schema. {seen.error.message}", advice)
    outcome_advice = (
        "Do what it says." if isinstance(seen.error, ModelRefused) else "See llm.base_url, and that the server runs."
    )
    return Check(title, "fail", f"{name}: {seen.error.message}{said}", outcome_advice)
