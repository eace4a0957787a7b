"""What an application, an operator or an attacker types into psql, for tests of the database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from memory.fingerprint import subject_hash
from memory.ids import uuid7

Connection = asyncpg.Connection

# Who may write at all: a rule holds for each of them.
WRITERS = ("app", "owner", "superuser", "bypass")
ISOLATION = ("read_committed", "repeatable_read", "serializable")
TENANT_TABLES = (
    "records",
    "record_subjects",
    "provenance",
    "postings",
    "subjects",
    "tenants",
    "tenant_counts",
    "pending_evidence",
    "tombstones",
    "chain_heads",
    "decisions",
    "artefacts",
    "purges",
    "purge_receipts",
)
TABLES = (*TENANT_TABLES, "artefact_claims", "installation")
RETRYABLE = {"40001", "40P01"}
# What may remain in a tenant once everybody is erased: hashes, counts and evidence.
CONTENT_TABLES = ("records", "record_subjects", "provenance", "postings", "artefacts")


def hash_of(tenant: str, person: str) -> str:
    """The hash under which these tests link a person."""
    return subject_hash(tenant, person, b"")


async def act(connection: Connection, tenant: str) -> None:
    """Set the tenant for the rest of the transaction."""
    await connection.execute("select set_config('app.current_tenant', $1, true)", tenant)


@contextlib.asynccontextmanager
async def acting(
    connection: Connection, tenant: str | None, isolation: Any = "read_committed"
) -> AsyncIterator[Connection]:
    """A transaction that commits at the end; with the tenant None, none is set."""
    async with connection.transaction(isolation=isolation):
        if tenant is not None:
            await act(connection, tenant)
        yield connection


@contextlib.contextmanager
def refused(*states: str) -> Iterator[None]:
    """The block is refused with one of these SQLSTATEs."""
    with pytest.raises(asyncpg.PostgresError) as caught:
        yield
    assert caught.value.sqlstate in states, f"{caught.value.sqlstate}: {caught.value}"


async def insert_record(
    connection: Connection,
    tenant: str,
    record_id: UUID | None = None,
    *,
    origin: str = "remembered",
    text: str = "a memory",
    kind: str = "episodic",
    expires_at: datetime | None = None,
) -> UUID:
    """A row of records and nothing else."""
    record_id = record_id or uuid7()
    await connection.execute(
        "insert into memory.records"
        " (tenant_key, record_id, origin, kind, text, expires_at, term_count)"
        " values ($1, $2, $3, $4, $5, $6, 1)",
        tenant,
        record_id,
        origin,
        kind,
        text,
        expires_at,
    )
    return record_id


async def link(connection: Connection, tenant: str, record_id: UUID, *people: str) -> None:
    """Say that the record is about these people."""
    await connection.execute(
        "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
        " select $1, $2, p.key, p.hash from unnest($3::text[], $4::text[]) as p (key, hash)",
        tenant,
        record_id,
        list(people),
        [hash_of(tenant, person) for person in people],
    )


async def source(connection: Connection, tenant: str, derived_id: UUID, *sources: UUID) -> None:
    """Say that the record was made from these."""
    await connection.execute(
        "insert into memory.provenance (tenant_key, derived_id, source_id)"
        " select $1, $2, s from unnest($3::uuid[]) as s",
        tenant,
        derived_id,
        list(sources),
    )


async def post(connection: Connection, tenant: str, record_id: UUID, *terms: str) -> None:
    """Post the words of a record."""
    await connection.execute(
        "insert into memory.postings (tenant_key, term, record_id, term_count)"
        " select $1, t, $2, 1 from unnest($3::text[]) as t",
        tenant,
        record_id,
        list(terms),
    )


async def register(
    connection: Connection, tenant: str, artefact: str, *sources: UUID, adapter: str = "index"
) -> None:
    """Register something outside the database that was made from these records."""
    await connection.execute(
        "insert into memory.artefacts (tenant_key, adapter, artefact_id, record_id)"
        " select $1, $2, $3, s from unnest($4::uuid[]) as s",
        tenant,
        adapter,
        artefact,
        list(sources),
    )


async def remember(
    connection: Connection,
    tenant: str,
    *people: str,
    record_id: UUID | None = None,
    kind: str = "episodic",
    expires_at: datetime | None = None,
) -> UUID:
    """A whole remembered record, in the caller's transaction."""
    record_id = await insert_record(connection, tenant, record_id, kind=kind, expires_at=expires_at)
    await link(connection, tenant, record_id, *people)
    await post(connection, tenant, record_id, "word")
    return record_id


async def derive(
    connection: Connection,
    tenant: str,
    *sources: UUID,
    record_id: UUID | None = None,
    kind: str = "summary",
) -> UUID:
    """A whole derived record, in the caller's transaction."""
    record_id = await insert_record(connection, tenant, record_id, origin="derived", kind=kind)
    await source(connection, tenant, record_id, *sources)
    await post(connection, tenant, record_id, "word")
    return record_id


