"""The message that changes entities by hand: gateway to shard. Instants are µs, UTC."""

from __future__ import annotations

from dataclasses import dataclass

from recalld.actors.wirecodec import message


@message(1)
@dataclass(frozen=True, slots=True)
class ChangeEntities:
    """Merge or split entities by hand, or take that back: `action` is `merge`, `split` or `undo`.

    A merge makes `entity_id` a part of `into`. A split takes the name `alias`, or the units `unit_ids`, out of
    `entity_id`; the units' new entity is `new_id`, called `name`. Answer: {"change_id", "entity_ids"}. Raises
    `NotFound`, and `Conflict` where the change is not possible.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    action: str
    change_id: str
    entity_id: str = ""
    into: str = ""
    alias: str = ""
    unit_ids: tuple[str, ...] = ()
    name: str = ""
    new_id: str = ""
