"""Listings and single reads of a shard, by name. Each is a function (partition, tenant, bank id, params) -> plain data.

Answers are in the wire's shape: every declared field present, instants as ISO text. A read that needs no resident
columns opens no caches, so that looking at a bank does not load it. `list_banks`, `find_chunk` and `find_operation`
are asked of every partition, with an empty bank id, and answer a list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recalld.actors.consolidate.reads import CONSOLIDATION_READS
from recalld.actors.opinions.reads import belief_pairs, get_opinion, list_opinions, opinion_history
from recalld.actors.reads_audit import audit_stats, get_audit, list_audit
from recalld.actors.reads_banks import bank, bank_stats, list_banks
from recalld.actors.reads_documents import find_chunk, get_document, list_chunks, list_documents
from recalld.actors.reads_entities import entity_changes, entity_names, get_entity, list_entities, list_tags
from recalld.actors.reads_files import file_keys, stored_file
from recalld.actors.reads_graph import get_entity_graph, get_graph
from recalld.actors.reads_ledger import call_stats, day_sums, known_readings, list_calls
from recalld.actors.reads_memories import get_memory, list_memories, memory_history
from recalld.actors.reads_operations import find_operation, get_operation, list_operations, operation_goes_on, receipt
from recalld.actors.reads_pages import PAGE_READS
from recalld.actors.reads_source import document_source
from recalld.actors.reads_texts import stored_texts
from recalld.storage.partition import Partition

Params = dict[str, Any]

READS: dict[str, Callable[[Partition, str, str, Params], Any]] = {
    "list_banks": list_banks,
    "bank": bank,
    "bank_stats": bank_stats,
    "list_memories": list_memories,
    "get_memory": get_memory,
    "memory_history": memory_history,
    "list_opinions": list_opinions,
    "get_opinion": get_opinion,
    "opinion_history": opinion_history,
    "belief_pairs": belief_pairs,
    "list_audit": list_audit,
    "get_audit": get_audit,
    "audit_stats": audit_stats,
    "list_documents": list_documents,
    "get_document": get_document,
    "list_chunks": list_chunks,
    "find_chunk": find_chunk,
    "list_tags": list_tags,
    "list_entities": list_entities,
    "get_entity": get_entity,
    "entity_names": entity_names,
    "entity_changes": entity_changes,
    "entity_graph": get_entity_graph,
    "graph": get_graph,
    "list_operations": list_operations,
    "get_operation": get_operation,
    "find_operation": find_operation,
    "operation_goes_on": operation_goes_on,
    "receipt": receipt,
    "stored_texts": stored_texts,
    "file_keys": file_keys,
    "stored_file": stored_file,
    "document_source": document_source,
    "list_calls": list_calls,
    "call_stats": call_stats,
    "day_sums": day_sums,
    "known_readings": known_readings,
    **CONSOLIDATION_READS,
    **PAGE_READS,
}
