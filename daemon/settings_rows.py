"""What a row of the settings table is, and how one is declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

ENV_PREFIX = "RECALLD_"
ALIAS_PREFIX = "HINDSIGHT_API_"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: name, type, default, help, range, whether it is secret, what else it is called, whether it reloads."""

    name: str
    type: str
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    secret: bool = False
    aliases: tuple[str, ...] = ()
    optional: bool = False
    reload: bool = False
    engine: str = ""

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    @property
    def variable(self) -> str:
        return ENV_PREFIX + self.attribute.upper()

    @property
    def rule(self) -> str:
        """What a value must be, as the end of a sentence: `a whole number from 1 to 65535`."""
        words = {
            "int": "a whole number",
            "float": "a number",
            "bool": "true or false",
            "str": "text",
            "path": "a path",
            "list": "a list of texts, or texts separated by commas",
        }[self.type]
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.minimum is not None and self.maximum is not None:
            return f"{words} from {self.minimum:g} to {self.maximum:g}"
        if self.minimum is not None:
            return f"{words} of at least {self.minimum:g}"
        return words


TYPES = {"int": "int", "float": "float", "bool": "bool", "str": "str", "Path": "path", "tuple[str, ...]": "list"}


def row(
    default: T,
    help: str,
    *,
    name: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    secret: bool = False,
    alias: str | tuple[str, ...] = (),
    reload: bool = False,
    engine: str = "",
) -> T:
    """Declare a row. `name` is for a dotted name that breaks the rule of sections.

    `alias` goes without its prefix `HINDSIGHT_API_`, or whole where it has another one.
    """
    aliases = (alias,) if isinstance(alias, str) else alias
    metadata = {
        "help": help,
        "name": name,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "secret": secret,
        "aliases": tuple(one if one.startswith("HINDSIGHT_") else ALIAS_PREFIX + one for one in aliases),
        "reload": reload,
        "engine": engine,
    }
    # The dataclass machinery wants the field, the reader and the type checker the value it stands for.
    return field(default=default, metadata=metadata, repr=not secret)
