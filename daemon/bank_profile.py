"""A bank's profile: how the fields of a bank request become overrides, and how overrides become a profile."""

from __future__ import annotations

from typing import Any

from recalld.daemon.bank_settings import validate_updates

TRAITS = ("skepticism", "literalism", "empathy")
_MISSIONS = ("reflect_mission", "mission", "background")


def split_fields(fields: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """(name, overrides) of a bank request's given fields.

    `mission` and `background` are older names of `reflect_mission`; single `disposition_*` fields win over the
    `disposition` object. Raises `BadRequest` for a value its setting does not take.
    """
    rest = dict(fields)
    name = rest.pop("name", None)
    disposition = rest.pop("disposition", None) or {}
    for trait in TRAITS:
        if disposition.get(trait) is not None:
            rest.setdefault(f"disposition_{trait}", disposition[trait])
    missions = [rest.pop(key, None) for key in _MISSIONS]
    mission = next((text for text in missions if text is not None), None)
    if mission is not None:
        rest["reflect_mission"] = mission
    return name, validate_updates({key: value for key, value in rest.items() if value is not None})


def profile(bank_id: str, name: str | None, overrides: dict[str, Any]) -> dict[str, Any]:
    """The contract's BankProfileResponse; `name` and `mission` are never null."""
    mission = overrides.get("reflect_mission") or ""
    return {
        "bank_id": bank_id,
        "name": name or bank_id,
        "disposition": {trait: overrides.get(f"disposition_{trait}") or 3 for trait in TRAITS},
        "mission": mission,
        "background": mission,
    }
