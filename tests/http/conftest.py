"""Fixtures of the HTTP tests."""

from __future__ import annotations

from http_edge import edge, start

__all__ = ["edge", "start"]
