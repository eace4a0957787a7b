"""What one verb reads beside 150,000 other records of its tenant: counted in rows, not in time.

There are no statistics on keys, and tests run without autovacuum: whatever the planner believes of
the tables' sizes, the triggers must reach rows by probes. Counted is what the executor returned
from every table and index of the schema, the checks of foreign keys included.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest

from rawsql import (
    Connection,
    act,
    derive,
    forget,
    hash_of,
    link,
    register,
    remember,
)
from servers import Postgres

TENANT = "acme"
CROWD = 150_000
# Enough where the tables begin small: loading is most of a test's time.
LATER_CROWD = 50_000
PAST = datetime(2020, 1, 1, tzinfo=UTC)
VERBS = (
    "remember",
    "remember held",
    "derive",
    "derive held",
    "relate",
    "relate held",
    "register",
    "forget",
    "dry run",
    "delete",
    "block",
    "hold",
    "forget held",
    "release",
    "expire",
)
# A verb touches a few dozen rows, each through a handful of probes.
BOUND = 1_500

LOAD = (
    "insert into memory.records (tenant_key, record_id, origin, text, record_key, term_count)"
    " select $1, ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid,"
    " case when n % 5 = 0 then 'derived' else 'remembered' end, 'x', 'line-' || n, 1"
    " from generate_series($2::int, $3::int) as n",
    "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
    " select $1, ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid,"
    " 'crowd-' || n / 10, encode(sha256(('crowd-' || n / 10)::bytea), 'hex')"
    " from generate_series($2::int, $3::int) as n",
    "insert into memory.provenance (tenant_key, derived_id, source_id)"
    " select $1, ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid,"
    " ('00000000-0000-0000-0000-' || lpad((n - 1)::text, 12, '0'))::uuid"
    " from generate_series($2::int, $3::int) as n where n % 5 = 0",
    "insert into memory.postings (tenant_key, term, record_id, term_count)"
    " select $1, 'word', ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 1"
    " from generate_series($2::int, $3::int) as n",
    "insert into memory.artefacts (tenant_key, adapter, artefact_id, record_id)"
    " select $1, 'index', 'vector-' || n,"
    " ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid"
    " from generate_series($2::int, $3::int) as n where n % 10 = 1",
    "insert into memory.subjects (tenant_key, subject_hash)"
    " select $1, encode(sha256(('crowd-' || n)::bytea), 'hex')"
    " from generate_series($2::int / 10, $3::int / 10) as n on conflict do nothing",
)


async def load(superuser: Connection, first: int, last: int) -> None:
    """A crowd in the same tenant, fast: as a replica, without triggers."""
    await superuser.execute("set session_replication_role = replica")
    for statement in LOAD:
        await superuser.execute(statement, TENANT, first, last)
    await superuser.execute("set session_replication_role = origin")


async def rows_read(connection: Connection) -> int:
    """Rows that this transaction has had from tables and indexes."""
    read: int = await connection.fetchval(
        "select sum(pg_stat_get_xact_tuples_returned(oid))::bigint from pg_class"
        " where relnamespace = 'memory'::regnamespace and relkind in ('r', 'i')"
    )
    return read


async def verbs(connection: Connection, *, to_commit: bool = True) -> dict[str, int]:
    """What each verb reads, with what is deferred to the commit or not; each is rolled back."""
    read = {}
    for verb in VERBS:
        transaction = connection.transaction()
        await transaction.start()
        await act(connection, TENANT)
        roots = [
            await remember(connection, TENANT, "ann", "bob", expires_at=PAST) for _ in range(10)
        ]
        digest = await derive(connection, TENANT, *roots[:5])
        if verb == "release" or verb.endswith("held"):
            await connection.execute("select memory.hold($1, 'ann')", TENANT)
        if verb == "release":
            await forget(connection, TENANT, "ann")
        if verb == "relate held":
            call = "select memory.hold($1, 'dana', $2)"
            await connection.execute(call, TENANT, hash_of(TENANT, "dana"))
        await connection.execute("set constraints all immediate")
        await connection.execute("set constraints all deferred")
        before = await rows_read(connection)
        if verb in ("remember", "remember held"):
            await remember(connection, TENANT, "ann")
        elif verb in ("derive", "derive held"):
            await derive(connection, TENANT, digest, *roots)
        elif verb in ("relate", "relate held"):
            await link(connection, TENANT, roots[0], "dana")
        elif verb == "register":
            await register(connection, TENANT, "vector-of-ann", roots[0], digest)
        elif verb == "delete":
            # Planned anew each time, or the plan of the test's own statement would count.
            await connection.execute(
                f"delete from memory.records where tenant_key = '{TENANT}'"
                f" and record_id = '{roots[0]}'"
            )
        elif verb in ("hold", "release"):
            await connection.execute(f"select memory.{verb}($1, 'ann')", TENANT)
        elif verb == "expire":
            await connection.execute("select memory.sweep($1)", TENANT)
        elif verb == "block":
            await forget(connection, TENANT, "ann", block=True)
        else:
            await forget(connection, TENANT, "ann", dry_run=verb == "dry run")
        if to_commit:
            await connection.execute("set constraints all immediate")
        read[verb] = await rows_read(connection) - before
        await transaction.rollback()
    return read


@contextlib.asynccontextmanager
async def connected(*urls: str) -> AsyncIterator[list[Connection]]:
    opened = [await asyncpg.connect(url) for url in urls]
    try:
        yield opened
    finally:
        for connection in opened:
            await connection.close()


async def warm(connection: Connection) -> None:
    """Until every trigger has its plans."""
    for _ in range(6):
        await verbs(connection)


def within(read: dict[str, int]) -> None:
    assert {verb: rows for verb, rows in read.items() if rows > BOUND} == {}
    assert all(read.values()), "nothing was counted"


async def test_verbs_read_little_beside_a_crowd_never_analysed_and_analysed(
    server: Postgres,
) -> None:
    with server.migrated() as database:
        app = database.operator_url
        async with connected(database.superuser_url, app, app, app) as (superuser, old, *new):
            await warm(old)
            await load(superuser, 1, CROWD)
            within(await verbs(old))
            within(await verbs(new[0]))
            await superuser.execute("analyze")
            within(await verbs(old))
            within(await verbs(new[1]))


async def empty(superuser: Connection) -> None:
    """Delete everything, without evidence, as only a superuser can."""
    await superuser.execute("alter table memory.records disable trigger erase")
    await superuser.execute("set session_replication_role = replica")
    for table in ("records", "provenance", "record_subjects", "postings", "artefacts", "subjects"):
        await superuser.execute(f"delete from memory.{table}")
    await superuser.execute("set session_replication_role = origin")
    await superuser.execute("alter table memory.records enable always trigger erase")


@pytest.mark.parametrize("state", ["small and analysed", "emptied and vacuumed"])
async def test_verbs_read_little_once_a_table_has_outgrown_its_statistics(
    server: Postgres, state: str
) -> None:
    with server.migrated() as database:
        app = database.operator_url
        async with connected(database.superuser_url, app, app, app) as (superuser, old, own, new):
            # The checks of foreign keys are the server's own statements, planned with the settings
            # of the session: while a table is small they read it whole, and keep to it.
            await own.execute("set enable_seqscan = off")
            await load(superuser, 1, 50)
            await superuser.execute("analyze")
            if state == "emptied and vacuumed":
                await empty(superuser)
                await superuser.execute("vacuum")
            await warm(old)
            await warm(own)
            await load(superuser, 51, LATER_CROWD)
            within(await verbs(own))
            within(await verbs(old, to_commit=False))
            within(await verbs(new))


async def test_the_count_would_show_a_scan_of_the_tenant(
    server: Postgres,
) -> None:
    """The control: a statement that reads the tenant is far beyond the bound."""
    with server.migrated() as database:
        async with connected(database.superuser_url, database.app_url) as (superuser, app):
            await load(superuser, 1, 5_000)
            async with app.transaction():
                await act(app, TENANT)
                before = await rows_read(app)
                await app.fetch("select from memory.records where text = 'nothing'")
                assert await rows_read(app) - before > BOUND


@pytest.mark.parametrize("crowd", [0, 20_000])
async def test_a_thousand_records_are_erased_with_a_bounded_number_of_rows_each(
    server: Postgres, crowd: int
) -> None:
    with server.migrated() as database:
        async with connected(database.superuser_url, database.app_url) as (superuser, app):
            if crowd:
                await load(superuser, 1, crowd)
            read = {}
            for n in (250, 1_000):
                transaction = app.transaction()
                await transaction.start()
                await act(app, TENANT)
                ids = await app.fetch(
                    "insert into memory.records (tenant_key, record_id, text, term_count)"
                    " select $1, gen_random_uuid(), 'x', 1 from generate_series(1, $2::int)"
                    " returning record_id",
                    TENANT,
                    n,
                )
                await app.execute(
                    "insert into memory.record_subjects"
                    " (tenant_key, record_id, subject_key, subject_hash)"
                    " select $1, u, 'ann', $3 from unnest($2::uuid[]) as u",
                    TENANT,
                    [row["record_id"] for row in ids],
                    hash_of(TENANT, "ann"),
                )
                await app.execute("set constraints all immediate")
                before = await rows_read(app)
                receipt = await forget(app, TENANT, "ann")
                assert receipt["memories"] == n
                await app.execute("set constraints all immediate")
                read[n] = (await rows_read(app) - before) / n
                await transaction.rollback()
            assert max(read.values()) < 40
            assert read[1_000] < read[250] * 1.5
