"""Load the settings: flags over `RECALLD_*` over `HINDSIGHT_API_*` over the file over defaults, checked all at once."""

from __future__ import annotations

import difflib
import importlib
import ipaddress
import logging
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recalld.daemon import settings_llm
from recalld.daemon.settings_rows import ALIAS_PREFIX, ENV_PREFIX, Setting
from recalld.daemon.settings_table import BY_NAME, SETTINGS, Settings
from recalld.storage.errors import BadRequest

__all__ = ["SETTINGS", "Setting", "Settings", "SettingsError", "docs_page", "load", "shown"]

log = logging.getLogger("recalld.settings")

STARS = "********"
OWN_VARIABLES = frozenset({"RECALLD_CONFIG", "RECALLD_URL", "RECALLD_API_KEY_FILE"})
"""Variables of ours that are no settings: the file to read, and what clients read."""

# Kubernetes sets NAME_PORT=tcp://10.0.0.1:80 in every pod beside a service called `hindsight-api` or `recalld`.
_SERVICE_LINK = re.compile(r"^(tcp|udp)://")
_TRUE, _FALSE = {"true", "1", "yes", "on"}, {"false", "0", "no", "off"}


class SettingsError(BadRequest):
    """One or more settings are wrong; the message names each with the rule it breaks."""

    code = "settings"

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        count = "A setting is" if len(problems) == 1 else f"{len(problems)} settings are"
        super().__init__(f"{count} wrong:\n" + "\n".join(f"  - {one}" for one in problems))


