"""Inside the caller's transaction: nothing is committed here, and nothing of it is disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    create_async_engine,
)

from memory import (
    ConflictError,
    InstallError,
    InvalidInputError,
    LegalHoldError,
    Memory,
    MemoryServiceError,
    RetryableError,
    StoreUnavailableError,
    UnknownRecordError,
    UnknownSourceError,
)
from memory.ids import uuid7
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from servers import Database, Postgres
from stores import broken_rules, image, leaks, mentions, rows_of

STATE = (
    "select coalesce(current_setting('app.current_tenant', true), ''),"
    " coalesce(current_setting('memory.erasure', true), '')"
)


class Index:
    """An external index that remembers what it was asked."""

    name = "index"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        self.asked += artefact_ids
        return len(artefact_ids)


@pytest.fixture(scope="module")
def place(server: Postgres) -> Iterator[Database]:
    """A database with a table of the host's beside ours."""
    with server.migrated() as database:
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute("create table public.orders (tenant text, note text)")
            owner.execute(f"grant all on public.orders to {database.role('app')}")
        yield database


@pytest.fixture
async def engine(place: Database) -> AsyncIterator[AsyncEngine]:
    """The host's engine."""
    engine = create_async_engine(normalize_url(place.app_url))
    yield engine
    await engine.dispose()


@pytest.fixture
async def superuser(place: Database) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(place.superuser_url)
    yield connection
    await connection.close()


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def own(engine: AsyncEngine, index: Index) -> Memory:
    """A memory with transactions of its own."""
    return Memory(PostgresStore(engine), indexes=[index], subject_pepper="pepper")


Joined = Callable[[AsyncConnection], Memory]


@pytest.fixture
def joined(index: Index) -> Joined:
    def make(connection: AsyncConnection) -> Memory:
        store = PostgresStore.joined(connection)
        return Memory(store, indexes=[index], subject_pepper="pepper")

    return make


async def order(connection: AsyncConnection, tenant: str) -> None:
    await connection.execute(
        text("insert into public.orders values (:tenant, 'paid')"), {"tenant": tenant}
    )


async def orders(superuser: Connection, tenant: str) -> int:
    count: int = await superuser.fetchval(
        "select count(*) from public.orders where tenant = $1", tenant
    )
    return count


async def test_a_row_of_the_hosts_and_a_memory_commit_together(
    engine: AsyncEngine, joined: Joined, superuser: Connection, tenant: str
) -> None:
    async with engine.begin() as connection:
        await order(connection, tenant)
        await joined(connection).remember(tenant, text="paid the order", subject_keys="ann")
        assert await rows_of(superuser, tenant) == {}
        assert await orders(superuser, tenant) == 0
    assert (await rows_of(superuser, tenant))["records"] == 1
    assert await orders(superuser, tenant) == 1


async def test_a_rollback_of_the_hosts_leaves_no_row_in_any_table(
    engine: AsyncEngine, joined: Joined, own: Memory, superuser: Connection, tenant: str
) -> None:
    kept = (await own.remember(tenant, text="kept", subject_keys="zoe")).record
    before = await image(superuser, tenant)
    async with engine.connect() as connection:
        await order(connection, tenant)
        memory = joined(connection)
        told = (await memory.remember(tenant, text="a needle", subject_keys="ann")).record
        made = await memory.derive(
            tenant,
            kind="summary",
            text="needle",
            sources=[told, kept],
            artefacts=[("index", "needle")],
        )
        await memory.relate(tenant, record_id=told, subject_keys="bob")
        await memory.supersede(tenant, record_id=told, text="another needle")
        await memory.forget(tenant, subject_key="bob")
        await memory.forget_record(tenant, record_id=kept)
        assert await memory.get(tenant, record_id=made.record) is None
        await connection.rollback()
    assert await image(superuser, tenant) == before
    assert await mentions(superuser, "needle") == {}
    assert await orders(superuser, tenant) == 0


