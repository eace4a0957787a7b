"""How the PostgreSQL store searches, and what it says about it."""

from __future__ import annotations

from dataclasses import replace

from memory import ranking
from memory.database import Access
from memory.ports import Found, Query
from memory.repositories import searches
from memory.repositories.measuring import Measured
from memory.stores.postgres import meaning

__all__ = ["find"]


async def find(access: Access, tenant_key: str, query: Query, measured: Measured | None) -> Found:
    """Search by the query's strategy; a search by vector needs what was measured."""
    if measured is not None:
        found = await meaning.find(access, tenant_key, query, measured)
    else:
        search = searches.by_words if query.strategy == "lexical" else searches.by_time
        hits = await access.single(lambda c: search(c, tenant_key, query))
        found = Found(hits=tuple(hits), exact=True, how=ranking.HOW[query.strategy])
    if found.hits:
        return found
    holds_any = await access.single(lambda c: searches.holds_any(c, tenant_key))
    return replace(found, holds_any=holds_any)
