"""Rules of the house: which way imports point, where Ray and the wall clock may be named, how long a module may be."""

from __future__ import annotations

import ast
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = {"storage": set(), "actors": {"storage"}, "daemon": {"actors", "storage", "client"}, "client": set()}
CLOCKS = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "uuid.uuid4"}
LONGEST = 600


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Names of the modules a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("folder", LAYERS)
def test_imports_point_one_way(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(folder)
        for name in imported(path)
        if name.startswith("recalld.") and name.split(".")[1] not in {folder, *LAYERS[folder]}
    ]
    assert not wrong


def test_ray_is_imported_in_one_module() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in LAYERS
        for path in modules(folder)
        for name in imported(path)
        if name == "ray" or name.startswith("ray.")
    }
    assert found == {"actors/ray_runtime.py"}


@pytest.mark.parametrize("folder", ["storage", "actors"])
def test_clock_and_ids_are_handed_in(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {ast.unparse(node.func)}"
        for path in modules(folder)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in CLOCKS
    ]
    assert not wrong


def test_every_package_is_installed() -> None:
    """An editable install finds folders that the list of packages lacks; a wheel has only what is listed."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT) for folder in LAYERS for path in modules(folder)}
    assert {".".join(["recalld", *folder.parts]) for folder in folders} == set(listed)


def test_no_module_has_grown_too_long() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for folder in (*LAYERS, "tests")
        for path in modules(folder)
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert not long


@pytest.mark.parametrize("folder", LAYERS)
def test_public_names_exist(folder: str) -> None:
    package = importlib.import_module(f"recalld.{folder}")
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_logs_quote_no_exception() -> None:
    """An exception's message may hold a user's text: logs get `faults.origin` of it, its type and frames."""
    wrong = []
    numbers_alone = {"hnsw.py", "vectors.py"}  # what fails there reads files without any text
    for folder in ("storage", "actors", "daemon"):
        for path in modules(folder):
            if path.name in numbers_alone:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not (
                    isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("log.", "logging.", "access."))
                ):
                    continue
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                quotes = any(ast.unparse(one) in ("error", "repr(error)", "str(error)", "exc") for one in given)
                options = {keyword.arg for keyword in node.keywords}
                if quotes or "exc_info" in options or ast.unparse(node.func) == "log.exception":
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong
