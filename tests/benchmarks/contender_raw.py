"""The floor: one table by raw asyncpg, prepared statements, binary COPY, an HNSW index."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg

from baseline import DELETE, INSERT, SEARCH
from servers import Database
from telling import DIMENSIONS, TENANT, Told, Vectors

__all__ = ["Raw", "open_raw"]

TABLE = f"""
create schema raw;
create table raw.items (
    tenant_key text collate "C" not null,
    record_id uuid not null,
    text text not null,
    embedding vector({DIMENSIONS}) not null,
    subject_key text collate "C",
    primary key (tenant_key, record_id)
);
create index on raw.items (tenant_key, subject_key);
"""
HNSW = "create index on raw.items using hnsw (embedding vector_cosine_ops)"
ACROSS = f"""
select text from raw.items where tenant_key = $1
order by embedding <=> $2::real[]::vector({DIMENSIONS}) limit $3
"""
EXACT = {"enable_indexscan": "off", "enable_bitmapscan": "off"}


class Raw:
    """One connection; every call commits by itself."""

    name = "raw"
    version = metadata.version("asyncpg")
    cascades = False
    files: Sequence[Path] = ()

    def __init__(
        self,
        connection: asyncpg.Connection[Any],
        scanning: asyncpg.Connection[Any],
        vectors: Vectors,
    ) -> None:
        self.connection = connection
        self.scanning = scanning
        self._vectors = vectors

    async def exact(self, query: str, person: str | None, limit: int = 8) -> list[str]:
        """Return what a comparison with every row finds."""
        rows = await self.scanning.fetch(
            "select text from raw.items where tenant_key = $1 and ($2::text is null"
            " or subject_key = $2) order by embedding <=> $3::real[]::vector limit $4",
            TENANT,
            person,
            self._vectors.of(query),
            limit,
        )
        return [row["text"] for row in rows]

    async def prepare(self) -> None:
        insert = INSERT.replace("$4", "$4::real[]::vector")
        self._insert = await self.connection.prepare(insert)
        self._search = await self.connection.prepare(SEARCH)
        self._across = await self.connection.prepare(ACROSS)
        self._delete = await self.connection.prepare(DELETE)

    def _row(self, told: Told) -> tuple[Any, ...]:
        return TENANT, uuid4(), told.text, self._vectors.of(told.text), told.person

    async def remember(self, told: Told) -> None:
        await self._insert.fetch(*self._row(told))

    async def ingest(self, many: Sequence[Told]) -> None:
        await self._insert.executemany([self._row(told) for told in many])

    async def recall(self, query: str, person: str | None, limit: int = 8) -> list[str]:
        vector = self._vectors.of(query)
        if person is None:
            rows = await self._across.fetch(TENANT, vector, limit)
        else:
            rows = await self._search.fetch(TENANT, person, vector)
        return [row["text"] for row in rows]

    async def summarise(self, text: str, of: Sequence[Told], person: str | None) -> None:
        del of
        row = (TENANT, uuid4(), text, self._vectors.of(text), person)
        await self._insert.fetch(*row)

    async def erase(self, person: str) -> None:
        await self._delete.fetch(TENANT, person)

    async def evidence(self, tokens: Sequence[str]) -> tuple[int, int]:
        del tokens
        return 0, 0


@contextlib.asynccontextmanager
async def open_raw(database: Database, vectors: Vectors, *, hnsw: bool) -> AsyncIterator[Raw]:
    connection = await asyncpg.connect(database.owner_url)
    await connection.execute(TABLE)
    if hnsw:
        await connection.execute(HNSW)
    # A connection of its own, since a plan once cached would outlive the settings.
    scanning = await asyncpg.connect(database.owner_url, server_settings=EXACT)
    raw = Raw(connection, scanning, vectors)
    await raw.prepare()
    try:
        yield raw
    finally:
        await scanning.close()
        await connection.close()