@dataclass(slots=True)
class _Sources:
    """Raw values by setting name with where each came from, and what went wrong on the way."""

    values: dict[str, tuple[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def load(
    env: Mapping[str, str],
    file: Path | str | None = None,
    flags: Mapping[str, Any] | None = None,
    assigned: Mapping[str, Any] | None = None,
    *,
    warnings: list[str] | None = None,
) -> Settings:
    """The settings of this process.

    `env` is the environment, `file` a TOML or YAML file, `flags` attribute or dotted names to values (None: not given),
    `assigned` the same for what was given with `--set`.
    Warnings are appended to `warnings`, or logged where that is not given. Raises `SettingsError` naming every problem.
    """
    found = _Sources()
    if file is not None:
        _from_file(Path(file), found)
    _from_environment(env, found)
    _from_flags(flags or {}, found)
    _from_flags(assigned or {}, found, by_set=True)

    values: dict[str, Any] = {}
    for name, (origin, raw) in found.values.items():
        row = BY_NAME[name]
        try:
            values[row.attribute] = parse(row, raw)
        except ValueError as error:
            found.problems.append(f"{origin}: {error}")
    if provider := settings_llm.default_provider(values):
        values["llm_provider"] = provider
    if not found.problems:
        found.problems += _cross_checks(Settings(**values))
    if values.get("embedding_trust_remote_code"):
        found.warnings.append(
            "embedding.trust_remote_code is refused: recalld reads weights and a tokenizer, and never runs code from a "
            "model folder. A model that needs such code must be exported to ONNX."
        )
    if warnings is not None:
        warnings += found.warnings
    else:
        for text in found.warnings:
            log.warning("%s", text)
    if found.problems:
        raise SettingsError(found.problems)
    return Settings(**values)


def parse(row: Setting, raw: Any) -> Any:
    """`raw` as the row's type. Raises `ValueError` with a sentence that never repeats a secret."""
    if raw is None or (isinstance(raw, str) and raw.strip() == "" and row.type != "str"):
        if row.optional or raw is not None:
            return row.default
        raise ValueError(f"must be {row.rule}, not null")
    if row.optional and row.type == "float" and isinstance(raw, str) and raw.strip().lower() == "none":
        return None
    try:
        value = _convert(row.type, raw)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"must be {row.rule}, not {_quoted(row, raw)}") from None
    if row.choices:
        value = str(value).lower()
        if value not in row.choices:
            raise ValueError(f"must be {row.rule}, not {_quoted(row, raw)}")
    if (row.minimum is not None and value < row.minimum) or (row.maximum is not None and value > row.maximum):
        raise ValueError(f"must be {row.rule}, not {_quoted(row, raw)}")
    if row.optional and value == "":
        return None
    return value


def _convert(kind: str, raw: Any) -> Any:
    if kind == "bool":
        if isinstance(raw, bool):
            return raw
        text = str(raw).strip().lower()
        if text in _TRUE | _FALSE:
            return text in _TRUE
        raise ValueError
    if kind == "list":
        parts = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(parts, (list, tuple)) or not all(isinstance(one, str) for one in parts):
            raise TypeError
        return tuple(one.strip() for one in parts if one.strip())
    if isinstance(raw, (bool, list, dict)):
        raise TypeError
    if kind == "int":
        if isinstance(raw, float) and not raw.is_integer():
            raise ValueError
        return int(raw.strip()) if isinstance(raw, str) else int(raw)
    if kind == "float":
        value = float(raw)
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError
        return value
    return Path(str(raw)) if kind == "path" else str(raw)


def _quoted(row: Setting, raw: Any) -> str:
    return STARS if row.secret else repr(raw)[:80]


def _from_file(path: Path, found: _Sources) -> None:
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        found.problems.append(f"{path}: the settings file cannot be read ({reason})")
        return
    try:
        yaml = path.suffix.lower() in (".yaml", ".yml")
        tree = _parse_yaml(text) if yaml else tomllib.loads(text)
    except ImportError:
        found.problems.append(f"{path}: reading YAML needs the package pyyaml; install it or write the file as TOML")
        return
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        found.problems.append(f"{path} is not valid {'YAML' if yaml else 'TOML'}: {said}")
        return
    if not isinstance(tree, dict):
        found.problems.append(f"{path}: the file must be a table of settings")
        return
    by_attribute = {row.attribute: row for row in SETTINGS}
    for name, value in _flatten(tree):
        row = BY_NAME.get(name) or by_attribute.get(name.replace(".", "_").replace("-", "_"))
        if row is None:
            found.problems.append(f"{path}: unknown setting {name}{_near(name, list(BY_NAME))}")
        else:
            found.values[row.name] = (f"{path}: {row.name}", value)


def _parse_yaml(text: str) -> Any:
    yaml = importlib.import_module("yaml")
    return yaml.safe_load(text) or {}


def _flatten(tree: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, name + ".")
        else:
            yield name, value


def _from_environment(env: Mapping[str, str], found: _Sources) -> None:
    variables = {row.variable: row for row in SETTINGS}
    aliases = {alias: row for row in SETTINGS for alias in row.aliases}
    for table in (aliases, variables):  # the second wins
        for variable, row in table.items():
            if variable not in env:
                continue
            raw = env[variable]
            if row.type == "int" and _SERVICE_LINK.match(raw):
                found.warnings.append(f"{variable}={raw} looks like a service link set by Kubernetes; it is ignored.")
                continue
            if variable.startswith(ALIAS_PREFIX) and raw.strip() == "":
                continue
            found.values[row.name] = (variable, raw)
    if retries := env.get(ALIAS_PREFIX + "WORKER_MAX_RETRIES", "").strip():
        # Theirs counts retries, ours counts runs.
        origin = ALIAS_PREFIX + "WORKER_MAX_RETRIES"
        if not retries.isdigit():
            found.problems.append(f"{origin}: must be a whole number of at least 0, not {retries[:80]!r}")
        elif not found.values.get("operations.max_attempts", ("",))[0].startswith(ENV_PREFIX):
            found.values["operations.max_attempts"] = (origin, int(retries) + 1)
    for variable in sorted(env):
        if variable.startswith(ENV_PREFIX) and variable not in variables and variable not in OWN_VARIABLES:
            if _SERVICE_LINK.match(env[variable]) or "_SERVICE_" in variable:
                continue
            found.warnings.append(f"Unknown variable {variable} is ignored{_near(variable, list(variables))}")


def _from_flags(flags: Mapping[str, Any], found: _Sources, by_set: bool = False) -> None:
    by_attribute = {row.attribute: row for row in SETTINGS}
    for name, value in flags.items():
        if value is None:
            continue
        row = BY_NAME.get(name) or by_attribute.get(name.replace("-", "_"))
        if row is None and by_set:
            near = _near(name.replace("-", "_"), [*BY_NAME, *by_attribute])
            found.problems.append(f"--set {name}: there is no such setting{near}")
            continue
        if row is None:
            found.problems.append(f"--{name}: unknown flag{_near(name, list(by_attribute))}")
            continue
        origin = f"--set {name}" if by_set else f"--{row.attribute.replace('_', '-')}"
        found.values[row.name] = (origin, value)


def _near(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def is_loopback(host: str) -> bool:
    """Whether listening on `host` reaches this machine alone."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    # An IPv4 address as a socket of both families shows it.
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _cross_checks(settings: Settings) -> list[str]:
    problems = []
    if not is_loopback(settings.host) and settings.api_key is None and not settings.allow_insecure_bind:
        problems.append(
            f"host: {settings.host} is reachable from other machines and no api_key is set; set RECALLD_API_KEY, "
            "listen on 127.0.0.1, or set RECALLD_ALLOW_INSECURE_BIND=true if all who reach the port may read and write"
        )
    if settings.base_path and not re.fullmatch(r"(/[\w.~-]+)+", settings.base_path.rstrip("/")):
        problems.append(f"base_path: must be like /memory, not {settings.base_path!r}")
    if not settings.recall_budget_fixed_low <= settings.recall_budget_fixed_mid <= settings.recall_budget_fixed_high:
        problems.append("recall.budget_fixed_low, _mid and _high must not fall")
    if settings.recall_budget_min > settings.recall_budget_max:
        problems.append("recall.budget_min must not be above recall.budget_max")
    for origin in settings.allowed_origins:
        if not re.fullmatch(r"https?://[^/\s]+", origin):
            problems.append(f"allowed_origins: must be like https://app.example, not {origin!r}")
    return problems + settings_llm.problems(settings)


def shown(settings: Settings) -> dict[str, Any]:
    """Every setting by its dotted name, ready to print: paths as text, secrets as stars."""
    answer: dict[str, Any] = {}
    for row in SETTINGS:
        value = getattr(settings, row.attribute)
        if row.secret and value is not None:
            value = STARS
        answer[row.name] = str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
    return answer


def docs_page() -> str:
    """`docs/settings.md`, made from the table; a test compares the file with this."""
    lines = [
        "# Settings",
        "",
        "Made from `daemon/settings_table.py` by `python -m recalld.daemon.settings_docs`; do not edit by hand.",
        "",
        "A setting is read from, in falling order of strength: a flag of `recalld serve`, its `RECALLD_*` variable,",
        "the `HINDSIGHT_API_*` variable of the same meaning, the file given with `--config` (TOML, or YAML where",
        "pyyaml is installed), and its default. In a file `embedding.model` is `model` in the table `[embedding]`. All",
        "problems are reported together at start. Secrets print as stars. `reload` marks what a running daemon takes",
        "over without a restart.",
        "",
        "| setting | variable | type | default | meaning | also |",
        "|---|---|---|---|---|---|",
    ]
    for row in SETTINGS:
        default = (
            ""
            if row.default is None or row.default == ()
            else str(row.default).lower()
            if row.type == "bool"
            else row.default
        )
        marks = "".join(f" ({word})" for word, on in (("secret", row.secret), ("reload", row.reload)) if on)
        cells = (
            f"`{row.name}`",
            f"`{row.variable}`",
            row.rule + (", or unset" if row.optional else ""),
            f"`{default}`" if default != "" else "",
            row.help + marks,
            ", ".join(f"`{alias}`" for alias in row.aliases),
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
