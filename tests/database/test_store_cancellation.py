"""A cancelled or failed call: all or nothing is stored, and the connection goes back clean."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from effort import tries
from memory import ConflictError, Memory, MemoryServiceError, Record
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from servers import Database
from stores import broken_rules, image

TRIES = tries(200)
LEFT = (
    "select coalesce(current_setting('app.current_tenant', true), ''),"
    " coalesce(current_setting('memory.erasure', true), ''),"
    " pg_current_xact_id_if_assigned() is null"
)


@pytest.fixture
async def engine(shared: Database) -> AsyncIterator[AsyncEngine]:
    """A pool of one: whatever a call leaves behind, the next borrower finds."""
    engine = create_async_engine(
        normalize_url(shared.app_url),
        pool_size=1,
        max_overflow=0,
        connect_args={"server_settings": {"application_name": "pool-of-one"}},
    )
    yield engine
    await engine.dispose()


@pytest.fixture
def memory(engine: AsyncEngine) -> Memory:
    return Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")


async def assert_clean(engine: AsyncEngine, inspector: Connection) -> None:
    """No transaction is open on the pooled connection, and no tenant is left in its session."""
    # Server-side first: borrowing might tidy up.
    states = await inspector.fetch(
        "select state from pg_stat_activity where application_name = 'pool-of-one'"
    )
    assert {row["state"] for row in states} <= {"idle"}
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    async with autocommit.connect() as connection:
        assert tuple((await connection.execute(text(LEFT))).one()) == ("", "", True)


async def settled(inspector: Connection) -> None:
    """A connection that a cancellation closed is gone from the server, and its work with it."""
    for _ in range(500):
        busy = await inspector.fetchval(
            "select count(*) from pg_stat_activity"
            " where application_name = 'pool-of-one' and state <> 'idle'"
        )
        if not busy:
            return
        await asyncio.sleep(0.002)
    raise AssertionError("a transaction stays open")


Act = Callable[[Memory, str, Record], Awaitable[Any]]
VERBS: dict[str, Act] = {
    "remember": lambda memory, tenant, old: memory.remember(
        tenant, text="tea", subject_keys=["ann", "bob"]
    ),
    "remember by key": lambda memory, tenant, old: memory.remember(
        tenant, text="tea", subject_keys="ann", record_key="drink"
    ),
    "remember_many": lambda memory, tenant, old: memory.remember_many(
        tenant, items=[{"text": f"tea {n}", "subject_keys": f"p{n}"} for n in range(1_001)]
    ),
    "derive": lambda memory, tenant, old: memory.derive(
        tenant, kind="summary", text="drinks", sources=old, artefacts=[("index", "one")]
    ),
    "supersede": lambda memory, tenant, old: memory.supersede(tenant, record_id=old, text="coffee"),
    "relate": lambda memory, tenant, old: memory.relate(tenant, record_id=old, subject_keys="cid"),
    "recall": lambda memory, tenant, old: memory.recall(tenant, text="tea", subject_keys="ann"),
    "forget": lambda memory, tenant, old: memory.forget(tenant, subject_key="ann"),
    "forget_record": lambda memory, tenant, old: memory.forget_record(tenant, record_id=old),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_cancelled_call_stores_all_or_nothing_and_leaves_the_connection_clean(
    memory: Memory, engine: AsyncEngine, inspector: Connection, tenant: str, verb: str
) -> None:
    chance = random.Random(verb)  # noqa: S311 - reproducible, not secret
    tries = TRIES // len(VERBS) + 1
    # About as long as the call takes here, whatever that is.
    longest = 0.004
    seen = set()
    for attempt in range(tries):
        place = f"{tenant}-{attempt}"
        old = (
            await memory.remember(place, text="tea", subject_keys="ann", record_key="drink")
        ).record
        made = await memory.derive(place, kind="summary", text="tea", sources=old)
        before = await image(inspector, place)
        call = asyncio.ensure_future(VERBS[verb](memory, place, old))
        await asyncio.sleep(chance.uniform(0, longest))
        call.cancel()
        (outcome,) = await asyncio.gather(call, return_exceptions=True)
        longest *= 1.4 if isinstance(outcome, asyncio.CancelledError) else 0.5
        await settled(inspector)
        await assert_clean(engine, inspector)
        after = await image(inspector, place)
        if isinstance(outcome, asyncio.CancelledError):
            if after != before:
                # Committed before the cancellation was noticed: then it is whole.
                assert_whole(verb, before, after)
            seen.add("cancelled")
        else:
            assert not isinstance(outcome, BaseException), outcome
            seen.add("done")
        assert await memory.get(place, record_id=made.record) is not None or "forget" in verb
    assert await broken_rules(inspector, tenant) == {}
    assert "cancelled" in seen


def assert_whole(verb: str, before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    """The effect of the verb is all there."""
    more = {table: len(after[table]) - len(before[table]) for table in after}
    expected = {
        "remember": {"records": 1, "record_subjects": 2, "postings": 1},
        "remember by key": {"records": 1, "record_subjects": 1, "postings": 1},
        "remember_many": {"records": 1_001, "record_subjects": 1_001, "postings": 2_002},
        "derive": {"records": 1, "record_subjects": 1, "provenance": 1, "artefacts": 1},
        "supersede": {"records": 1, "record_subjects": 1, "postings": 1},
        "relate": {"record_subjects": 2},
        "forget": {"records": -2, "record_subjects": -2, "provenance": -1, "tombstones": 1},
        "forget_record": {"records": -2, "record_subjects": -2, "provenance": -1, "tombstones": 1},
    }[verb]
    assert {table: more[table] for table in expected} == expected


async def test_a_cancelled_wait_for_a_lock_ends_on_the_server_too(
    memory: Memory, engine: AsyncEngine, inspector: Connection, connect: Any, tenant: str
) -> None:
    await memory.remember(tenant, text="tea", subject_keys="ann")
    other = await connect("superuser")
    async with other.transaction():
        await other.execute("select from memory.subjects where tenant_key = $1 for update", tenant)
        for verb in ("remember", "remember by key", "forget"):
            record = (await memory.records(tenant))[0]
            call = asyncio.ensure_future(VERBS[verb](memory, tenant, record))
            await asyncio.sleep(0.03)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await settled(inspector)
            await assert_clean(engine, inspector)
    assert len(await memory.records(tenant)) == 1


async def test_a_call_that_raised_leaves_the_connection_clean(
    memory: Memory, engine: AsyncEngine, inspector: Connection, tenant: str
) -> None:
    record = (await memory.remember(tenant, text="tea", subject_keys="ann")).record
    await memory.forget(tenant, subject_key="ann")
    for verb in ("derive", "supersede", "relate", "forget_record"):
        with pytest.raises(MemoryServiceError):
            await VERBS[verb](memory, tenant, record)
        await assert_clean(engine, inspector)
    with pytest.raises(ConflictError):
        await memory.forget(tenant, subject_key="ann", expect="0" * 64)
    await assert_clean(engine, inspector)


async def test_two_tenants_alternating_on_one_connection_never_read_each_other(
    memory: Memory, engine: AsyncEngine, tenant: str, neighbour: str
) -> None:
    for place in (tenant, neighbour):
        for n in range(3):
            await memory.remember(
                place, text=f"tea {n}", subject_keys="ann", embedding=[1.0, float(n)]
            )
    chance = random.Random(tenant)  # noqa: S311 - reproducible, not secret
    for n in range(500):
        place = (tenant, neighbour)[n % 2]
        kind = chance.randrange(6)
        if kind == 0:
            records = await memory.records(place)
        elif kind == 1:
            records = [hit.record for hit in (await memory.recall(place, text="tea")).hits]
        elif kind == 2:
            found = await memory.recall(place, embedding=[1.0, 0.5], subject_keys="ann")
            records = [hit.record for hit in found.hits]
        elif kind == 3:
            records = [hit.record for hit in (await memory.recall(place)).hits]
        elif kind == 4:
            told = await memory.remember(place, text="tea", subject_keys="bob")
            records = await memory.records(place)
            await memory.forget_record(place, record_id=told.record)
            records = [r for r in records if r.record_id != told.record.record_id]
        else:
            with pytest.raises(ConflictError):
                await memory.forget(place, subject_key="ann", expect="0" * 64)
            records = await memory.records(place)
        assert {record.tenant_key for record in records} == {place}
        assert len(records) == 3


async def test_a_write_for_one_tenant_never_lands_in_another(
    memory: Memory, inspector: Connection, tenant: str, neighbour: str
) -> None:
    await asyncio.gather(
        *(
            memory.remember((tenant, neighbour)[n % 2], text=f"tea {n % 2}", subject_keys="ann")
            for n in range(100)
        )
    )
    rows = await inspector.fetch(
        "select tenant_key, text, count(*) from memory.records"
        " where tenant_key in ($1, $2) group by 1, 2",
        tenant,
        neighbour,
    )
    assert sorted(map(tuple, rows)) == sorted([(tenant, "tea 0", 50), (neighbour, "tea 1", 50)])


class Hanging:
    """An embedder whose endpoint does not answer; ``reached`` says that it was asked."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.reached.set()
        await asyncio.Event().wait()
        return []


