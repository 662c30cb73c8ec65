"""Requests about one document go on in the order in which they came."""

from __future__ import annotations

import asyncio

import pytest

from recalld.daemon.turns import Turns


async def test_a_short_preparation_does_not_overtake_a_long_one_of_its_key() -> None:
    turns, ended = Turns(), list[str]()
    gate = asyncio.Event()

    async def one(name: str, key: str, slow: bool) -> None:
        async def ready() -> None:
            if slow:
                await gate.wait()

        await turns.through([key], ready())
        ended.append(name)

    tasks = [asyncio.create_task(one(*given)) for given in (("a", "k", True), ("b", "k", False), ("c", "other", False))]
    await asyncio.sleep(0.01)
    assert ended == ["c"]
    gate.set()
    await asyncio.gather(*tasks)
    assert ended == ["c", "a", "b"]
    assert not turns._last


async def test_who_gives_up_in_line_does_not_let_the_next_one_pass() -> None:
    turns, ended = Turns(), list[str]()
    gate = asyncio.Event()

    async def fails() -> None:
        raise ValueError

    async def one(name: str) -> None:
        await turns.through(["k"], gate.wait() if name == "a" else asyncio.sleep(0))
        ended.append(name)

    first = asyncio.create_task(one("a"))
    await asyncio.sleep(0)
    with pytest.raises(ValueError):
        await turns.through(["k"], fails())
    last = asyncio.create_task(one("c"))
    await asyncio.sleep(0.01)
    assert ended == []
    gate.set()
    await asyncio.gather(first, last)
    assert ended == ["a", "c"]
    assert not turns._last