async def every_verb(memory: Memory, tenant: str) -> AsyncIterator[str]:
    """Call each verb, then each once more so that it is refused; yield its name after it."""
    told = (
        await memory.remember(tenant, text="tea", subject_keys="ann", record_key="drink")
    ).record
    yield "remember"
    await memory.remember_many(tenant, items=[{"text": "milk", "subject_keys": "ann"}])
    yield "remember_many"
    made = (await memory.derive(tenant, kind="summary", text="drinks", sources=told)).record
    yield "derive"
    await memory.register_artefact(tenant, adapter="index", artefact_id="one", sources=made)
    yield "register_artefact"
    await memory.relate(tenant, record_id=told, subject_keys="bob")
    yield "relate"
    newer = (await memory.supersede(tenant, record_id=told, text="coffee")).record
    yield "supersede"
    assert (await memory.recall(tenant, text="coffee", subject_keys="ann")).hits
    yield "recall"
    assert (await memory.recall(tenant, embedding=[1.0, 2.0])).hits == ()
    yield "recall by vector"
    assert await memory.get(tenant, record_id=newer)
    assert len(await memory.history(tenant, record_key="drink")) == 2
    assert len(await memory.records(tenant)) == 3
    await memory.erasure_history(tenant)
    assert (await memory.ready()).ready
    await memory.capabilities()
    yield "reads"
    nobody = uuid7()
    refusals: list[tuple[type[MemoryServiceError], Awaitable[Any]]] = [
        (ConflictError, memory.remember(tenant, text="x", subject_keys="ann", record_id=told)),
        (
            UnknownSourceError,
            memory.derive(tenant, kind="summary", text="x", sources=nobody),
        ),
        (UnknownRecordError, memory.relate(tenant, record_id=nobody, subject_keys="bob")),
        (ConflictError, memory.supersede(tenant, record_id=told, text="late")),
        (
            UnknownSourceError,
            memory.register_artefact(tenant, adapter="a", artefact_id="b", sources=nobody),
        ),
        (UnknownRecordError, memory.forget_record(tenant, record_id=nobody)),
        (ConflictError, memory.forget(tenant, subject_key="ann", expect="0" * 64)),
    ]
    for expected, call in refusals:
        with pytest.raises(expected) as caught:
            await call
        assert leaks(caught.value, []) == []
        yield f"{expected.__name__} refused"
    await memory.forget(tenant, subject_key="ann", dry_run=True)
    yield "dry run"
    await memory.purge_outstanding(tenant)
    yield "purge_outstanding"
    await memory.forget(tenant, subject_key="ann")
    yield "forget"
    await memory.hold(tenant, subject_key="zoe")
    yield "hold"
    with pytest.raises(LegalHoldError):
        await memory.forget(tenant, subject_key="zoe", block_future=True)
    yield "forget deferred"
    for lifting in (memory.release, memory.readmit):
        with pytest.raises(InstallError) as caught:
            await lifting(tenant, subject_key="zoe")
        assert leaks(caught.value, []) == []
        yield f"{lifting.__name__} refused"
    assert len(await memory.decisions(tenant)) == 3
    yield "decisions"
    await memory.expire(tenant)
    yield "expire"
    await memory.forget_tenant(tenant, confirm=tenant)
    yield "forget_tenant"


@pytest.mark.parametrize("set_by_host", ["the hosts own", ""])
async def test_the_tenant_and_the_label_of_the_host_survive_every_verb_and_every_refusal(
    engine: AsyncEngine,
    joined: Joined,
    superuser: Connection,
    tenant: str,
    set_by_host: str,
) -> None:
    async with engine.connect() as connection:
        if set_by_host:
            for setting in ("app.current_tenant", "memory.erasure"):
                await connection.execute(
                    text("select set_config(:setting, :value, true)"),
                    {"setting": setting, "value": set_by_host},
                )
        async for verb in every_verb(joined(connection), tenant):
            state = (await connection.execute(text(STATE))).one()
            assert tuple(state) == (set_by_host, set_by_host), verb
        await order(connection, tenant)
        await connection.commit()
    assert await broken_rules(superuser, tenant) == {}
    assert set(await rows_of(superuser, tenant)) == {
        "subjects",
        "tenants",
        "tenant_counts",
        "tombstones",
        "chain_heads",
        "purges",
        "decisions",
    }


