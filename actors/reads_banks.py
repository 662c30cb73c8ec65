"""Reads of banks: the list, one bank's settings, and exact counts. None of them opens a bank's caches."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.storage import codec, consolidation, keys
from recalld.storage.apply import read_counters
from recalld.storage.columns import Columns, OpenColumns
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import BankNotFound
from recalld.storage.groups import as_roots, read_parents, roots_of
from recalld.storage.isotime import iso
from recalld.storage.partition import Partition
from recalld.storage.records import (
    FAILED,
    LINK_NAMES,
    NETWORK_NAMES,
    OBSERVATION,
    PENDING,
    UNKNOWN,
    BankCounters,
    BankRecord,
    OperationRecord,
)

_EDGE_HEAD = struct.Struct("<HH")
_DAY_US = 24 * 3600 * 1_000_000
DISPOSITION = ("skepticism", "literalism", "empathy")


def list_banks(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    """Every bank of the tenant in this partition, in no order."""
    return [_list_item(record, counters) for record, counters in partition.banks() if record.tenant == tenant]


def _list_item(record: BankRecord, counters: BankCounters) -> dict[str, Any]:
    overrides = record.overrides
    return {
        "bank_id": record.bank_id,
        "name": record.name,
        "disposition": {trait: overrides.get(f"disposition_{trait}", 3) for trait in DISPOSITION},
        "mission": overrides.get("reflect_mission"),
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "fact_count": sum(counters.live),
        "last_document_at": iso(counters.last_document_at),
        "last_write_at": iso(counters.last_write_at),
        "display_alias": None,
    }


def bank(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """A bank's name, overrides and dates. Raises `BankNotFound`."""
    found = partition.bank(tenant, bank_id)
    if found is None:
        raise BankNotFound.named(bank_id)
    record, _ = found
    return {
        "bank_id": record.bank_id,
        "name": record.name,
        "overrides": dict(record.overrides),
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
    }


def bank_stats(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Counts of a bank at this moment. Raises `BankNotFound`.

    Links are those of live units, counted under the network of the unit they start from:

    * `semantic`, `caused_by` and the like: stored links; one between two units stands once, under the older unit;
    * `entity`: one for each entity a unit names (pairs of units that share one are found when they are asked for);
    * `temporal`: neighbours in time no more than 24 hours apart, each unit with the next.
    """
    with partition.peek(tenant, bank_id) as (txn, number):
        counters = read_counters(txn, number)
        columns = OpenColumns.load(txn, number).view()
        links = _links(txn, number, columns)
        pending, failed = consolidation.counts(txn, number, counters)
        states: dict[str, int] = {}
        for _, value in txn.scan(keys.table(number, keys.OPERATION)):
            status = codec.decode(OperationRecord, value).status
            states[status] = states.get(status, 0) + 1
    by_type: dict[str, int] = {}
    by_network: dict[str, int] = {}
    for network, kinds in links.items():
        by_network[network] = sum(kinds.values())
        for kind, count in kinds.items():
            by_type[kind] = by_type.get(kind, 0) + count
    return {
        "bank_id": bank_id,
        "total_nodes": sum(counters.live),
        "total_links": sum(by_type.values()),
        "total_documents": counters.documents,
        "nodes_by_fact_type": {name: n for name, n in zip(NETWORK_NAMES, counters.live, strict=True) if n},
        "links_by_link_type": by_type,
        "links_by_fact_type": by_network,
        "links_breakdown": links,
        "pending_operations": states.get(PENDING, 0),
        "failed_operations": states.get(FAILED, 0),
        "operations_by_status": states,
        "last_consolidated_at": iso(counters.last_consolidated_at),
        "last_memory_write_at": iso(counters.last_write_at),
        "pending_consolidation": pending,
        "failed_consolidation": failed,
        "total_observations": counters.live[OBSERVATION],
    }


def _links(txn: ReadTxn, bank: int, columns: Columns) -> dict[str, dict[str, int]]:
    """{network: {kind of link: count}}, kinds and networks that have none left out."""
    names = ["entity", "temporal", *LINK_NAMES.values()]
    counts = np.zeros((len(NETWORK_NAMES), len(names)), np.int64)
    uids, entities, ends, kinds = _edge_table(txn, bank)
    live = columns.live[uids]
    counts[:, 0] = np.bincount(columns.network[uids[live]], entities[live], len(NETWORK_NAMES))
    owners = np.repeat(uids, [len(end) // 4 for end in ends])
    others = np.frombuffer(b"".join(ends), "<u4").astype(np.int64)
    codes = np.frombuffer(b"".join(kinds), np.uint8)
    between = columns.live[owners] & columns.live[others]
    for column, code in enumerate(LINK_NAMES, start=2):
        # Either end may have dropped a link for heavier ones, so a pair counts if one of them still holds it.
        mine = between & (codes == code)
        low, high = np.minimum(owners[mine], others[mine]), np.maximum(owners[mine], others[mine])
        pairs = np.unique(low * len(columns.live) + high) // max(1, len(columns.live))
        counts[:, column] = _by_network(columns, pairs)
    counts[:, 1] = _by_network(columns, _close_in_time(columns))
    return {
        network: {name: int(n) for name, n in zip(names, row, strict=True) if n}
        for network, row in zip(NETWORK_NAMES, counts, strict=True)
        if row.any()
    }


def _by_network(columns: Columns, uids: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(columns.network[uids], minlength=len(NETWORK_NAMES))


def _edge_table(txn: ReadTxn, bank: int) -> tuple[NDArray[np.int64], NDArray[np.int64], list[bytes], list[bytes]]:
    """Each unit's uid, number of entities, linked uids (u32) and kinds (u8), cut out without decoding the weights."""
    uids, entities, ends, kinds = [], [], [], []
    roots = roots_of(read_parents(txn, bank))
    for key, value in txn.scan(keys.table(bank, keys.EDGES)):
        named, linked = _EDGE_HEAD.unpack_from(value)
        uids.append(keys.trailing_u32(key))
        start = 4 + 4 * named
        # Names of one entity count once.
        wholes = as_roots(roots, np.frombuffer(value, "<u4", named, 4).tolist()) if roots else ()
        entities.append(len(wholes) if roots else named)
        ends.append(bytes(value[start : start + 4 * linked]))
        kinds.append(bytes(value[start + 8 * linked : start + 9 * linked]))
    return np.array(uids, np.int64), np.array(entities, np.int64), ends, kinds


def _close_in_time(columns: Columns) -> NDArray[np.int64]:
    """Live units whose next one in time was mentioned within a day."""
    dated = np.flatnonzero(columns.live & (columns.mentioned != UNKNOWN))
    ordered: NDArray[np.int64] = dated[np.argsort(columns.mentioned[dated], kind="stable")]
    return ordered[:-1][np.diff(columns.mentioned[ordered]) <= _DAY_US]
