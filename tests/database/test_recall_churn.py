"""Ten rounds in which a tenth of the records goes and others come, and maintenance after them."""

from __future__ import annotations

import random

import pytest

import clusters
from memory import Memory
from memory.maintenance.indexes import build_index, list_indexes, maintain
from memory.stores.postgres import PostgresStore, meaning
from rawsql import Connection
from servers import Database

ROWS, ROUNDS, DIMENSIONS = 6_000, 10, 16
SHARES = {"acme": 0.8, "other": 0.2}


async def recall(memory: Memory, superuser: Connection, tenant: str) -> float:
    """The share of the ten nearest that recall finds through the index, over twenty questions."""
    chance = random.Random(3)  # noqa: S311
    rows = await superuser.fetch(
        "select embedding from memory.records where tenant_key = $1"
        " order by md5(record_id::text) limit 20",
        tenant,
    )
    right = 0
    for row in rows:
        vector = clusters.shifted(row["embedding"], chance)
        answer = await memory.recall(tenant, embedding=vector, limit=10)
        assert "through an HNSW index" in answer.note
        assert len(answer.hits) == 10
        nearest = await superuser.fetch(
            "with c as materialized (select record_id, embedding::vector <=> $2::real[]::vector"
            " as distance from memory.records where tenant_key = $1)"
            " select record_id from c order by distance limit 10",
            tenant,
            vector,
        )
        expected = {found["record_id"] for found in nearest}
        right += len(expected & {hit.record.record_id for hit in answer.hits})
    return right / 10 / len(rows)


async def test_recall_outlives_churn_and_maintenance_takes_the_dead_out(
    database: Database, superuser: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "FEW", 100)
    await clusters.prepare(superuser, DIMENSIONS)
    await clusters.fill(superuser, SHARES, ROWS)
    built = await build_index(database.owner_url, dimensions=DIMENSIONS)
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        for number in range(1, ROUNDS + 1):
            await superuser.execute("set session_replication_role = replica")
            await superuser.execute(
                "delete from memory.records where record_id in (select record_id from"
                f" memory.records order by md5(record_id::text || {number}) limit {ROWS // 10})"
            )
            await clusters.fill(superuser, SHARES, ROWS // 10, first=ROWS * number)
        # What this session has counted must not arrive after the vacuum.
        await superuser.execute("select pg_stat_force_next_flush()")
        (churned,) = await list_indexes(database.owner_url)
        assert churned.bytes > built.bytes * 1.4
        for tenant in SHARES:
            assert await recall(memory, superuser, tenant) >= 0.95
        done = await maintain(database.owner_url)
        assert done.indexes == (built.name,)
        (maintained,) = await list_indexes(database.owner_url)
        assert maintained.valid
        assert maintained.bytes < churned.bytes / 1.4
        for tenant in SHARES:
            assert await recall(memory, superuser, tenant) >= 0.95
    dead = await superuser.fetchval(
        "select n_dead_tup from pg_stat_user_tables where relname = 'records'"
    )
    assert dead < ROWS / 20
