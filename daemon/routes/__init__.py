"""The route table: every operation of the daemon, special paths before greedy ones."""

from __future__ import annotations

from recalld.daemon.routes import (
    admin,
    banks,
    curation,
    documents,
    entities,
    files,
    memories,
    models,
    operations,
    system,
)
from recalld.daemon.routing import Route

ROUTES: tuple[Route, ...] = (
    *system.ROUTES,
    *admin.ROUTES,
    *entities.ROUTES,
    *models.ROUTES,
    *curation.ROUTES,
    *memories.ROUTES,
    *banks.ROUTES,
    *documents.ROUTES,
    *operations.ROUTES,
    *files.ROUTES,
)

__all__ = ["ROUTES"]
