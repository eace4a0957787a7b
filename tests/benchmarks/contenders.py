"""Who takes part in the comparison.

Libraries of other projects come with the extra ``benchmarks``; what is not installed is named as
absent.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from contender_langgraph import open_langgraph
from contender_mem0 import open_mem0
from contender_ours import open_ours
from contender_raw import open_raw
from servers import Database, Postgres
from telling import Contender, Vectors

__all__ = ["absent", "opened", "present"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Who may take part: the module that has to be there, and how it is opened."""

    name: str
    needs: str
    open: Callable[..., AbstractAsyncContextManager[Contender]]


ENTRIES: Final = (
    Entry(name="ours", needs="memory", open=open_ours),
    Entry(name="raw", needs="asyncpg", open=open_raw),
    Entry(name="langgraph", needs="langgraph.store.postgres", open=open_langgraph),
    Entry(name="mem0", needs="mem0", open=open_mem0),
)


def present() -> list[str]:
    return [entry.name for entry in ENTRIES if _installed(entry.needs)]


def absent() -> list[str]:
    return [entry.name for entry in ENTRIES if not _installed(entry.needs)]


@contextlib.asynccontextmanager
async def opened(
    server: Postgres, name: str, vectors: Vectors, *, hnsw: bool = True
) -> AsyncIterator[tuple[Contender, Database]]:
    """Open a contender on a database of its own, which is dropped again."""
    [entry] = [entry for entry in ENTRIES if entry.name == name]
    made = server.migrated() if name == "ours" else server.empty()
    with made as database:
        async with entry.open(database, vectors, hnsw=hnsw) as contender:
            yield contender, database


def _installed(module: str) -> bool:
    parts = module.split(".")
    # From the top, as find_spec imports the parents of what it is asked for.
    names = (".".join(parts[: n + 1]) for n in range(len(parts)))
    return all(importlib.util.find_spec(name) is not None for name in names)
