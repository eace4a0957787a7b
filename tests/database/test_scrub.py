"""What a scrub does, what it leaves alone, and what it says it could not do.

That the bytes are gone from the files is proved in ``test_scrub_bytes.py``.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memory import (
    InstallError,
    InvalidInputError,
    Memory,
    PostgresStore,
    StoreUnavailableError,
    embedded,
)
from memory.maintenance import scrub
from memory.maintenance.scrubbing import Scrubbed, ScrubStep
from memory.urls import normalize_url
from rawsql import TABLES, Connection, acting, remember
from servers import Database, Postgres

SEEN = {"log_min_duration_statement": "0", "log_statement": "all"}


async def erase_one(database: Database) -> None:
    """Two people; one of them is erased."""
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        for person in ("ann", "bob"):
            await memory.remember_many(
                "shop",
                items=[
                    {"text": f"{person} said {n}", "subject_keys": f"customer:{person}"}
                    for n in range(50)
                ],
            )
        await memory.forget("shop", subject_key="customer:ann")


async def contents(superuser: Connection) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    return {
        table: sorted(
            row[0] for row in await superuser.fetch(f"select t::text from memory.{table} as t")
        )
        for table in TABLES
    }


def done(report: Scrubbed) -> set[tuple[str, str]]:
    return {(step.action, step.target) for step in report.steps if step.done}


async def test_rows_evidence_and_what_indexes_find_stay_as_they_are(
    database: Database, superuser: Connection
) -> None:
    await erase_one(database)
    before = await contents(superuser)
    assert len(before["records"]) == 50
    await scrub(database.superuser_url)
    assert await contents(superuser) == before
    await scrub(database.superuser_url, exclusive=True)
    assert await contents(superuser) == before
    invalid = "select count(*) from pg_index where not indisvalid"
    assert await superuser.fetchval(invalid) == 0
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        assert len(await memory.records("shop", subject_keys="customer:bob", limit=99)) == 50
        assert (await memory.recall("shop", text="bob said 7")).hits


async def test_a_superuser_is_told_of_nothing_but_gaps(database: Database) -> None:
    await erase_one(database)
    report = await scrub(database.superuser_url)
    assert report.codes <= {"free_space"}
    assert {"vacuum", "overwrite", "reindex", "clear_statistics", "remove_wal"} <= {
        action for action, _ in done(report)
    }
    again = await scrub(database.superuser_url, exclusive=True)
    assert again.complete
    assert again.pending == ()


async def test_the_owner_does_the_tables_and_is_told_what_was_not_done(
    database: Database, superuser: Connection
) -> None:
    await erase_one(database)
    report = await scrub(database.owner_url)
    assert {("vacuum", "records"), ("overwrite", "postings"), ("reindex", "postings_pkey")} <= done(
        report
    )
    assert {"wal", "checkpoint", "free_space_unread"} <= report.codes
    assert not report.complete
    left = "select count(*) from memory.tenants where tenant_key like '~%'"
    assert await superuser.fetchval(left) == 0
    whole = await scrub(database.owner_url, exclusive=True)
    assert ("rewrite", "records") in done(whole)
    assert "free_space_unread" not in whole.codes


async def test_without_pgvector_and_statistics_of_its_own_an_owner_is_told_so(
    postgres15: Postgres,
) -> None:
    with postgres15.migrated() as database:
        await erase_one(database)
        report = await scrub(database.owner_url, wal=False)
        assert "statistics" in report.codes
        assert (await scrub(database.superuser_url)).codes <= {"free_space"}


async def test_a_role_that_may_vacuum_nothing_is_refused(database: Database) -> None:
    # The server would only warn, and a scrub that did nothing would look like one.
    with pytest.raises(InstallError, match="owner"):
        await scrub(database.app_url)
    assert (await scrub(database.owner_url, wal=False)).steps


async def test_an_old_snapshot_is_named_and_the_next_scrub_finishes(
    database: Database, superuser: Connection, app: Connection
) -> None:
    async with app.transaction(isolation="repeatable_read"):
        await app.fetch("select 1")
        await erase_one(database)
        report = await scrub(database.superuser_url, wal=False, lock_timeout=0.05, attempts=2)
        assert {"dead_rows", "old_snapshot", "locked"} <= report.codes
        invalid = "select count(*) from pg_index where not indisvalid"
        assert await superuser.fetchval(invalid) == 0
        [dead] = [item for item in report.pending if item.code == "dead_rows"]
        assert "records (50)" in dead.detail
        [old] = [item for item in report.pending if item.code == "old_snapshot"]
        assert str(app.get_server_pid()) in old.detail
    report = await scrub(database.superuser_url, wal=False)
    assert report.codes <= {"wal", "free_space"}


async def test_what_keeps_copies_is_named(tmp_path: Any) -> None:
    settings = {
        **SEEN,
        "archive_command": "/bin/true",
        "archive_mode": "on",
        "fsync": "off",
        "max_prepared_transactions": "2",
        "wal_level": "logical",
    }
    async with embedded.serve(settings=settings) as server:
        superuser = await asyncpg.connect(server.superuser_url)
        try:
            assert (await scrub(server.superuser_url)).codes == {"archive", "server_log"}
            await superuser.execute("select pg_create_physical_replication_slot('copy', true)")
            await superuser.execute("begin; select pg_current_xact_id(); prepare transaction 'one'")
            report = await scrub(server.superuser_url)
            assert {
                "archive",
                "prepared_transaction",
                "replication_slot",
                "server_log",
                "wal",
            } <= report.codes
            await superuser.execute("rollback prepared 'one'")
            await superuser.execute("select pg_drop_replication_slot('copy')")
            assert (await scrub(server.superuser_url)).codes == {"archive", "server_log"}
        finally:
            await superuser.close()


async def test_files_of_queries_that_spilled_are_named(
    database: Database, superuser: Connection
) -> None:
    async with superuser.transaction():
        await superuser.execute("set local work_mem = '64kB'")
        rows = await superuser.cursor("select n from generate_series(1, 100000) as n order by -n")
        await rows.fetch(1)
        report = await scrub(database.superuser_url, wal=False)
        assert "temporary_files" in report.codes
    assert "temporary_files" not in (await scrub(database.superuser_url, wal=False)).codes


async def test_who_may_not_turn_recycling_off_is_told_so(
    database: Database, superuser: Connection
) -> None:
    owner = database.role("owner")
    await superuser.execute(f"grant pg_monitor, pg_checkpoint to {owner}")
    await superuser.execute(f"grant execute on function pg_switch_wal() to {owner}")
    try:
        report = await scrub(database.owner_url)
    finally:
        await superuser.execute(f"revoke pg_monitor, pg_checkpoint from {owner}")
    assert "wal_recycle" in report.codes
    assert "checkpoint" not in report.codes
    assert ("checkpoint", "files") in done(report)
    [removed] = [step for step in report.steps if step.action == "remove_wal"]
    assert not removed.done
    assert "wal_recycle" not in (await scrub(database.superuser_url)).codes


async def test_a_lock_is_not_waited_for_long_and_is_named(
    database: Database, superuser: Connection
) -> None:
    await erase_one(database)
    async with superuser.transaction():
        await superuser.execute("lock table memory.postings in share update exclusive mode")
        report = await scrub(database.superuser_url, wal=False, lock_timeout=0.02, attempts=2)
    refused = [step for step in report.steps if not step.done]
    assert {step.target for step in refused} == {"postings", "postings_pkey", "postings_record"}
    assert all(step.waited > 0 for step in refused if step.action == "vacuum")
    assert ("vacuum", "records") in done(report)
    assert "locked" in report.codes
    report = await scrub(database.superuser_url, wal=False)
    assert ("vacuum", "postings") in done(report)
    assert "locked" not in report.codes


async def test_the_application_reads_and_writes_meanwhile(database: Database) -> None:
    await erase_one(database)
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        work = asyncio.ensure_future(scrub(database.superuser_url))
        written = 0
        while not work.done():
            await memory.remember("shop", text="meanwhile", subject_keys="customer:bob")
            await memory.recall("shop", text="meanwhile", subject_keys="customer:bob")
            written += 1
        assert (await work).codes <= {"free_space", "dead_rows", "old_snapshot"}
        held = await memory.records("shop", subject_keys="customer:bob", limit=1000)
        assert len(held) == 50 + written


async def test_a_cancelled_scrub_leaves_nothing_and_is_finished_by_the_next(
    database: Database, superuser: Connection
) -> None:
    await erase_one(database)
    before = await contents(superuser)
    for action in ("vacuum", "overwrite", "reindex", "checkpoint"):
        reached = asyncio.Event()

        def watch(step: ScrubStep, action: str = action, reached: asyncio.Event = reached) -> None:
            if step.action == action:
                reached.set()

        work = asyncio.ensure_future(scrub(database.superuser_url, progress=watch))
        await reached.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert await contents(superuser) == before
    assert (await scrub(database.superuser_url)).codes <= {"free_space"}
    assert await superuser.fetchval("show wal_recycle") == "on"


async def test_a_half_built_index_is_dropped_and_others_are_not(
    database: Database, superuser: Connection
) -> None:
    for name in ("records_recent_ccnew", "records_recent_ccnew1", "handmade"):
        await superuser.execute(f"create index {name} on memory.records (tenant_key, occurred_at)")
    await superuser.execute(
        "update pg_index set indisvalid = false where indexrelid in"
        " ('memory.records_recent_ccnew'::regclass, 'memory.handmade'::regclass)"
    )
    report = await scrub(database.superuser_url, wal=False)
    assert ("drop", "records_recent_ccnew") in done(report)
    left = await superuser.fetch(
        "select relname from pg_class where relname in"
        " ('records_recent_ccnew', 'records_recent_ccnew1', 'handmade')"
    )
    assert {row["relname"] for row in left} == {"records_recent_ccnew1", "handmade"}


@pytest.mark.parametrize("role", ["superuser", "owner"])
async def test_statistics_that_somebody_let_be_gathered_are_removed(
    database: Database, superuser: Connection, role: str
) -> None:
    async with acting(superuser, "shop"):
        for _ in range(10):
            await remember(superuser, "shop", "ann")
    await superuser.execute("alter table memory.records alter column text set statistics 100")
    await superuser.execute("analyze memory.records")
    samples = (
        "select count(*) from pg_statistic as s join pg_attribute as a"
        " on a.attrelid = s.starelid and a.attnum = s.staattnum"
        " where s.starelid = 'memory.records'::regclass and a.attname = $1"
    )
    assert await superuser.fetchval(samples, "text") == 1
    await scrub(database.url(role), wal=False)
    assert await superuser.fetchval(samples, "text") == 0
    assert await superuser.fetchval(samples, "kind") == 1
    await superuser.execute("analyze memory.records")
    assert await superuser.fetchval(samples, "text") == 0


async def test_the_setting_for_recycling_is_put_back(
    database: Database, superuser: Connection
) -> None:
    kept = "select count(*) from pg_file_settings where name = 'wal_recycle'"
    await scrub(database.superuser_url)
    assert await superuser.fetchval(kept) == 0
    await superuser.execute("alter system set wal_recycle = on")
    await superuser.execute("select pg_reload_conf()")
    try:
        await scrub(database.superuser_url)
        assert await superuser.fetchval(kept) == 1
    finally:
        await superuser.execute("alter system reset wal_recycle")
        await superuser.execute("select pg_reload_conf()")


async def test_a_hosts_engine_keeps_its_settings(database: Database) -> None:
    engine = create_async_engine(normalize_url(database.superuser_url), pool_size=1)
    await scrub(engine, wal=False)
    async with engine.connect() as connection:
        shown = await connection.exec_driver_sql("show lock_timeout")
        assert shown.scalar() == "0"
    await engine.dispose()


async def test_the_report_names_no_content(database: Database) -> None:
    await erase_one(database)
    report = await scrub(database.owner_url)
    shown = repr(report) + report._repr_html_()
    assert "customer" not in shown
    assert "said" not in shown
    assert "free_space_unread" in report._repr_html_()
    assert "records_pkey" in report._repr_html_()


@pytest.mark.parametrize(
    "limits", [{"lock_timeout": 0}, {"lock_timeout": 4000}, {"attempts": 0}, {"attempts": 1001}]
)
async def test_limits_are_checked_before_anything_is_done(
    database: Database, limits: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(limits))):
        await scrub(database.superuser_url, **limits)


async def test_without_a_schema_or_a_server_it_says_so(server: Postgres) -> None:
    with server.empty() as database, pytest.raises(InstallError, match="alembic"):
        await scrub(database.superuser_url)
    with pytest.raises(StoreUnavailableError):
        await scrub("postgresql://nobody@127.0.0.1:1/none")