async def forget(
    connection: Connection, tenant: str | None, person: str | None = None, **named: object
) -> asyncpg.Record:
    """Call memory.forget in the caller's transaction."""
    values = {
        "tenant": tenant,
        "person": person,
        "person_hash": None if person is None else hash_of(tenant or "", person),
        **named,
    }
    arguments = ", ".join(f"{name} => ${n}" for n, name in enumerate(values, 1))
    row = await connection.fetchrow(f"select * from memory.forget({arguments})", *values.values())
    assert row is not None
    return row


async def waits(
    task: asyncio.Task[None],
    inspector: Connection,
    connection: Connection,
    *,
    behind: Connection | None = None,
) -> None:
    """Return once the task's connection waits for a lock: of anybody, or of one."""
    pid = connection.get_server_pid()
    wanted = None if behind is None else behind.get_server_pid()
    async with asyncio.timeout(10):
        while True:
            blocking = await inspector.fetchval("select pg_blocking_pids($1)", pid)
            if blocking if wanted is None else wanted in blocking:
                return
            assert not task.done(), "it did not wait"
            await asyncio.sleep(0.01)


async def subjects_of(connection: Connection, tenant: str, record_id: UUID) -> set[str]:
    """Everybody the record is about."""
    rows = await connection.fetch(
        "select subject_key from memory.record_subjects where tenant_key = $1 and record_id = $2",
        tenant,
        record_id,
    )
    return {row["subject_key"] for row in rows}


async def living(superuser: Connection, tenant: str) -> set[UUID]:
    """The ids of every record of the tenant."""
    rows = await superuser.fetch(
        "select record_id from memory.records where tenant_key = $1", tenant
    )
    return {row["record_id"] for row in rows}


async def tombstones(superuser: Connection, tenant: str) -> list[asyncpg.Record]:
    """The tenant's tombstones, oldest first."""
    return await superuser.fetch(
        "select * from memory.tombstones where tenant_key = $1 order by seq", tenant
    )


_DAMAGE = {
    "a derived record without a source": """
        select count(*) from memory.records as r where r.tenant_key = $1 and r.origin = 'derived'
        and not exists (select from memory.provenance as p
            where p.tenant_key = $1 and p.derived_id = r.record_id)""",
    "an edge with a missing end": """
        select count(*) from memory.provenance as p where p.tenant_key = $1 and 2 <> (
            select count(*) from memory.records as r
            where r.tenant_key = $1 and r.record_id in (p.derived_id, p.source_id))""",
    "a record about nobody": """
        select count(*) from memory.records as r where r.tenant_key = $1
        and not exists (select from memory.record_subjects as l
            where l.tenant_key = $1 and l.record_id = r.record_id)""",
    "a subject of a source that the derived record lacks": """
        select count(*) from memory.provenance as p
        join memory.record_subjects as l on l.tenant_key = $1 and l.record_id = p.source_id
        where p.tenant_key = $1 and not exists (select from memory.record_subjects as k
            where k.tenant_key = $1 and k.record_id = p.derived_id
            and k.subject_key = l.subject_key)""",
    "a key with two hashes": """
        select count(*) from (select from memory.record_subjects as l where l.tenant_key = $1
            group by l.subject_key having count(distinct l.subject_hash) > 1) as k""",
    "evidence that was never sealed": """
        select count(*) from memory.pending_evidence as p where p.tenant_key = $1""",
    "a registration without its claim": """
        select count(*) from memory.artefacts as a where a.tenant_key = $1 and not exists (
            select from memory.artefact_claims as c
            where c.artefact_hash = memory.framed_hash(a.adapter, a.artefact_id)
            and c.claim_hash = memory.framed_hash(
                a.tenant_key, a.adapter, a.artefact_id, a.record_id::text))""",
    "a purge owed for what is registered": """
        select count(*) from memory.purges as p join memory.artefacts as a
            using (tenant_key, adapter, artefact_id) where p.tenant_key = $1""",
    "a count that is off": """
        select abs((select count(*) from memory.records as r where r.tenant_key = $1)
        - (select coalesce(sum(c.records), 0) from memory.tenant_counts as c
            where c.tenant_key = $1))""",
    **{
        f"a row of {table} without its record": f"""
        select count(*) from memory.{table} as x where x.tenant_key = $1 and not exists (
            select from memory.records as r
            where r.tenant_key = $1 and r.record_id = x.record_id)"""
        for table in ("record_subjects", "postings", "artefacts")
    },
}


async def damage(superuser: Connection, tenant: str) -> list[str]:
    """What is wrong with the tenant's rows; every test may end by asking."""
    return [name for name, query in _DAMAGE.items() if await superuser.fetchval(query, tenant)]


async def leftovers(superuser: Connection, tenant: str) -> dict[str, int]:
    """Rows of the tenant in each table that holds content, where there are any."""
    counts = {
        table: await superuser.fetchval(
            f"select count(*) from memory.{table} where tenant_key = $1", tenant
        )
        for table in CONTENT_TABLES
    }
    return {table: count for table, count in counts.items() if count}