async def test_forget_waits_with_its_purges_for_a_store_of_its_own(
    engine: AsyncEngine, joined: Joined, own: Memory, index: Index, tenant: str
) -> None:
    told = (await own.remember(tenant, text="tea", subject_keys="ann")).record
    await own.register_artefact(tenant, adapter="index", artefact_id="one", sources=told)
    async with engine.begin() as connection:
        receipt = await joined(connection).forget(tenant, subject_key="ann")
        assert (await joined(connection).purge_outstanding(tenant)).outstanding == ("index",)
    assert receipt.anchor is None
    assert receipt.outstanding == ("index",)
    assert not receipt.complete
    assert receipt.counts.records == receipt.counts.artefacts == 1
    assert index.asked == []
    purged = await own.purge_outstanding(tenant)
    assert (purged.settled, purged.outstanding) == (1, ())
    assert index.asked == ["one"]
    (stone,) = await own.erasure_history(tenant)
    assert stone.erasure_id == receipt.erasure_id
    assert (stone.memories, stone.artefacts) == (1, 1)


async def test_two_forgets_in_one_transaction_leave_two_tombstones(
    engine: AsyncEngine, joined: Joined, own: Memory, superuser: Connection, tenant: str
) -> None:
    for person in ("ann", "bob"):
        await own.remember(tenant, text="tea", subject_keys=person)
    async with engine.begin() as connection:
        memory = joined(connection)
        receipts = [await memory.forget(tenant, subject_key=person) for person in ("ann", "bob")]
        await memory.remember(tenant, text="tea again", subject_keys="ann")
    stones = await own.erasure_history(tenant)
    assert {stone.erasure_id for stone in stones} == {r.erasure_id for r in receipts}
    assert [stone.memories for stone in stones] == [1, 1]
    assert [r.text for r in await own.records(tenant)] == ["tea again"]
    assert await broken_rules(superuser, tenant) == {}


STRICTER = ["REPEATABLE READ", "SERIALIZABLE"]


@pytest.mark.parametrize("level", STRICTER)
async def test_an_erasure_is_refused_where_the_snapshot_would_miss_what_is_newer(
    engine: AsyncEngine, joined: Joined, own: Memory, tenant: str, level: Any
) -> None:
    told = (await own.remember(tenant, text="before", subject_keys="ann")).record
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level=level)
        memory = joined(connection)
        assert await memory.get(tenant, record_id=told)
        await own.remember(tenant, text="meanwhile", subject_keys="ann")
        for call in (
            memory.forget(tenant, subject_key="ann"),
            memory.forget_record(tenant, record_id=told),
        ):
            with pytest.raises(InvalidInputError, match="READ COMMITTED") as caught:
                await call
            assert leaks(caught.value, []) == []
        assert (await memory.forget(tenant, subject_key="ann", dry_run=True)).counts.memories == 1
        await memory.remember(tenant, text="the transaction goes on", subject_keys="ann")
        await connection.commit()
    assert await own.erasure_history(tenant) == []
    async with engine.begin() as connection:
        receipt = await joined(connection).forget(tenant, subject_key="ann")
    assert receipt.counts.memories == 3
    assert await own.records(tenant) == []


@pytest.mark.parametrize("level", STRICTER)
async def test_a_derive_from_what_was_erased_since_the_snapshot_fails_closed(
    engine: AsyncEngine, joined: Joined, own: Memory, superuser: Connection, tenant: str, level: Any
) -> None:
    told = (await own.remember(tenant, text="a needle", subject_keys="ann")).record
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level=level)
        assert await joined(connection).get(tenant, record_id=told)
        await own.forget(tenant, subject_key="ann")
        with pytest.raises(RetryableError):
            await joined(connection).derive(tenant, kind="summary", text="needle", sources=told)
        await connection.commit()
    assert "records" not in await rows_of(superuser, tenant)


@pytest.mark.parametrize("level", STRICTER)
async def test_a_version_superseded_since_the_snapshot_fails_closed(
    engine: AsyncEngine, joined: Joined, own: Memory, tenant: str, level: Any
) -> None:
    told = (await own.remember(tenant, text="tea", subject_keys="ann")).record
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level=level)
        memory = joined(connection)
        assert await memory.get(tenant, record_id=told)
        await own.supersede(tenant, record_id=told, text="milk")
        with pytest.raises(RetryableError):
            await memory.supersede(tenant, record_id=told, text="coffee")
        with pytest.raises((RetryableError, ConflictError)):
            await memory.remember(
                tenant, text="coffee", subject_keys="ann", record_key=str(told.record_id)
            )
        await connection.commit()
    assert [r.text for r in await own.records(tenant)] == ["milk"]


