"""The threads a shard works in: a pool for each kind of work, and one that loads banks for all of them.

No thread of a pool loads a bank or waits for one that is being loaded, so a cold bank keeps only those waiting that
ask for it, and slow listings keep neither recalls nor retains from starting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from recalld.storage.errors import BankCold, BankNotFound, Unavailable
from recalld.storage.open_bank import OpenBank
from recalld.storage.partition import Partition

T = TypeVar("T")

RECALL, PLAN, READ = "recall", "plan", "read"
LOADERS = 4
ATTEMPTS = 5
LOAD_SECONDS = 20.0


class BankThreads:
    """Pools of `threads` each. One event loop calls `run`."""

    def __init__(self, threads: int) -> None:
        self._pools = {kind: ThreadPoolExecutor(threads, thread_name_prefix=kind) for kind in (RECALL, PLAN, READ)}
        self._loaders = ThreadPoolExecutor(LOADERS, thread_name_prefix="load")
        self._loads: dict[tuple[Partition, str, str], asyncio.Future[OpenBank | None]] = {}

    async def run(self, kind: str, partition: Partition, tenant: str, bank_id: str, work: Callable[[], T]) -> T:
        """What `work` returns, in a thread of `kind`; it begins again when it asked for a bank that had to be loaded.

        Raises what `work` or the load raises, and `Unavailable` when the load takes too long: it goes on meanwhile.
        """
        held: list[OpenBank | None] = []  # what was loaded stays open until the work is done

        def attempt() -> T:
            with partition.open_banks_only():
                return work()

        for _ in range(ATTEMPTS):
            try:
                return await asyncio.get_running_loop().run_in_executor(self._pools[kind], attempt)
            except BankCold:
                held.append(await self._loaded(partition, tenant, bank_id))
        raise Unavailable("The bank could not be kept open; try again.")

    async def _loaded(self, partition: Partition, tenant: str, bank_id: str) -> OpenBank | None:
        key = (partition, tenant, bank_id)
        load = self._loads.get(key)
        if load is None:

            def prepare() -> OpenBank | None:
                try:
                    return partition.prepare(tenant, bank_id)
                except BankNotFound:  # deleted meanwhile: the work finds that out in its own words
                    return None

            load = self._loads[key] = asyncio.get_running_loop().run_in_executor(self._loaders, prepare)
            load.add_done_callback(lambda done: self._ended(key, done))
        try:
            return await asyncio.wait_for(asyncio.shield(load), LOAD_SECONDS)
        except TimeoutError:
            raise Unavailable("The bank is still being loaded; try again.") from None

    def _ended(self, key: tuple[Partition, str, str], load: asyncio.Future[OpenBank | None]) -> None:
        self._loads.pop(key, None)
        if not load.cancelled():
            load.exception()  # whoever still waits is told; nobody has to

    def shutdown(self) -> None:
        """End when what runs has ended; what waits is cancelled."""
        for pool in (*self._pools.values(), self._loaders):
            pool.shutdown(wait=True, cancel_futures=True)
