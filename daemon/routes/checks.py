"""Checks that several routes share."""

from __future__ import annotations

from recalld.daemon.exchange import Call
from recalld.daemon.wire.requests import require_uuid
from recalld.storage.errors import BadRequest


def uuid_parameter(call: Call, name: str) -> str:
    """A path parameter that must be a UUID, in canonical form. Raises `BadRequest`."""
    try:
        return require_uuid(call.path[name], name)
    except ValueError as error:
        raise BadRequest(f"{error}.") from None
