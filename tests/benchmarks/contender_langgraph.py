"""LangGraph's AsyncPostgresStore: a namespace per tenant and person, the text field embedded."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg

from servers import Database
from telling import DIMENSIONS, TENANT, Told, Vectors

__all__ = ["LangGraph", "open_langgraph"]

_PAGE = 1_000


class LangGraph:
    name = "langgraph"
    version = ""
    cascades = False
    files: Sequence[Path] = ()

    def __init__(self, store: Any, put: Any) -> None:
        self._store = store
        self._put = put
        self.version = metadata.version("langgraph-checkpoint-postgres")

    async def remember(self, told: Told) -> None:
        await self._store.aput((TENANT, told.person), str(uuid4()), {"text": told.text})

    async def ingest(self, many: Sequence[Told]) -> None:
        await self._store.abatch(
            [self._put((TENANT, t.person), str(uuid4()), {"text": t.text}) for t in many]
        )

    async def recall(self, query: str, person: str | None, limit: int = 8) -> list[str]:
        namespace = (TENANT,) if person is None else (TENANT, person)
        items = await self._store.asearch(namespace, query=query, limit=limit)
        return [item.value["text"] for item in items]

    async def summarise(self, text: str, of: Sequence[Told], person: str | None) -> None:
        del of
        namespace = (TENANT, person or "digests")
        await self._store.aput(namespace, str(uuid4()), {"text": text})

    async def erase(self, person: str) -> None:
        """List the namespace and delete each item, a page in one batch: there is no other way."""
        while items := await self._store.asearch((TENANT, person), limit=_PAGE):
            await self._store.abatch([self._put(i.namespace, i.key, None) for i in items])

    async def evidence(self, tokens: Sequence[str]) -> tuple[int, int]:
        del tokens
        return 0, 0


@contextlib.asynccontextmanager
async def open_langgraph(
    database: Database, vectors: Vectors, *, hnsw: bool
) -> AsyncIterator[LangGraph]:
    from langgraph.store.base import PutOp  # noqa: PLC0415 - optional
    from langgraph.store.postgres import AsyncPostgresStore  # noqa: PLC0415 - optional

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vectors.of(text) for text in texts]

    index = {"dims": DIMENSIONS, "embed": embed, "fields": ["text"]}
    async with AsyncPostgresStore.from_conn_string(database.owner_url, index=index) as store:
        await store.setup()
        if not hnsw:
            # Its setup refuses the "flat" that its types allow.
            connection = await asyncpg.connect(database.owner_url)
            await connection.execute("drop index store_vectors_embedding_idx")
            await connection.close()
        yield LangGraph(store, PutOp)
