"""HNSW indexes are made while the store is in use, resumed, and keep no copy of a vector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

import clusters
from memory import (
    ConflictError,
    InstallError,
    InvalidInputError,
    Memory,
    PostgresStore,
    verify_install,
)
from memory.maintenance.indexes import build_index, drop_index, list_indexes, maintain
from memory.urls import normalize_url
from rawsql import Connection, waits
from servers import Database, Postgres

ROWS = 2_000


@pytest.fixture(params=["server", "postgres16"])
def place(request: pytest.FixtureRequest) -> Iterator[Database]:
    server: Postgres = request.getfixturevalue(request.param)
    with server.migrated() as database:
        yield database


@pytest.fixture
async def inspector(place: Database) -> AsyncIterator[Connection]:
    """A superuser in the database, which holds vectors of 16 values of two tenants."""
    connection: Connection = await asyncpg.connect(place.superuser_url)
    await clusters.prepare(connection, 16)
    await clusters.fill(connection, {"acme": 0.5, "other": 0.5}, ROWS)
    yield connection
    await connection.close()


async def copies(inspector: Connection) -> list[str]:
    """The indexes of records of which the server keeps statistics."""
    rows = await inspector.fetch(
        "select s.starelid::regclass::text as name from pg_statistic as s"
        " join pg_index as i on i.indexrelid = s.starelid"
        " where i.indrelid = 'memory.records'::regclass"
    )
    return [row["name"] for row in rows]


async def target(inspector: Connection, name: str) -> Any:
    return await inspector.fetchval(
        "select attstattarget from pg_attribute where attrelid = ('memory.' || $1)::regclass", name
    )


async def offences(place: Database) -> dict[str, str]:
    checks = await verify_install(place.superuser_url)
    expected = {"users_bound_by_rls"}  # the role with BYPASSRLS, which other tests need
    return {
        check.property: check.detail
        for check in checks
        if not check.ok and check.property not in expected
    }


async def begun(place: Database) -> None:
    """Return once a build has made the index, which is not valid yet."""
    for _ in range(600):
        if await list_indexes(place.owner_url):
            return
        await asyncio.sleep(0.05)
    pytest.fail("no index appeared")


async def test_an_index_is_built_listed_kept_and_dropped(
    place: Database, inspector: Connection
) -> None:
    assert await list_indexes(place.owner_url) == ()
    built = await build_index(place.owner_url, dimensions=16, m=8, ef_construction=32)
    assert (built.name, built.dimensions, built.halfvec) == ("records_hnsw_16", 16, False)
    assert (built.m, built.ef_construction, built.valid) == (8, 32, True)
    assert built.bytes > ROWS * 16 * 4
    number = await inspector.fetchval("select 'memory.records_hnsw_16'::regclass::oid")
    half = await build_index(place.owner_url, dimensions=16, halfvec=True, memory="64 MB")
    assert (half.name, half.halfvec, half.m) == ("records_hnsw_16_half", True, 16)
    assert await build_index(place.owner_url, dimensions=16) == built
    assert await inspector.fetchval("select 'memory.records_hnsw_16'::regclass::oid") == number
    assert await list_indexes(place.owner_url) == (built, half)
    memory = Memory(PostgresStore(place.app_url), subject_pepper="pepper")
    assert (await memory.capabilities()).hnsw_dimensions == (16,)
    await memory.close()
    assert await offences(place) == {}
    place.alembic("check")
    assert await drop_index(place.owner_url, dimensions=16)
    assert not await drop_index(place.owner_url, dimensions=16)
    assert await list_indexes(place.owner_url) == (half,)


async def test_no_statistics_are_gathered_of_an_index_whatever_is_analysed(
    place: Database, inspector: Connection
) -> None:
    await build_index(place.owner_url, dimensions=16)
    await inspector.execute("analyze memory.records")
    assert await target(inspector, "records_hnsw_16") == 0
    assert await copies(inspector) == []
    await maintain(place.owner_url)
    await inspector.execute("analyze memory.records")
    assert await target(inspector, "records_hnsw_16") == 0
    assert await copies(inspector) == []
    assert await offences(place) == {}


async def test_an_analyze_that_waits_for_the_build_keeps_no_copy(
    place: Database, inspector: Connection
) -> None:
    writer: Connection = await asyncpg.connect(place.superuser_url)
    transaction = writer.transaction()
    await transaction.start()
    await writer.execute("update memory.records set held = held where record_id = record_id")
    building = asyncio.create_task(build_index(place.owner_url, dimensions=16))
    await begun(place)
    other: Connection = await asyncpg.connect(place.superuser_url)
    analysing = asyncio.create_task(other.execute("analyze memory.records"))
    await waits(analysing, inspector, other)
    await transaction.rollback()
    assert (await building).valid
    # The server may choose either of them for the victim of a deadlock; a build is tried again.
    (done,) = await asyncio.gather(analysing, return_exceptions=True)
    assert done == "ANALYZE" or isinstance(done, asyncpg.DeadlockDetectedError)
    await inspector.execute("analyze memory.records")
    assert await target(inspector, "records_hnsw_16") == 0
    assert await copies(inspector) == []
    await writer.close()
    await other.close()


async def make_by_hand(inspector: Connection) -> None:
    """Make an index as a tutorial would; the server then keeps statistics of it."""
    await inspector.execute(
        "create index records_hnsw_16 on memory.records using hnsw"
        " ((embedding::vector(16)) vector_cosine_ops) where embedding_dims = 16"
    )
    await inspector.execute("analyze memory.records")
    assert await copies(inspector) == ["memory.records_hnsw_16"]


async def test_maintenance_never_leaves_statistics_in_silence(
    place: Database, inspector: Connection
) -> None:
    await make_by_hand(inspector)
    if place.server.version >= 18:
        await maintain(place.owner_url)
    else:
        with pytest.raises(InstallError, match="records_hnsw_16"):
            await maintain(place.owner_url)
        await build_index(place.owner_url, dimensions=16)
    assert await copies(inspector) == []
    assert await offences(place) == {}


async def test_statistics_of_an_index_made_by_hand_are_cleared(
    place: Database, inspector: Connection
) -> None:
    await make_by_hand(inspector)
    assert "index_statistics_targets" in await offences(place)
    assert "no_statistics_of_content" in await offences(place)
    built = await build_index(place.owner_url, dimensions=16)
    assert built.valid
    assert await copies(inspector) == []
    await inspector.execute("analyze memory.records")
    assert await copies(inspector) == []
    assert await offences(place) == {}


async def test_what_an_interrupted_build_left_is_built_anew(
    place: Database, inspector: Connection
) -> None:
    # Its wait for this writer is where the build is interrupted.
    writer: Connection = await asyncpg.connect(place.superuser_url)
    transaction = writer.transaction()
    await transaction.start()
    await writer.execute("update memory.records set held = held where record_id = record_id")
    building = asyncio.create_task(build_index(place.owner_url, dimensions=16))
    await begun(place)
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    await transaction.rollback()
    await writer.close()
    (left,) = await list_indexes(place.owner_url)
    assert (left.name, left.valid) == ("records_hnsw_16", False)
    assert "records_hnsw_16" in (await offences(place))["indexes_valid"]
    async with asyncio.timeout(30):
        while True:
            try:
                built = await build_index(place.owner_url, dimensions=16)
                break
            except ConflictError:  # the cancelled session is still ending
                await asyncio.sleep(0.05)
    assert built.valid
    assert await list_indexes(place.owner_url) == (built,)
    assert await offences(place) == {}


async def test_a_second_builder_is_refused_while_the_first_goes_on(
    place: Database, inspector: Connection
) -> None:
    writer: Connection = await asyncpg.connect(place.superuser_url)
    transaction = writer.transaction()
    await transaction.start()
    await writer.execute("update memory.records set held = held where record_id = record_id")
    building = asyncio.create_task(build_index(place.owner_url, dimensions=16))
    await begun(place)
    for call in (
        build_index(place.owner_url, dimensions=16),
        drop_index(place.owner_url, dimensions=16),
        maintain(place.owner_url),
    ):
        with pytest.raises(ConflictError, match="another session"):
            await call
    # Writers and readers go on beside it.
    memory = Memory(PostgresStore(place.app_url), subject_pepper="pepper")
    await memory.remember("acme", text="meanwhile", subject_keys="ann", embedding=[1.0] * 16)
    assert (await memory.recall("acme", embedding=[1.0] * 16)).exact
    await memory.close()
    await transaction.rollback()
    await writer.close()
    assert (await building).valid


async def test_progress_is_told_and_the_session_put_back(
    place: Database, inspector: Connection
) -> None:
    seen: list[tuple[str, int, int]] = []
    engine = create_async_engine(normalize_url(place.owner_url), pool_size=2, max_overflow=0)
    await clusters.fill(inspector, {"acme": 1.0}, 8_000, first=10_000)
    await build_index(
        engine, dimensions=16, memory="99MB", progress=lambda *told: seen.append(told)
    )
    assert any(phase.startswith("building index") for phase, _, _ in seen)
    assert all(0 <= done <= total for _, done, total in seen if total)
    done = await maintain(engine, progress=lambda *told: seen.append(told))
    assert done.indexes == ("records_hnsw_16",)
    assert done.reindex_seconds > 0
    assert done.vacuum_seconds > 0
    assert seen[-1] == ("vacuuming", 0, 0)
    for _ in range(2):
        async with engine.connect() as connection:
            memory = await connection.exec_driver_sql("show maintenance_work_mem")
            assert memory.scalar() != "99MB"
    assert await inspector.fetchval("select count(*) from pg_locks where locktype='advisory'") == 0
    await engine.dispose()


async def test_an_error_of_what_is_told_reaches_the_caller(
    place: Database, inspector: Connection
) -> None:
    def broken(step: str, done: int, total: int) -> None:
        raise ZeroDivisionError

    await clusters.fill(inspector, {"acme": 1.0}, 8_000, first=10_000)
    with pytest.raises(ZeroDivisionError):
        await build_index(place.owner_url, dimensions=16, progress=broken)
    assert [index.valid for index in await list_indexes(place.owner_url)] == [True]


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("dimensions", {"dimensions": 0}),
        ("dimensions", {"dimensions": 2_001}),
        ("dimensions", {"dimensions": 4_001, "halfvec": True}),
        ("dimensions", {"dimensions": "16"}),
        ("m", {"dimensions": 3, "m": 1}),
        ("ef_construction", {"dimensions": 3, "m": 20, "ef_construction": 39}),
        ("memory", {"dimensions": 3, "memory": "1GB'; drop"}),
    ],
)
async def test_options_that_pgvector_refuses_are_named(
    database: Database, field: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await build_index(database.owner_url, **options)
    assert refused.value.field == field
    assert await list_indexes(database.owner_url) == ()
    assert (await build_index(database.owner_url, dimensions=3)).valid


async def test_the_application_may_not_build_or_drop(database: Database) -> None:
    with pytest.raises(InstallError):
        await build_index(database.app_url, dimensions=3)
    await build_index(database.owner_url, dimensions=3)
    with pytest.raises(InstallError):
        await drop_index(database.app_url, dimensions=3)
    assert len(await list_indexes(database.app_url)) == 1


async def test_without_pgvector_the_error_says_what_is_missing(postgres15: Postgres) -> None:
    with postgres15.migrated() as database:
        with pytest.raises(InstallError, match=r"pgvector 0\.8"):
            await build_index(database.owner_url, dimensions=3)
        assert await list_indexes(database.owner_url) == ()


async def test_pgvector_in_a_schema_of_its_own_serves(
    database: Database, superuser: Connection
) -> None:
    await superuser.execute(
        'create schema "Extra s"; alter extension vector set schema "Extra s";'
        ' grant usage on schema "Extra s" to public'
    )
    await superuser.execute(
        "set session_replication_role = replica;"
        " insert into memory.records (tenant_key, record_id, text, embedding)"
        " select 'acme', gen_random_uuid(), 'x', array[n, 1, 2]::real[]"
        " from generate_series(1, 50) as n"
    )
    built = await build_index(database.owner_url, dimensions=3)
    assert await list_indexes(database.owner_url) == (built,)
    half = await build_index(database.owner_url, dimensions=3, halfvec=True)
    assert await list_indexes(database.owner_url) == (built, half)
    assert await offences(database) == {}
