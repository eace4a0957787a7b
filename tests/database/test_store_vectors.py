"""No vector outlives its record: by raw SQL, past the store and its policies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from memory import HashingEmbedder, Memory
from memory.stores.postgres import PostgresStore
from rawsql import Connection
from servers import Database
from stores import image

VECTORS = """
    select r.text, r.embedding, r.embedding_model, r.embedding_dims from memory.records as r
    where r.tenant_key = $1 and r.embedding is not null order by r.text
"""


@pytest.fixture
async def store(shared: Database) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(shared.app_url)
    yield store
    await store.close()


async def vectors(inspector: Connection, tenant: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await inspector.fetch(VECTORS, tenant)]


async def test_chunks_that_went_leave_no_vector_and_a_reused_id_gets_its_own(
    store: PostgresStore, inspector: Connection, tenant: str, neighbour: str
) -> None:
    memory = Memory(store, subject_pepper="pepper")
    for place in (tenant, neighbour):
        chunks = [
            await memory.remember(
                place, text=f"chunk {n}", subject_keys="ann", embedding=[1.0, float(n)]
            )
            for n in range(3)
        ]
    before = await image(inspector, neighbour)
    found = await memory.records(tenant)
    for record in found:
        await memory.forget_record(tenant, record_id=record)
    assert await vectors(inspector, tenant) == []
    await memory.remember(
        tenant, text="whole", subject_keys="ann", embedding=[0.0, 5.0], record_id=found[0].record_id
    )
    assert await vectors(inspector, tenant) == [("whole", [0.0, 5.0], None, 2)]
    assert len(chunks) == len(await vectors(inspector, neighbour))
    assert await image(inspector, neighbour) == before


class Named(HashingEmbedder):
    def __init__(self, dimensions: int, model: str) -> None:
        super().__init__(dimensions)
        self.model = model


async def test_vectors_of_every_model_and_version_go_with_their_person(
    store: PostgresStore, inspector: Connection, tenant: str
) -> None:
    for dimensions, model in ((8, "old"), (8, "other"), (16, "new")):
        memory = Memory(store, embedder=Named(dimensions, model), subject_pepper="pepper")
        for person in ("ann", "bob"):
            text = f"{person} by {model}"
            told = await memory.remember(tenant, text=text, subject_keys=person)
            await memory.supersede(tenant, record_id=told.record, text=f"{text} again")
    assert len(await vectors(inspector, tenant)) == 12
    kept = [row for row in await vectors(inspector, tenant) if row[0].startswith("bob")]
    assert (await memory.forget(tenant, subject_key="ann")).counts.records == 6
    assert await vectors(inspector, tenant) == kept
