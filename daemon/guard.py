"""Who may ask: checks of Host, Origin and key, made before a request is read.

A web page the user happens to open can send requests to 127.0.0.1. It cannot forge `Host` (a rebound DNS name shows
there) nor leave out `Origin` on a request that changes something, so both are checked against what is known.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping

from recalld.daemon.settings import is_loopback
from recalld.daemon.settings_table import Settings
from recalld.storage.errors import Forbidden, Unauthorized

_WILDCARDS = {"0.0.0.0", "::", ""}


class Guard:
    """The rules of one daemon, made from its settings."""

    def __init__(self, settings: Settings) -> None:
        self._hosts = {host.lower() for host in settings.allowed_hosts}
        self._any_host = "*" in self._hosts
        self._any_address = settings.host in _WILDCARDS
        if not self._any_address:
            self._hosts.add(settings.host.lower().strip("[]"))
        self._origins = {origin.rstrip("/").lower() for origin in settings.allowed_origins}
        self._key = settings.api_key.encode() if settings.api_key else None
        self._mcp_key = self._key
        if settings.mcp_auth_token:
            self._mcp_key = settings.mcp_auth_token.encode()
        elif settings.mcp_auth_disabled:
            self._mcp_key = None

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raises `Forbidden` when `Host` names neither this machine nor a configured host."""
        given = headers.get("Host")
        if given is None or self._any_host:
            return  # no browser leaves Host out
        name = host_name(given)
        if is_loopback(name) or name.endswith(".localhost") or name in self._hosts:
            return
        if self._any_address and _is_address(name):
            return  # an address cannot be rebound
        raise Forbidden(
            "The Host header names a host this daemon does not answer for; add it to the setting allowed_hosts "
            "(RECALLD_ALLOWED_HOSTS) if it is yours."
        )

    def check_origin(self, headers: Mapping[str, str]) -> str | None:
        """The origin to name in CORS headers, None for none. Raises `Forbidden` for a web page that is not known."""
        origin = headers.get("Origin")
        if origin is None:
            return None
        folded = origin.rstrip("/").lower()
        if folded in self._origins:
            return origin
        scheme, _, rest = folded.partition("://")
        if scheme in ("http", "https") and rest == headers.get("Host", "").lower():
            return None  # our own pages
        raise Forbidden(
            "Requests from web pages of this origin are refused; add it to the setting allowed_origins "
            "(RECALLD_ALLOWED_ORIGINS) if it is yours."
        )

    def check_key(self, headers: Mapping[str, str]) -> None:
        """Raises `Unauthorized` unless no key is needed or the right one came, with or without `Bearer`."""
        _check(headers, self._key)

    def check_mcp_key(self, headers: Mapping[str, str]) -> None:
        """The same for MCP, which may have a token of its own, or need none."""
        _check(headers, self._mcp_key)


def _check(headers: Mapping[str, str], key: bytes | None) -> None:
    if key is None:
        return
    given = headers.get("Authorization", "").strip()
    scheme, _, rest = given.partition(" ")
    if scheme.lower() == "bearer":
        given = rest.strip()
    if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), key):
        raise Unauthorized("Authentication failed: Invalid API key")


def host_name(header: str) -> str:
    """The name in a Host header, folded, without port, brackets and a final dot."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