@pytest.mark.parametrize("verb", ["remember", "remember_many", "derive", "supersede", "recall"])
async def test_no_connection_is_held_while_the_embedder_is_awaited(
    memory: Memory, engine: AsyncEngine, inspector: Connection, tenant: str, verb: str
) -> None:
    old = (await memory.remember(tenant, text="tea", subject_keys="ann")).record
    before = await image(inspector, tenant)
    embedder = Hanging()
    waiting = Memory(
        PostgresStore(engine), embedder=embedder, redactor=None, subject_pepper="pepper"
    )
    call = asyncio.ensure_future(VERBS[verb](waiting, tenant, old))
    await embedder.reached.wait()
    assert engine.pool.status().endswith("Current Checked out connections: 0")
    await assert_clean(engine, inspector)
    assert await memory.get(tenant, record_id=old) == old
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await assert_clean(engine, inspector)
    assert await image(inspector, tenant) == before


async def test_a_store_closed_under_load_ends_its_calls_and_leaves_no_connection(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    store = PostgresStore(shared.app_url, pool_size=3)
    memory = Memory(store, subject_pepper="pepper")
    known = {row["pid"] for row in await inspector.fetch("select pid from pg_stat_activity")}
    calls = [
        asyncio.ensure_future(
            memory.remember(tenant, text="tea", subject_keys="ann", record_key=f"cup {number}")
        )
        for number in range(6)
    ]
    assert store._own is not None
    pool: Any = store._own.pool
    for _ in range(1000):
        if pool.checkedout():
            break
        await asyncio.sleep(0)
    await memory.close()
    told = await asyncio.gather(*calls)
    assert {one.record.record_id for one in told} == {
        row["record_id"]
        for row in await inspector.fetch(
            "select record_id from memory.records where tenant_key = $1", tenant
        )
    }
    await memory.close()
    left = "select pid from pg_stat_activity where usename = $1 and pid <> all($2::int[])"
    for _ in range(500):
        if not await inspector.fetch(left, shared.role("app"), list(known)):
            break
        await asyncio.sleep(0.01)
    assert await inspector.fetch(left, shared.role("app"), list(known)) == []
