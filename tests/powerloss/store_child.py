"""The store at work under the recorder: `python store_child.py HOME LOG durable|careless WRITES`.

Four threads write units, each with a word of its own; the map is so small that it grows; the file is compacted twice.
Every acknowledgement is appended to the recorder's log, in its format, kind `A`.
"""

from __future__ import annotations

import os
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from store_units import NOW, Ids, add, prepared

from recalld.storage.home import Home
from recalld.storage.partition import StoreSettings
from recalld.storage.upkeep import compact

HEAD = struct.Struct("=cBQQIII")


def main() -> None:
    home_folder, log_path, kind, writes = sys.argv[1:]
    log = os.open(log_path, os.O_WRONLY | os.O_APPEND)

    def ack(name: str) -> None:
        data = name.encode()
        os.write(log, HEAD.pack(b"A", 0, 0, 0, len(data), 0, 0) + data)

    home = Home.create(Path(home_folder), NOW, partitions=2)
    ack("home")
    settings = StoreSettings(map_size=128 << 10, reserve=0, durable=kind == "durable")
    partition = home.open_partition(0, settings, lambda: NOW, Ids())

    def write(number: int) -> None:
        text = f"markerword{number}x of the item and its companions"
        partition.write(
            "t",
            "b",
            lambda applier: add(applier, [prepared(text, f"u{number}")], document_id=f"d{number}"),
            request_id=f"r{number}",
            create=True,
        )
        ack(f"item {number}")

    half = int(writes) // 2
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(half)))
        compact(partition)
        rest = pool.map(write, range(half, int(writes)))
        compact(partition)
        list(rest)
    partition.close()


main()
