"""What is left after a loss of power, worked out from a log of writes, syncs and names.

The model is the strict one: a write is safe once a sync of its file that began after it has ended, or at once on a
synchronous descriptor; a name is safe once its folder was synced. Whatever is not safe may be there or not, in any
combination, and a write of several sectors may be there in part.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

HEAD = struct.Struct("=cBQQIII")
SECTOR = 512


@dataclass(frozen=True)
class Event:
    """One record: `kind` W T B E C K R U or A (an acknowledgement, named by `a`)."""

    kind: str
    synchronous: bool
    inode: int
    offset: int
    a: str
    b: str
    data: bytes


def read_log(path: Path) -> list[Event]:
    raw, at, events = path.read_bytes(), 0, []
    while at < len(raw):
        kind, flags, inode, offset, la, lb, ld = HEAD.unpack_from(raw, at)
        at += HEAD.size
        a, b = raw[at : at + la].decode(), raw[at + la : at + la + lb].decode()
        events.append(Event(kind.decode(), bool(flags), inode, offset, a, b, raw[at + la + lb : at + la + lb + ld]))
        at += la + lb + ld
    return events


def safe_from(events: Sequence[Event]) -> list[float]:
    """For each event the index of the event that makes it safe; infinite when nothing does.

    W and T are made safe by a sync of the inode, C, K, R and U by a sync of the folder.
    """
    safe = [float("inf")] * len(events)
    begun: dict[int, list[int]] = {}
    open_writes: dict[int, list[int]] = {}
    open_names: dict[str, list[int]] = {}
    covers: dict[int, tuple[list[int], list[int]]] = {}
    for index, event in enumerate(events):
        if event.kind in "WT":
            if event.synchronous:
                safe[index] = index
            else:
                open_writes.setdefault(event.inode, []).append(index)
        elif event.kind in "CKRU":
            open_names.setdefault(str(PurePosixPath(event.b or event.a).parent), []).append(index)
        elif event.kind == "B":
            begun.setdefault(event.inode, []).append(index)
            covers[index] = (list(open_writes.get(event.inode, ())), list(open_names.get(event.a, ())))
        elif event.kind == "E":
            # Which of several syncs of one file ended is unknown: taking the last that began claims the least.
            writes, names = covers[begun[event.inode].pop(0)]
            for covered in (*writes, *names):
                safe[covered] = min(safe[covered], index)
            open_writes[event.inode] = [i for i in open_writes.get(event.inode, ()) if safe[i] == float("inf")]
            open_names[event.a] = [i for i in open_names.get(event.a, ()) if safe[i] == float("inf")]
    return safe


def rebuild(
    events: Sequence[Event], safe: Sequence[float], cut: int, folder: Path, root: str, seed: int | None
) -> None:
    """Write what is left of `root` when power goes right after event `cut - 1` to `folder`.

    `seed` None keeps only what is safe; another keeps a random part of the rest too.
    """
    chance = random.Random(seed)
    keep_share = 0.0 if seed is None else chance.choice([0.1, 0.5, 0.9, 1.0])
    names: dict[str, int] = {}
    files: dict[int, bytearray] = {}
    for index, event in enumerate(events[:cut]):
        is_safe = safe[index] < cut
        if event.kind == "W":
            content = files.setdefault(event.inode, bytearray())
            if is_safe:
                _put(content, event.offset, event.data)
                continue
            for start in range(0, len(event.data), SECTOR):
                if chance.random() < keep_share:
                    _put(content, event.offset + start, event.data[start : start + SECTOR])
        elif event.kind == "T" and (is_safe or chance.random() < keep_share):
            content = files.setdefault(event.inode, bytearray())
            del content[event.offset :]
            content.extend(bytes(event.offset - len(content)))
        elif event.kind in "CKRU" and (is_safe or chance.random() < keep_share):
            if event.kind in "RU":
                names.pop(event.a, None)
            if event.kind != "U":
                names[event.b or event.a] = event.inode
    folders = {event.a for event in events if event.kind == "K"}
    for name, inode in names.items():
        inside = PurePosixPath(name).relative_to(root)
        # A file whose folder's name was lost is lost with it.
        if any(str(PurePosixPath(root) / parent) not in names for parent in list(inside.parents)[:-1]):
            continue
        target = folder / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in folders:
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(files.get(inode, b""))


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data
