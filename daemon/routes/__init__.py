"""The route table: every operation of the daemon, special paths before greedy ones."""

from __future__ import annotations

from recalld.daemon.routes import (
    admin,
    banks,
    curation,
    directives,
    documents,
    entities,
    files,
    knowledge_base,
    memories,
    mental_models,
    models,
    observations,
    operations,
    opinions,
    reflect,
    system,
)
from recalld.daemon.routing import Route

ROUTES: tuple[Route, ...] = (
    *system.ROUTES,
    *admin.ROUTES,
    *entities.ROUTES,
    *models.ROUTES,
    *directives.ROUTES,
    *mental_models.ROUTES,
    *knowledge_base.ROUTES,
    *opinions.ROUTES,
    *curation.ROUTES,
    *observations.ROUTES,
    *memories.ROUTES,
    *reflect.ROUTES,
    *banks.ROUTES,
    *documents.ROUTES,
    *operations.ROUTES,
    *files.ROUTES,
)

__all__ = ["ROUTES"]
