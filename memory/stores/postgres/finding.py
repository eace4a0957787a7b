"""How the PostgreSQL store searches, and what it says about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from memory import ranking
from memory.database import Access
from memory.ports import Found, Query
from memory.repositories import searches, words
from memory.repositories.measuring import Measured
from memory.repositories.scoring import KEYWORD, LEXICAL
from memory.stores.postgres import hybrid, meaning

__all__ = ["find"]

_WAYS: Final = {
    "whole": "the newest records with every term",
    "bounded": "no common term that is left unread could change the answer",
    "exhaustive": "every record with any term was scored",
}


async def find(access: Access, tenant_key: str, query: Query, measured: Measured | None) -> Found:
    """Search by the query's strategy; one that compares vectors needs what was measured."""
    if measured is not None:
        by_vector = hybrid.find if query.strategy == "hybrid" else meaning.find
        found = await by_vector(access, tenant_key, query, measured)
    elif query.strategy == "recent":
        hits = await access.single(lambda c: searches.by_time(c, tenant_key, query))
        found = Found(hits=tuple(hits), exact=True, how=ranking.HOW[query.strategy])
    else:
        found = await _by_words(access, tenant_key, query)
    if found.hits:
        return found
    holds_any = await access.single(lambda c: searches.holds_any(c, tenant_key))
    return replace(found, holds_any=holds_any)


async def _by_words(access: Access, tenant_key: str, query: Query) -> Found:
    scoring = LEXICAL if query.strategy == "lexical" else KEYWORD
    hits, way = await access.single(lambda c: words.by_words(c, tenant_key, query, scoring))
    how = "; ".join(filter(None, (ranking.HOW[query.strategy], _WAYS.get(way))))
    return Found(hits=tuple(hits), exact=True, how=how)
