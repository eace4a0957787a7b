"""This library, as its README shows it: redaction, evidence and row level security included."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import memory
from memory import Item, Memory, PostgresStore, TenantMemory
from memory.maintenance import indexes
from servers import Database
from telling import DIMENSIONS, TENANT, RefusedError, Told, Vectors

__all__ = ["Ours", "open_ours"]


class Ours:
    name = "ours"
    version = memory.__version__
    cascades = True
    files: Sequence[Path] = ()

    def __init__(self, service: TenantMemory, vectors: Vectors) -> None:
        self._service = service
        self._vectors = vectors
        self._ids: dict[str, UUID] = {}
        # Of what was told: a text that was masked is stored as another.
        self._told: dict[UUID, str] = {}

    async def remember(self, told: Told) -> None:
        vector = self._vectors.of(told.text)
        done = await self._service.remember(
            text=told.text, subject_keys=told.person, embedding=vector
        )
        self._keep(told, done.record.record_id)

    async def ingest(self, many: Sequence[Told]) -> None:
        items = [
            Item(text=t.text, subject_keys=t.person, embedding=self._vectors.of(t.text))
            for t in many
        ]
        done = await self._service.remember_many(items=items)
        for told, one in zip(many, done, strict=True):
            self._keep(told, one.record.record_id)

    def _keep(self, told: Told, record_id: UUID) -> None:
        self._ids[told.text] = record_id
        self._told[record_id] = told.text

    async def recall(self, query: str, person: str | None, limit: int = 8) -> list[str]:
        vector = self._vectors.of(query)
        found = await self._service.recall(embedding=vector, subject_keys=person, limit=limit)
        return [self._told[hit.record.record_id] for hit in found.hits]

    async def summarise(self, text: str, of: Sequence[Told], person: str | None) -> None:
        # Whom it is about follows from the sources.
        try:
            await self._service.derive(
                kind="summary" if person else "digest",
                text=text,
                sources=[self._ids[told.text] for told in of],
                embedding=self._vectors.of(text),
            )
        except memory.UnknownSourceError:
            refused = True
        else:
            refused = False
        if refused:
            raise RefusedError

    async def erase(self, person: str) -> None:
        await self._service.forget(subject_key=person)

    async def evidence(self, tokens: Sequence[str]) -> tuple[int, int]:
        stones = await self._service.erasure_history(limit=1_000)
        written = [json.dumps(stone.to_dict()) for stone in stones]
        return len(stones), sum(any(token in one for token in tokens) for one in written)


@contextlib.asynccontextmanager
async def open_ours(database: Database, vectors: Vectors, *, hnsw: bool) -> AsyncIterator[Ours]:
    if hnsw:
        # The others have theirs from the first row on; so have we.
        await indexes.build_index(database.owner_url, dimensions=DIMENSIONS)
    store = PostgresStore(database.app_url)
    async with Memory(store, subject_pepper="bench") as service:
        yield Ours(service.for_tenant(TENANT), vectors)
