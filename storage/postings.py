"""Posting blocks: which units hold a term, and how often, as raw little-endian arrays.

A term's list is some sealed blocks and a small tail, all of one layout:

    count u32 | uids u32[count], ascending | frequencies u8[count]

so one `frombuffer` an array reads a block without a copy. An append touches the tail alone (at most `TAIL_ENTRIES`,
about 1 kB); a tail that overflows is merged into the last block until that holds `BLOCK_ENTRIES` (40 kB), then a new
one begins. So a block is rewritten once for 200 single appends, and at most about 40 times before it is full.

Everything here is pure; the keys and the transaction are the caller's. uids grow in a bank, so lists stay sorted by
appending. Deleted units stay in a block until it is rewritten with `without`; readers mask them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recalld.storage.errors import StoreCorrupt

TAIL_ENTRIES = 200
BLOCK_ENTRIES = 8192

Buffer: TypeAlias = bytes | bytearray | memoryview
Uids: TypeAlias = NDArray[np.uint32]
Freqs: TypeAlias = NDArray[np.uint8]

_U32 = Struct("<I")
_UID = np.dtype("<u4")
EMPTY = _U32.pack(0)


class PostingUpdate(NamedTuple):
    """What an append writes: the last block anew (or None: leave it), blocks after it, and always the tail."""

    replace_last: bytes | None
    new_blocks: list[bytes]
    tail: bytes


def encode(uids: NDArray[Any], freqs: NDArray[Any]) -> bytes:
    """One block of `uids` (ascending) and `freqs` (above 255 they count as 255). ValueError when the lengths differ."""
    return _block(len(uids), *_raw(uids, freqs))


def count(block: Buffer) -> int:
    """Entries in a block, without decoding it."""
    entries: int = _U32.unpack_from(block)[0] if len(block) >= 4 else -1
    if len(block) != 4 + 5 * entries:
        raise StoreCorrupt("A posting block has the wrong length; rebuild the keyword index with `recalld compact`.")
    return entries


def decode(block: Buffer) -> tuple[Uids, Freqs]:
    """(uids, frequencies) as read-only views of `block`; they live no longer than its transaction."""
    n = count(block)
    uids: Uids = np.frombuffer(block, _UID, n, 4)
    freqs: Freqs = np.frombuffer(block, np.uint8, n, 4 + 4 * n)
    if not isinstance(block, bytes):
        uids.flags.writeable = freqs.flags.writeable = False
    return uids, freqs


def join(blocks: Iterable[Buffer]) -> tuple[Uids, Freqs]:
    """(uids, frequencies) of a whole list, blocks in order and the tail last, as copies that outlive the read."""
    parts = [decode(block) for block in blocks]
    if not parts:
        return np.empty(0, np.uint32), np.empty(0, np.uint8)
    return np.concatenate([uids for uids, _ in parts]), np.concatenate([freqs for _, freqs in parts])


def plan_append(
    last_block: Buffer | None, tail: Buffer | None, uids: NDArray[Any], freqs: NDArray[Any]
) -> PostingUpdate:
    """What to write so that the list also holds `uids`.

    `last_block` is the newest block of the term (None: it has none), `tail` its tail (None: none yet). It is asked for
    only when the tail overflows, so `tail_fits` tells whether it must be read at all. ValueError when `uids` are not
    strictly ascending or do not lie above those stored: that list would no longer be sorted.
    """
    added_uids, added_freqs = _raw(uids, freqs)
    new_uids, new_freqs, held = _concat(tail, added_uids, added_freqs)
    _check_order(uids, tail if tail is not None and count(tail) else last_block)
    if held <= TAIL_ENTRIES:
        return PostingUpdate(None, [], _block(held, new_uids, new_freqs))
    replace_last = None
    if last_block is not None and (room := BLOCK_ENTRIES - count(last_block)) > 0:
        take = min(room, held)
        merged_uids, merged_freqs, total = _concat(last_block, new_uids[: 4 * take], new_freqs[:take])
        replace_last = _block(total, merged_uids, merged_freqs)
        new_uids, new_freqs, held = new_uids[4 * take :], new_freqs[take:], held - take
    blocks, rest = [], EMPTY
    for part in _cut(new_uids, new_freqs, held):
        if count(part) <= TAIL_ENTRIES:
            rest = part  # only the last piece can be this short
        else:
            blocks.append(part)
    return PostingUpdate(replace_last, blocks, rest)


def tail_fits(tail: Buffer | None, added: int) -> bool:
    """True when `added` entries go into the tail alone, so that no block need be read."""
    return (count(tail) if tail is not None else 0) + added <= TAIL_ENTRIES


def append(tail: Buffer | None, uids: NDArray[Any], freqs: NDArray[Any]) -> tuple[bytes | None, bytes]:
    """(one new block or None, tail): the append of a term that has no open block.

    ValueError when the result needs several blocks; `plan_append` is the general form.
    """
    update = plan_append(None, tail, uids, freqs)
    if len(update.new_blocks) > 1:
        raise ValueError("The entries need several blocks; use plan_append.")
    return (update.new_blocks[0] if update.new_blocks else None), update.tail


def without(block: Buffer, dead: NDArray[np.bool_]) -> bytes | None:
    """`block` without the uids marked in `dead` (indexed by uid, shorter is allowed), or None when nothing changes."""
    uids, freqs = decode(block)
    known = uids[: int(np.searchsorted(uids, len(dead)))]
    gone = np.zeros(len(uids), np.bool_)
    gone[: len(known)] = dead[known]
    if not gone.any():
        return None
    return encode(uids[~gone], freqs[~gone])


def build(uids: NDArray[Any], freqs: NDArray[Any]) -> PostingUpdate:
    """The blocks and tail of a whole list at once (a rebuild); `replace_last` is None."""
    return plan_append(None, None, uids, freqs)


def _raw(uids: NDArray[Any], freqs: NDArray[Any]) -> tuple[bytes, bytes]:
    if len(uids) != len(freqs):
        raise ValueError("uids and freqs differ in length.")
    if freqs.dtype != np.uint8:
        freqs = np.minimum(freqs, 255).astype(np.uint8)
    return (uids if uids.dtype == _UID else uids.astype(_UID)).tobytes(), freqs.tobytes()


def _block(n: int, uids: bytes, freqs: bytes) -> bytes:
    return b"".join((_U32.pack(n), uids, freqs))


def _concat(block: Buffer | None, uids: bytes, freqs: bytes) -> tuple[bytes, bytes, int]:
    """`block` and more entries as raw (uids, freqs, count); bytes only, since most appends hold one entry."""
    if block is None:
        return uids, freqs, len(freqs)
    n = count(block)
    middle = 4 + 4 * n
    return b"".join((block[4:middle], uids)), b"".join((block[middle:], freqs)), n + len(freqs)


def _cut(uids: bytes, freqs: bytes, n: int) -> Iterator[bytes]:
    for start in range(0, n, BLOCK_ENTRIES):
        part = freqs[start : start + BLOCK_ENTRIES]
        yield _block(len(part), uids[4 * start : 4 * (start + BLOCK_ENTRIES)], part)


def _check_order(uids: NDArray[Any], before: Buffer | None) -> None:
    """Refuse uids that would break the order of the list whose newest entries stand in `before`."""
    if not len(uids):
        return
    if len(uids) > 1 and bool((uids[1:] <= uids[:-1]).any()):
        raise ValueError("uids of a posting list must be strictly ascending.")
    if before is not None and (n := count(before)) and _U32.unpack_from(before, 4 * n)[0] >= int(uids[0]):
        raise ValueError("uids appended to a posting list must lie above those it holds.")
