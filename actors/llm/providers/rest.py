"""JSON over HTTP for the APIs that are one POST each, on the HTTP library the daemon has anyway."""

from __future__ import annotations

import ipaddress
import json
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from recalld.actors.llm.faults import CONNECTION, GARBLED, TIMEOUT, Fault, from_body

_LARGEST_ANSWER = 32 << 20


def is_loopback_url(url: str) -> bool:
    """Whether a URL stays on this machine; a proxy from the environment must not see such a call."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def quiet(*names: str) -> None:
    """Keep libraries from logging addresses at `info` and whole prompts at `debug`."""
    for name in names:
        logging.getLogger(name).setLevel(logging.WARNING)


class Rest:
    """One base URL with its headers. Texts go out as they are, in UTF-8, never as escapes."""

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        self._base, self._headers = base_url.rstrip("/"), dict(headers)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The decoded answer. Raises `Fault` for everything else."""
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        return await self._ask("POST", path, data, seconds)

    async def get(self, path: str, seconds: float) -> dict[str, Any]:
        return await self._ask("GET", path, None, seconds)

    async def _ask(self, method: str, path: str, data: bytes | None, seconds: float) -> dict[str, Any]:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=not is_loopback_url(self._base))
        headers = {"content-type": "application/json", **self._headers}
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            # A redirect would carry the key to wherever it points.
            async with self._session.request(
                method, self._base + path, data=data, headers=headers, timeout=limit, allow_redirects=False
            ) as answer:
                raw = await _read(answer.content)
                status, told = answer.status, dict(answer.headers)
        except TimeoutError:
            raise Fault(None, TIMEOUT, f"no answer within {seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Fault(None, CONNECTION, type(error).__name__) from None
        return decoded(status, raw, told)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _read(stream: aiohttp.StreamReader) -> bytes:
    parts, length = [], 0
    async for part in stream.iter_chunked(1 << 16):
        length += len(part)
        if length > _LARGEST_ANSWER:
            raise Fault(None, GARBLED, "the answer is larger than 32 MB")
        parts.append(part)
    return b"".join(parts)


def decoded(status: int, raw: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    """The JSON object of a response, or its `Fault`."""
    text = raw.decode("utf-8", "replace")
    body: Any
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = text[:2000]
    if status >= 300:
        raise from_body(status, body, headers)
    if not isinstance(body, dict):
        # A page of some proxy with status 200, or half an answer.
        raise Fault(None, GARBLED, "the answer is not a JSON object")
    return body
