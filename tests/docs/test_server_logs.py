"""What the runbook says of the server's log, read in the log of a server with usual settings."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memory import Memory, PostgresStore, embedded
from memory.urls import normalize_url
from servers import debian_postgres_15

TOLD = "Marmalade"
USUAL = {"log_min_error_statement": "error", "log_error_verbosity": "default"}


@pytest.fixture(scope="module")
def server() -> Iterator[embedded.Server]:
    """The embedded server is careful with its log by itself: here it is not."""
    running = embedded.serve(settings=USUAL)
    with asyncio.Runner() as runner:
        yield runner.run(running.__aenter__())
        runner.run(running.__aexit__(None, None, None))


@pytest.fixture
def logged(server: embedded.Server) -> Callable[..., bool]:
    """Do something under settings of the database; say whether the log now quotes the text."""
    log = Path(server.data_directory) / "log"

    def was(act: Callable[[], object], **settings: object) -> bool:
        before = log.stat().st_size
        with psycopg.connect(server.superuser_url, autocommit=True) as superuser:
            for name, value in settings.items():
                superuser.execute(f"alter database memory set {name} = '{value}'")
        try:
            act()
        finally:
            with psycopg.connect(server.superuser_url, autocommit=True) as superuser:
                superuser.execute("alter database memory reset all")
        with log.open("rb") as file:
            file.seek(before)
            return TOLD.encode() in file.read()

    return was


async def live(service: Memory) -> None:
    """Remember, find, export and forget somebody."""
    shop = service.for_tenant("shop")
    await shop.remember(text=f"{TOLD} for tea", subject_keys=f"customer:{TOLD}")
    assert (await shop.recall(text=TOLD)).hits
    assert [entry async for entry in shop.export(subject_key=f"customer:{TOLD}")]
    await shop.forget(subject_key=f"customer:{TOLD}")


async def live_alone(url: str) -> None:
    async with Memory(PostgresStore(url), subject_pepper="pepper") as service:
        await live(service)


async def live_in_the_hosts_transaction(url: str) -> None:
    engine = create_async_engine(normalize_url(url))
    async with engine.begin() as connection:
        await live(Memory(PostgresStore.joined(connection), subject_pepper="pepper"))
    await engine.dispose()


@pytest.fixture
def lives(server: embedded.Server) -> Callable[[], None]:
    return lambda: asyncio.run(live_alone(server.url))


def test_the_librarys_statements_hold_no_content(logged, lives) -> None:
    assert not logged(lives)
    assert not logged(lives, log_statement="all", log_parameter_max_length=0)
    assert not logged(lives, log_min_duration_statement=0, log_parameter_max_length=0)
    assert not logged(lives, debug_print_plan="on", log_parameter_max_length=0)


def test_parameters_are_logged_in_full_by_default(logged, lives) -> None:
    assert logged(lives, log_min_duration_statement=0)
    assert logged(lives, log_statement="all")


def test_a_failing_statement_brings_its_parameters_only_if_told_to(
    server: embedded.Server, logged
) -> None:
    async def fail() -> None:
        connection = await asyncpg.connect(server.url)
        with pytest.raises(asyncpg.PostgresError):
            await connection.fetch("select $1::text, 1 / 0", TOLD)
        await connection.close()

    assert not logged(lambda: asyncio.run(fail()))
    assert logged(lambda: asyncio.run(fail()), log_parameter_max_length_on_error=-1)


def test_detail_quotes_the_row_to_roles_that_nothing_binds_unless_terse(
    server: embedded.Server, logged
) -> None:
    async def fail() -> None:
        connection = await asyncpg.connect(server.superuser_url)
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(
                "insert into memory.records (tenant_key, record_id, kind, text)"
                " values ('shop', gen_random_uuid(), 'No Code', $1)",
                TOLD,
            )
        await connection.close()

    assert logged(lambda: asyncio.run(fail()))
    assert not logged(lambda: asyncio.run(fail()), log_error_verbosity="terse")


def test_sql_with_values_in_its_text_is_logged_when_it_fails_or_is_slow(
    server: embedded.Server, logged
) -> None:
    def fail() -> None:
        with (
            psycopg.connect(server.url, autocommit=True) as session,
            pytest.raises(psycopg.Error),
        ):
            session.execute(f"select '{TOLD}'::int")

    def work() -> None:
        with psycopg.connect(server.url, autocommit=True) as session:
            session.execute(f"select '{TOLD}'")

    assert logged(fail)
    # The message itself quotes what is not a number.
    assert logged(fail, log_min_error_statement="panic")
    assert not logged(work)
    assert logged(work, log_min_duration_statement=0, log_parameter_max_length=0)


def test_plans_hold_keys_on_an_engine_of_the_hosts_and_statistics_of_statements_nothing() -> None:
    settings = {
        "shared_preload_libraries": "pg_stat_statements, auto_explain",
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_nested_statements": "on",
    }
    with (
        # Pytest's own folder would be closed to the user that the server runs as.
        tempfile.TemporaryDirectory(prefix="pg15-") as folder,
        debian_postgres_15(Path(folder), **settings) as server,
        server.migrated() as database,
        psycopg.connect(database.superuser_url, autocommit=True) as superuser,
    ):
        log = Path(folder) / "log"
        superuser.execute("create extension pg_stat_statements")
        asyncio.run(live_alone(database.app_url))
        own = log.read_text(errors="replace")
        assert "Index Cond" in own
        assert TOLD not in own
        asyncio.run(live_in_the_hosts_transaction(database.app_url))
        assert TOLD in log.read_text(errors="replace")
        seen = superuser.execute(
            "select count(*), count(*) filter (where query ilike %s) from pg_stat_statements"
            " where query ilike '%%memory.records%%'",
            [f"%{TOLD}%"],
        ).fetchone()
        assert seen is not None
        assert seen[0] > 0
        assert seen[1] == 0
