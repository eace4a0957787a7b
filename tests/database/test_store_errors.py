"""What goes wrong with the server reaches the caller as an error of ours, and shows nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from memory import (
    InstallError,
    Memory,
    RetryableError,
    StoreUnavailableError,
    UnknownSourceError,
)
from memory.database import OwnAccess, fetch
from memory.ids import uuid7
from memory.ports import Subject
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from refusing import KEY, PERSON, TEXT, VERBS, WRITES, opened, raises
from servers import Database, Postgres
from stores import rows_of


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


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "REPEATABLE READ", "SERIALIZABLE"])
async def test_an_engine_with_a_level_of_its_own_changes_nothing(
    shared: Database, inspector: Connection, tenant: str, level: str
) -> None:
    engine = create_async_engine(normalize_url(shared.app_url))
    own = PostgresStore(engine.execution_options(isolation_level=level))
    memory = Memory(own, redactor=None, subject_pepper="pepper")
    told = (await memory.remember(tenant, text=TEXT, subject_keys=PERSON, record_key=KEY)).record
    newer = (await memory.supersede(tenant, record_id=told, text=TEXT)).record
    # The version is superseded first, and stands again where the newer one cannot be stored.
    with raises(UnknownSourceError):
        await memory.derive(tenant, kind="summary", text=TEXT, sources=uuid7(), record_key=KEY)
    [current] = await memory.records(tenant)
    assert current == newer
    assert (await memory.forget(tenant, subject_key=PERSON)).counts.records == 2
    assert "records" not in await rows_of(inspector, tenant)
    await engine.dispose()


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


@pytest.mark.parametrize(
    "metadata", [f'{{"a": {"9" * 5_000}}}', f'{{"a": {"[" * 5_000}{"]" * 5_000}}}'], ids=len
)
async def test_metadata_beyond_what_python_reads_is_an_error_of_ours(
    shared: Database, inspector: Connection, tenant: str, metadata: str
) -> None:
    async with opened(shared.app_url) as memory:
        told = (await memory.remember(tenant, text="a note", subject_keys="ann")).record
        other = (await memory.remember(tenant, text="a note", subject_keys="bob")).record
        await inspector.execute(
            "update memory.records set metadata = $2::text::jsonb where record_id = $1",
            told.record_id,
            metadata,
        )
        with raises(StoreUnavailableError):
            await memory.get(tenant, record_id=told)
        with raises(StoreUnavailableError):
            _ = [entry async for entry in memory.export(tenant, subject_key="ann")]
        assert await memory.get(tenant, record_id=other) == other
        assert (await memory.forget(tenant, subject_key="ann")).counts.memories == 1
