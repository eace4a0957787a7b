"""Export in PostgreSQL: past damage, without a connection in hand, and through its indexes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import ExportedRecord, Memory, TenantMemory, fingerprint
from memory.ids import uuid7
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection, acting
from servers import Database
from stores import record_statements


@pytest.fixture
async def engine(shared: Database) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(normalize_url(shared.app_url), pool_size=1, max_overflow=0)
    yield engine
    await engine.dispose()


@pytest.fixture
def home(engine: AsyncEngine, tenant: str) -> TenantMemory:
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    return memory.for_tenant(tenant)


async def records(tenant: TenantMemory, **options: Any) -> list[ExportedRecord]:
    stream = tenant.export(subject_key="ann", **options)
    return [entry async for entry in stream if isinstance(entry, ExportedRecord)]


async def as_superuser(inspector: Connection, *statements: str) -> None:
    """Run statements past every trigger and foreign key, as damage does."""
    async with inspector.transaction():
        await inspector.execute("set local session_replication_role = replica")
        keeping = {"record_subjects": "link_kept", "provenance": "edge_kept"}
        for table, name in keeping.items():
            await inspector.execute(f"alter table memory.{table} disable trigger {name}")
        for statement in statements:
            await inspector.execute(statement)
        for table, name in keeping.items():
            await inspector.execute(f"alter table memory.{table} enable always trigger {name}")


@pytest.mark.parametrize(
    "damage",
    [
        # The link that the derived record should have inherited is gone: the edge reaches it.
        "delete from memory.record_subjects where tenant_key = '{t}' and record_id = '{made}'",
        # The edge is gone: the link reaches it.
        "delete from memory.provenance where tenant_key = '{t}' and derived_id = '{made}'",
        # A link that leads to no record counts in the closure, and has nothing to show.
        "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash,"
        " inherited) values ('{t}', '{none}', 'ann', '{hash}', true)",
    ],
)
async def test_an_export_of_damaged_rows_is_still_what_an_erasure_takes(
    home: TenantMemory, inspector: Connection, tenant: str, damage: str
) -> None:
    told = (await home.remember(text="x", subject_keys="ann")).record
    made = (await home.derive(kind="summary", text="y", sources=told)).record
    await home.remember(text="z", subject_keys="bob")
    none = uuid7()
    hash_ = home.subject_fingerprint(subject_key="ann")
    await as_superuser(
        inspector, damage.format(t=tenant, made=made.record_id, none=none, hash=hash_)
    )
    found = {entry.record_id for entry in await records(home)}
    assert found == {told.record_id, made.record_id}
    rehearsal = await home.forget(subject_key="ann", dry_run=True)
    reached = found | ({none} if "insert" in damage else set())
    assert rehearsal.closure == fingerprint.closure_digest(reached)


async def test_no_connection_is_held_between_steps_or_after_an_early_end(
    home: TenantMemory, engine: AsyncEngine
) -> None:
    pool: Any = engine.pool
    await home.remember_many(items=[{"text": "x", "subject_keys": "ann"} for _ in range(120)])
    stream = home.export(subject_key="ann")
    await anext(stream)
    assert pool.checkedout() == 0
    # The one connection of the pool is free for others while the stream is open.
    await home.remember(text="meanwhile", subject_keys="bob")
    await stream.aclose()
    assert pool.checkedout() == 0
    assert len(await records(home)) == 120


async def test_every_export_statement_is_right_as_the_application_under_any_tenant_before(
    home: TenantMemory, client: Connection, tenant: str, neighbour: str
) -> None:
    await home.remember(text="x", subject_keys="ann", embedding=[1.0, 2.0])
    await home.memory.remember(neighbour, text="other", subject_keys="ann")
    await home.memory.get(neighbour, record_id=uuid7())
    assert [entry.text for entry in await records(home)] == ["x"]
    async with acting(client, neighbour):
        assert await client.fetchval("select count(*) from memory.records") == 1


async def test_statements_grow_with_pages_and_not_with_records(
    shared: Database, tenant: str
) -> None:
    engine = create_async_engine(normalize_url(shared.app_url))
    sent = record_statements(engine)
    home = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper").for_tenant(tenant)
    await home.remember_many(items=[{"text": "x", "subject_keys": "ann"} for _ in range(90)])
    counts = []
    for more in (0, 10, 110):
        for _ in range(more):
            await home.remember(text="x", subject_keys="ann")
        before = len(sent)
        await records(home)
        counts.append(len(sent) - before)
    # The ids, the pages of a hundred, and one look for tombstones and for decisions.
    assert counts == [4, 4, 6]
    await engine.dispose()
