"""The Python SDK of recalld: `Client` for ordinary code, `AsyncClient` for asyncio. Needs aiohttp alone."""

from __future__ import annotations

from .aio import AsyncClient
from .errors import ApiError, RecalldError, Unreachable
from .sync import Client

__all__ = ["ApiError", "AsyncClient", "Client", "RecalldError", "Unreachable"]
