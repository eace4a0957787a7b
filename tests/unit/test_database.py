"""Engines: what is accepted, what is refused before anything connects, and what errors show."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from memory import InvalidInputError, Memory, StoreUnavailableError
from memory.database import OwnAccess
from memory.engines import open_engine
from memory.stores.postgres import PostgresStore
from stores import leaks

PRIVATE = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        "postgres://app@h/db",
        "postgresql://app@h/db",
        "postgresql+asyncpg://app@h/db",
        make_url("postgresql://app@h/db"),
    ],
)
def test_every_spelling_of_a_postgres_url_is_taken_for_asyncpg(url: str | URL) -> None:
    assert open_engine(url).dialect.driver == "asyncpg"
    PostgresStore(url)


def test_sslmode_reaches_the_driver() -> None:
    engine = open_engine("postgres://app@h/db?sslmode=verify-full")
    _, arguments = engine.dialect.create_connect_args(engine.url)
    assert arguments["ssl"] == "verify-full"


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://app:{PRIVATE}@h/db",
        f"sqlite:///{PRIVATE}",
        f"app:{PRIVATE}@h/db",
        f"postgres://app:{PRIVATE}@h/db?sslrootcert={PRIVATE}",
        f"postgresql+psycopg://app:{PRIVATE}@h/db",
        f"postgres://h:{PRIVATE}/db",
        "",
    ],
)
@pytest.mark.parametrize("pooler", [False, True])
def test_a_url_of_another_kind_is_refused_without_being_quoted(url: str, pooler: bool) -> None:
    with pytest.raises(InvalidInputError) as caught:
        PostgresStore(url, pooler=pooler)
    assert caught.value.field in ("url", "engine")
    assert PRIVATE not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("source", [None, 5, {"url": PRIVATE}, object()])
def test_what_is_neither_url_nor_engine_nor_connection_is_refused(source: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        PostgresStore(source)
    assert PRIVATE not in "".join(traceback.format_exception(caught.value))


async def test_an_engine_of_another_driver_is_refused_and_one_of_asyncpg_is_not() -> None:
    with pytest.raises(InvalidInputError, match="asyncpg"):
        PostgresStore(create_async_engine("postgresql+psycopg://app@h/db"))
    PostgresStore(create_async_engine("postgresql+asyncpg://app@h/db"))


def test_joined_takes_nothing_that_would_commit_by_itself() -> None:
    engine = create_async_engine("postgresql+asyncpg://app@h/db")
    refused: list[Any] = [engine, "postgres://app@h/db", AsyncSession(engine), None]
    for source in refused:
        with pytest.raises(InvalidInputError) as caught:
            PostgresStore.joined(source)
        assert caught.value.field == "connection"


def test_a_connection_that_was_not_started_is_refused() -> None:
    engine = create_async_engine("postgresql+asyncpg://app@h/db")
    with pytest.raises(InvalidInputError, match="started") as caught:
        PostgresStore.joined(engine.connect())
    assert caught.value.__context__ is None


def test_an_engine_of_our_own_hides_parameters() -> None:
    assert open_engine("postgres://h/db").sync_engine.hide_parameters
    assert open_engine("postgres://h/db", pooler=True).sync_engine.hide_parameters


def pool_of(store: PostgresStore) -> tuple[int, int]:
    assert store._own is not None
    pool: Any = store._own.pool
    return pool.size(), pool._max_overflow


@pytest.mark.parametrize("pooler", [False, True])
def test_a_pool_has_the_size_that_was_asked_for(pooler: bool) -> None:
    url = "postgres://app@h/db"
    assert pool_of(PostgresStore(url, pooler=pooler)) == (5, 10)
    asked = PostgresStore(url, pooler=pooler, pool_size=1, max_overflow=0)
    assert pool_of(asked) == (1, 0)
    assert pool_of(PostgresStore(url, pooler=pooler, pool_size=1_000)) == (1_000, 10)


@pytest.mark.parametrize("size", [-1, 1_001, 2.0, "2", True])
def test_a_pool_without_a_bound_or_of_no_number_is_refused(size: Any) -> None:
    for field, given in (("pool_size", 0), ("pool_size", size), ("max_overflow", size)):
        with pytest.raises(InvalidInputError, match="must be a whole number from") as caught:
            PostgresStore("postgres://app@h/db", **{field: given})
        assert caught.value.field == field


def test_an_engine_keeps_its_own_pool_and_another_is_refused() -> None:
    engine = create_async_engine("postgresql+asyncpg://app@h/db", pool_size=2)
    PostgresStore(engine, pool_size=None, max_overflow=None)
    for field in ("pool_size", "max_overflow"):
        with pytest.raises(InvalidInputError, match=f"{field}: is for a URL"):
            PostgresStore(engine, **{field: 2})


async def test_only_an_engine_made_from_a_url_is_closed() -> None:
    engine = create_async_engine("postgresql+asyncpg://app@h/db")
    pool = engine.pool
    await PostgresStore(engine).close()
    assert engine.pool is pool
    own = PostgresStore("postgres://app@h/db")
    assert own._own is not None
    pool = own._own.pool
    await own.close()
    assert own._own.pool is not pool


async def test_a_server_that_is_not_there_is_unavailable_and_says_nothing(tmp_path: Path) -> None:
    memory = Memory(PostgresStore(f"postgres://app:{PRIVATE}@/db?host={tmp_path}/{PRIVATE}"))
    with pytest.raises(StoreUnavailableError) as caught:
        await memory.remember("acme", text=f"my word is {PRIVATE}", subject_keys="ann")
    assert leaks(caught.value, [PRIVATE, str(tmp_path)]) == []
    ready = await memory.ready()
    assert not ready.ready
    assert ready.problems == ("the database cannot be reached (FileNotFoundError)",)
    await memory.close()


async def test_an_error_of_the_work_itself_passes_the_border_unchanged(tmp_path: Path) -> None:
    access = OwnAccess(create_async_engine(f"postgresql+asyncpg://app@/db?host={tmp_path}"))

    async def never(_: Any) -> None:
        raise AssertionError("ran without a connection")

    with pytest.raises(StoreUnavailableError):
        await access.single(never)


@pytest.mark.parametrize("source", [None, 7, create_engine("sqlite://")])
def test_a_source_of_another_sort_is_refused_by_its_own_name(source: Any) -> None:
    with pytest.raises(InvalidInputError, match="source: must be a URL or an engine"):
        PostgresStore(source)


def test_a_url_of_another_driver_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="asyncpg"):
        PostgresStore("postgresql+psycopg://app@h/db")
