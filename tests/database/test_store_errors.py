"""What goes wrong with the server reaches the caller as an error of ours, and shows nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from memory import (
    InstallError,
    Memory,
    MemoryServiceError,
    RetryableError,
    StoreUnavailableError,
)
from memory.database import OwnAccess, fetch
from memory.ids import uuid7
from memory.ports import Subject
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection, act
from servers import Database, Postgres
from stores import leaks, rows_of

PRIVATE = [f"private-{n}" for n in range(5)]
TEXT, PERSON, VALUE, KEY, MODEL = PRIVATE
NOBODY = uuid7()

Verb = Callable[[Memory, str], Awaitable[Any]]
VERBS: dict[str, Verb] = {
    "remember": lambda memory, tenant: memory.remember(
        tenant, text=TEXT, subject_keys=PERSON, metadata={"v": VALUE}, embedding=[0.25, 0.5]
    ),
    "remember by key": lambda memory, tenant: memory.remember(
        tenant, text=TEXT, subject_keys=PERSON, record_key=KEY
    ),
    "remember_many": lambda memory, tenant: memory.remember_many(
        tenant, items=[{"text": TEXT, "subject_keys": PERSON}] * 2
    ),
    "derive": lambda memory, tenant: memory.derive(
        tenant, kind="summary", text=TEXT, sources=NOBODY
    ),
    "relate": lambda memory, tenant: memory.relate(tenant, record_id=NOBODY, subject_keys=PERSON),
    "supersede": lambda memory, tenant: memory.supersede(tenant, record_id=NOBODY, text=TEXT),
    "register_artefact": lambda memory, tenant: memory.register_artefact(
        tenant, adapter="index", artefact_id=KEY, sources=NOBODY
    ),
    "recall by words": lambda memory, tenant: memory.recall(
        tenant, text=TEXT, subject_keys=PERSON, metadata={"v": VALUE}
    ),
    "recall by vector": lambda memory, tenant: memory.recall(tenant, embedding=[0.25, 0.5]),
    "recall by time": lambda memory, tenant: memory.recall(tenant, subject_keys=PERSON),
    "get": lambda memory, tenant: memory.get(tenant, record_id=NOBODY),
    "history": lambda memory, tenant: memory.history(tenant, record_key=KEY),
    "records": lambda memory, tenant: memory.records(tenant, subject_keys=PERSON),
    "forget": lambda memory, tenant: memory.forget(tenant, subject_key=PERSON),
    "dry run": lambda memory, tenant: memory.forget(tenant, subject_key=PERSON, dry_run=True),
    "forget_record": lambda memory, tenant: memory.forget_record(tenant, record_id=NOBODY),
    "block": lambda memory, tenant: memory.forget(tenant, subject_key=PERSON, block_future=True),
    "hold": lambda memory, tenant: memory.hold(tenant, subject_key=PERSON),
    "release": lambda memory, tenant: memory.release(tenant, subject_key=PERSON),
    "readmit": lambda memory, tenant: memory.readmit(tenant, subject_key=PERSON),
    "decisions": lambda memory, tenant: memory.decisions(tenant),
    "expire": lambda memory, tenant: memory.expire(tenant),
    "forget_tenant": lambda memory, tenant: memory.forget_tenant(tenant, confirm=tenant),
    "erasure_history": lambda memory, tenant: memory.erasure_history(tenant),
    "purge_outstanding": lambda memory, tenant: memory.purge_outstanding(tenant),
}
WRITES = {"remember", "remember by key", "remember_many", "forget", "hold"}


@contextlib.contextmanager
def raises(*expected: type[MemoryServiceError]) -> Iterator[None]:
    """One of these, without a trace of the driver, the statement or its values."""
    with pytest.raises(expected) as caught:
        yield
    assert leaks(caught.value, [*PRIVATE, "insert into", "$1"]) == []


@contextlib.asynccontextmanager
async def opened(url: str, *, settings: dict[str, str] | None = None, **pool: Any) -> Any:
    """A memory on an engine of the host's, with server settings of the test's."""
    engine = create_async_engine(
        normalize_url(url), connect_args={"server_settings": settings or {}}, **pool
    )
    try:
        yield Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    finally:
        await engine.dispose()


@contextlib.asynccontextmanager
async def person_locked(inspector: Connection, tenant: str) -> AsyncIterator[None]:
    """Somebody else is erasing the person: every write about them waits."""
    transaction = inspector.transaction()
    await transaction.start()
    await act(inspector, tenant)
    await inspector.execute(
        "insert into memory.subjects (tenant_key, subject_hash) values ($1, $2)",
        tenant,
        # The hash under which the store will want it.
        Memory(subject_pepper="pepper").subject_fingerprint(tenant, subject_key=PERSON),
    )
    yield
    await transaction.rollback()


async def backends(inspector: Connection, *, waiting: bool) -> list[int]:
    rows = await inspector.fetch(
        "select pid from pg_stat_activity where datname = current_database()"
        " and application_name = 'victim' and (wait_event_type = 'Lock') = $1",
        waiting,
    )
    return [row["pid"] for row in rows]


async def waiting(inspector: Connection) -> int:
    """The backend of the call that waits for a lock."""
    while True:
        if found := await backends(inspector, waiting=True):
            return found[0]
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_says_that_the_schema_is_missing(unmigrated: str, verb: str) -> None:
    async with opened(unmigrated) as memory:
        with raises(InstallError):
            await VERBS[verb](memory, "acme")


@pytest.fixture(scope="module")
def unmigrated(server: Postgres) -> Iterator[str]:
    with server.empty() as database:
        yield database.app_url


async def test_readiness_without_a_schema_is_a_problem_and_not_an_error(unmigrated: str) -> None:
    async with opened(unmigrated) as memory:
        ready = await memory.ready()
        assert not ready.ready
        assert "alembic upgrade head" in ready.problems[0]
        assert (await memory.capabilities()).store == "postgres"


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_says_that_the_role_has_no_rights(
    shared: Database, tenant: str, verb: str
) -> None:
    async with opened(shared.host_url) as memory:
        with raises(InstallError):
            await VERBS[verb](memory, tenant)


async def test_readiness_without_rights_is_a_problem_and_not_an_error(shared: Database) -> None:
    async with opened(shared.host_url) as memory:
        ready = await memory.ready()
        assert not ready.ready
        assert "grant" in ready.problems[0]


@pytest.mark.parametrize("role", ["superuser", "bypass"])
async def test_a_role_that_bypasses_row_level_security_is_not_ready(
    shared: Database, role: str
) -> None:
    async with opened(shared.app_url) as memory:
        assert (await memory.ready()).ready
    async with opened(shared.url(role)) as memory:
        ready = await memory.ready()
    assert not ready.ready
    assert any("bypasses row level security" in problem for problem in ready.problems)


async def test_another_pepper_is_refused_before_anything_is_written(
    database: Database, superuser: Connection
) -> None:
    async with opened(database.app_url) as memory:
        await memory.remember("acme", text=TEXT, subject_keys=PERSON)
    engine = create_async_engine(normalize_url(database.app_url))
    other = Memory(PostgresStore(engine), subject_pepper="another")
    before = await rows_of(superuser, "")
    for verb in sorted(WRITES):
        with raises(InstallError):
            await VERBS[verb](other, "acme")
    assert await rows_of(superuser, "") == before
    assert "pepper" in (await other.ready()).problems[0]
    await engine.dispose()


@pytest.mark.parametrize("verb", sorted(WRITES))
async def test_a_read_only_server_takes_no_write_and_says_so(
    shared: Database, tenant: str, verb: str
) -> None:
    async with opened(shared.app_url, settings={"default_transaction_read_only": "on"}) as memory:
        assert await memory.records(tenant) == []
        with raises(InstallError):
            await VERBS[verb](memory, tenant)


async def test_a_database_or_a_role_that_is_not_there_is_unavailable(shared: Database) -> None:
    url = make_url(shared.app_url)
    for wrong in (url.set(database=KEY), url.set(username=PERSON)):
        async with opened(wrong.render_as_string(hide_password=False)) as memory:
            with raises(StoreUnavailableError):
                await memory.records("acme")
            assert not (await memory.ready()).ready


@pytest.mark.parametrize("setting", ["statement_timeout", "lock_timeout"])
@pytest.mark.parametrize("verb", sorted(WRITES))
async def test_a_timeout_is_unavailable_and_the_next_call_works(
    shared: Database, inspector: Connection, tenant: str, setting: str, verb: str
) -> None:
    # Long enough for the call that must succeed, on a busy machine too.
    async with opened(shared.app_url, settings={setting: "400"}, pool_size=1) as memory:
        await memory.ready()
        async with person_locked(inspector, tenant):
            with raises(StoreUnavailableError):
                await VERBS[verb](memory, tenant)
        assert "records" not in await rows_of(inspector, tenant)
        await VERBS[verb](memory, tenant)


@pytest.mark.parametrize("function", ["pg_cancel_backend", "pg_terminate_backend"])
@pytest.mark.parametrize("verb", sorted(WRITES))
async def test_a_call_that_an_operator_ends_is_unavailable_and_the_next_works(
    shared: Database, inspector: Connection, connect: Any, tenant: str, function: str, verb: str
) -> None:
    admin = await connect("superuser")
    settings = {"application_name": "victim"}
    async with opened(shared.app_url, settings=settings, pool_size=1) as memory:
        await memory.ready()
        async with person_locked(inspector, tenant):
            call = asyncio.ensure_future(VERBS[verb](memory, tenant))
            await admin.execute(f"select {function}($1)", await waiting(admin))
            with raises(StoreUnavailableError):
                await call
        assert "records" not in await rows_of(inspector, tenant)
        await VERBS[verb](memory, tenant)


@pytest.mark.parametrize("verb", ["remember", "forget", "get"])
async def test_a_pooled_connection_that_died_costs_no_call(
    shared: Database, inspector: Connection, tenant: str, verb: str
) -> None:
    settings = {"application_name": "victim"}
    call = VERBS[verb]
    async with opened(shared.app_url, settings=settings, pool_size=3) as memory:
        await asyncio.gather(*(call(memory, tenant) for _ in range(3)))
        for pid in await backends(inspector, waiting=False):
            await inspector.execute("select pg_terminate_backend($1, 5000)", pid)
        await asyncio.gather(*(call(memory, tenant) for _ in range(3)))


@pytest.mark.parametrize("verb", ["remember", "forget", "get"])
async def test_a_connection_that_went_back_while_it_is_being_closed_costs_no_call(
    shared: Database, tenant: str, verb: str
) -> None:
    """As a call leaves it that was cancelled twice: hosts on anyio cancel until it has ended."""
    engine = create_async_engine(normalize_url(shared.app_url), pool_size=1, max_overflow=0)
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    await VERBS[verb](memory, tenant)
    async with engine.connect() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
    closing = asyncio.create_task(driver.close())
    await asyncio.sleep(0)
    assert driver.is_closed()
    assert not closing.done()
    await VERBS[verb](memory, tenant)
    await closing
    await engine.dispose()


async def test_a_pool_without_a_free_connection_is_unavailable(
    shared: Database, tenant: str
) -> None:
    url = normalize_url(shared.app_url)
    engine = create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.05)
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    async with engine.connect():
        for verb in sorted(WRITES):
            with raises(StoreUnavailableError):
                await VERBS[verb](memory, tenant)
    await VERBS["remember"](memory, tenant)
    await engine.dispose()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_a_database_with_a_stricter_default_changes_nothing(
    shared: Database, inspector: Connection, tenant: str, level: str
) -> None:
    settings = {"default_transaction_isolation": level}
    async with opened(shared.app_url, settings=settings) as memory:
        told = (await memory.remember(tenant, text=TEXT, subject_keys=PERSON)).record

        async def derive() -> None:
            await memory.derive(tenant, kind="summary", text=TEXT, sources=told)

        await asyncio.gather(*(derive() for _ in range(5)))
        assert len(await memory.records(tenant)) == 6
        receipts = await asyncio.gather(
            *(memory.forget(tenant, subject_key=PERSON) for _ in range(3))
        )
        assert sum(receipt.counts.records for receipt in receipts) == 6
    assert "records" not in await rows_of(inspector, tenant)


async def test_a_connection_that_replaces_one_that_died_has_the_level_of_the_others(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    """An erasure is refused in any level but READ COMMITTED."""
    settings = {
        "application_name": "victim",
        "default_transaction_isolation": "serializable",
    }
    async with opened(shared.app_url, settings=settings, pool_size=2) as memory:
        await memory.remember(tenant, text=TEXT, subject_keys=PERSON)
        for pid in await backends(inspector, waiting=False):
            await inspector.execute("select pg_terminate_backend($1, 5000)", pid)
        assert (await memory.forget(tenant, subject_key=PERSON)).counts.records == 1
    assert "records" not in await rows_of(inspector, tenant)


async def test_a_failure_worth_another_try_is_tried_again_and_others_are_not(
    shared: Database,
) -> None:
    engine = create_async_engine(normalize_url(shared.app_url))
    access = OwnAccess(engine)
    for code, expected, times in (
        ("40001", RetryableError, 6),
        ("40P01", RetryableError, 6),
        ("57014", StoreUnavailableError, 1),
    ):
        tried = 0

        async def work(connection: Any, code: str = code) -> None:
            nonlocal tried
            tried += 1
            await fetch(
                connection, f"do $$ begin raise exception '' using errcode='{code}'; end $$"
            )

        for run in (access.single, access.several):
            tried = 0
            with raises(expected):
                await run(work)
            assert tried == times
    await engine.dispose()


async def test_a_person_known_under_another_hash_is_an_install_error(
    shared: Database, tenant: str
) -> None:
    async with opened(shared.app_url) as memory:
        record = (await memory.remember(tenant, text=TEXT, subject_keys=PERSON)).record
        # Past the check of the pepper, as a process that started before a rotation is.
        store: Any = memory._store
        stray = Subject(key=PERSON, hash="f" * 64)
        with raises(InstallError):
            await store.relate(
                tenant,
                (await memory.remember(tenant, text=TEXT, subject_keys=KEY)).record.record_id,
                [stray],
            )
        assert await memory.relate(tenant, record_id=record, subject_keys=PERSON) == record


async def test_a_time_beyond_the_calendar_is_an_error_of_ours(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    async with opened(shared.app_url) as memory:
        told = (await memory.remember(tenant, text="a note", subject_keys="ann")).record
        await inspector.execute(
            "update memory.records set occurred_at = '0044-03-15 BC' where record_id = $1",
            told.record_id,
        )
        with raises(StoreUnavailableError):
            await memory.get(tenant, record_id=told)
        assert (await memory.forget(tenant, subject_key="ann")).counts.memories == 1
