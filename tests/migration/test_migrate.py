"""memory.migrate.upgrade: the way of notebooks and tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import migrate
from memory.errors import InstallError, InvalidInputError, StoreUnavailableError
from memory.urls import normalize_url
from servers import Database, Postgres


def revision(database: Database) -> object:
    with psycopg.connect(database.owner_url) as connection:
        row = connection.execute("select version_num from memory.alembic_version").fetchone()
    return row and row[0]


def an_engine(url: str) -> AsyncEngine:
    return create_async_engine(normalize_url(url))


@pytest.mark.parametrize("given", [str, normalize_url], ids=["text", "URL"])
async def test_a_url_is_enough(
    empty: Database, database: Database, given: Callable[[str], Any]
) -> None:
    await migrate.upgrade(given(empty.owner_url))
    assert revision(empty) == revision(database)


async def test_an_engine_stays_open_and_usable(empty: Database) -> None:
    engine = an_engine(empty.owner_url)
    try:
        await migrate.upgrade(engine, "memory_0001")
        assert revision(empty) == "memory_0001"
        await migrate.upgrade(engine)
        async with engine.connect() as connection:
            assert not connection.in_transaction()
    finally:
        await engine.dispose()


async def test_the_async_psycopg_driver_works_too(empty: Database, database: Database) -> None:
    await migrate.upgrade(empty.owner_url.replace("postgresql:", "postgresql+psycopg:", 1))
    assert revision(empty) == revision(database)


async def test_calls_at_the_same_time_in_one_process_wait_for_each_other(server: Postgres) -> None:
    with server.empty() as first, server.empty() as second:
        urls = [first.owner_url, second.owner_url] * 3
        await asyncio.gather(*(migrate.upgrade(url) for url in urls))
        assert revision(first) == revision(second) is not None


async def test_the_event_loop_runs_on_while_another_deployer_holds_the_lock(
    empty: Database,
) -> None:
    lock = "select pg_advisory_lock(x'6d656d6f7279'::bigint)"
    with psycopg.connect(empty.owner_url, autocommit=True) as deployer:
        deployer.execute(lock)
        upgrading = asyncio.create_task(migrate.upgrade(empty.owner_url))
        for _ in range(30):
            await asyncio.wait_for(asyncio.sleep(0.02), timeout=1)
        assert not upgrading.done()
    await upgrading
    assert revision(empty) is not None


async def test_a_failed_upgrade_frees_the_lock_and_can_be_repeated(empty: Database) -> None:
    with pytest.raises(InstallError):
        await migrate.upgrade(empty.host_url)
    with pytest.raises(InstallError):
        await migrate.upgrade(empty.owner_url, "memory_9999")
    await migrate.upgrade(empty.owner_url)
    assert revision(empty) is not None


async def test_a_database_that_cannot_be_reached_is_no_driver_exception() -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        await migrate.upgrade("postgresql://someone:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


async def test_a_url_of_another_database_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        await migrate.upgrade("sqlite+aiosqlite://")


def test_the_migrations_of_a_checkout_are_beside_the_package(root: Path) -> None:
    assert migrate.location() == root / "alembic"


def test_the_packaged_migrations_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "memory"
    package.mkdir()
    monkeypatch.setattr(migrate, "__file__", str(package / "migrate.py"))
    with pytest.raises(InstallError):
        migrate.location()
    for folder in (tmp_path / "alembic", package / "migrations"):
        folder.mkdir()
        (folder / "env.py").touch()
        assert migrate.location() == folder