async def test_a_connection_in_autocommit_is_refused_and_stores_nothing(
    engine: AsyncEngine, joined: Joined, superuser: Connection, tenant: str
) -> None:
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        with pytest.raises(InvalidInputError, match="autocommit") as caught:
            await joined(connection).remember(tenant, text=tenant, subject_keys="ann")
        assert leaks(caught.value, [tenant]) == []
    assert await rows_of(superuser, tenant) == {}


async def test_the_connection_of_an_orm_session_can_be_joined(
    engine: AsyncEngine, joined: Joined, superuser: Connection, tenant: str
) -> None:
    async with AsyncSession(engine) as session:
        await session.execute(text("insert into public.orders values (:t, 'orm')"), {"t": tenant})
        memory = joined(await session.connection())
        await memory.remember(tenant, text="tea", subject_keys="ann")
        await session.rollback()
        assert await rows_of(superuser, tenant) == {}
        memory = joined(await session.connection())
        await memory.remember(tenant, text="milk", subject_keys="ann")
        await session.commit()
    assert (await rows_of(superuser, tenant))["records"] == 1


async def test_a_transaction_that_failed_or_a_connection_that_closed_is_said_so(
    engine: AsyncEngine, joined: Joined, tenant: str
) -> None:
    async with engine.connect() as connection:
        memory = joined(connection)
        with pytest.raises(Exception, match="division"):
            await connection.execute(text("select 1/0"))
        with pytest.raises(StoreUnavailableError) as caught:
            await memory.remember(tenant, text=tenant, subject_keys="ann")
        assert leaks(caught.value, [tenant]) == []
        await connection.rollback()
        await memory.remember(tenant, text=tenant, subject_keys="ann")
    with pytest.raises(StoreUnavailableError) as caught:
        await memory.remember(tenant, text=tenant, subject_keys="ann")
    assert leaks(caught.value, [tenant]) == []


async def test_tasks_that_share_the_connection_take_turns(
    engine: AsyncEngine, joined: Joined, tenant: str
) -> None:
    async with engine.begin() as connection:
        memory = joined(connection)
        await asyncio.gather(
            *(
                memory.remember(f"{tenant}-{n % 2}", text=f"tea {n}", subject_keys="ann")
                for n in range(10)
            )
        )
        for n in range(2):
            found = await memory.records(f"{tenant}-{n}")
            assert {int(r.text.split()[1]) % 2 for r in found} == {n}
            assert len(found) == 5


async def test_a_deadlock_with_another_transaction_is_the_callers_to_retry(
    engine: AsyncEngine, joined: Joined, own: Memory, superuser: Connection, tenant: str
) -> None:
    for person in ("ann", "bob"):
        await own.remember(tenant, text="tea", subject_keys=person)

    async def both(first: str, second: str, ready: asyncio.Event, other: asyncio.Event) -> bool:
        async with engine.connect() as connection:
            memory = joined(connection)
            await order(connection, tenant)
            await memory.forget(tenant, subject_key=first)
            ready.set()
            await other.wait()
            try:
                await memory.forget(tenant, subject_key=second)
            except RetryableError:
                # The savepoint is gone, the rest of the transaction is not.
                assert (await connection.execute(text("select 1"))).scalar_one() == 1
                await connection.rollback()
                return False
            await connection.commit()
            return True

    one, two = asyncio.Event(), asyncio.Event()
    done = await asyncio.gather(both("ann", "bob", one, two), both("bob", "ann", two, one))
    assert sorted(done) == [False, True]
    assert await own.records(tenant) == []
    assert await orders(superuser, tenant) == 1


async def test_a_pepper_whose_claim_was_rolled_back_is_checked_again(
    server: Postgres,
) -> None:
    with server.migrated() as database:
        engine = create_async_engine(normalize_url(database.app_url))
        async with engine.connect() as connection:
            joined = Memory(PostgresStore.joined(connection), subject_pepper="one")
            await joined.remember("acme", text="Ann called", subject_keys="ann")
            await connection.rollback()
            async with Memory(PostgresStore(database.app_url), subject_pepper="two") as other:
                await other.remember("acme", text="Bob called", subject_keys="bob")
            with pytest.raises(InstallError):
                await joined.remember("acme", text="Ann called", subject_keys="ann")
        await engine.dispose()
