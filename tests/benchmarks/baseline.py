"""The same work by raw asyncpg: a plain table, prepared statements, binary COPY.

Two yardsticks: one row in one plain table, and the rows that ours writes in tables like ours, with
the same checks and indexes, but without policies, triggers and foreign keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID, uuid4

import asyncpg

Row = tuple[str, UUID, str, Sequence[float], str]

COLUMNS = ("tenant_key", "record_id", "text", "embedding", "subject_key")
TABLE = """
create schema raw;
create table raw.items (
    tenant_key text collate "C" not null,
    record_id uuid not null,
    text text not null,
    embedding real[] not null,
    subject_key text collate "C" not null,
    primary key (tenant_key, record_id)
);
create index on raw.items (tenant_key, subject_key);
alter table raw.items alter column embedding set storage external;
create table raw.records (like memory.records including all);
create table raw.record_subjects (like memory.record_subjects including all);
create table raw.provenance (like memory.provenance including all);
create table raw.postings (like memory.postings including all);
"""
INSERT = "insert into raw.items values ($1, $2, $3, $4, $5)"
SEARCH = """
select record_id, text, subject_key, 1 - (embedding::vector <=> $3::real[]::vector) as score
from raw.items where tenant_key = $1 and subject_key = $2
order by embedding::vector <=> $3::real[]::vector limit 8
"""
DELETE = "delete from raw.items where tenant_key = $1 and subject_key = $2"
INSERT_ALIKE = """
with r as (
    insert into raw.records (tenant_key, record_id, text, embedding) values ($1, $2, $3, $4)
), l as (
    insert into raw.record_subjects (tenant_key, record_id, subject_key, subject_hash)
    values ($1, $2, $5, repeat('0', 64))
)
insert into raw.postings (tenant_key, term, record_id)
select $1, u.term, $2 from unnest(string_to_array($3, ' ')) as u (term)
"""
# A summary of the first of them stands for all that was derived: as many rows, as many edges.
DERIVE_ALIKE = """
with r as (
    insert into raw.records (tenant_key, record_id, origin, text) values ($1, $2, 'derived', $3)
), l as (
    insert into raw.record_subjects (tenant_key, record_id, subject_key, subject_hash)
    values ($1, $2, $4, repeat('0', 64))
), e as (
    insert into raw.provenance (tenant_key, derived_id, source_id)
    select $1, $2, u.id from unnest($5::uuid[]) as u (id)
)
insert into raw.postings (tenant_key, term, record_id)
select $1, u.term, $2 from unnest(string_to_array($3, ' ')) as u (term)
"""
DELETE_ALIKE = """
with r as (delete from raw.records where tenant_key = $1 and record_id = any ($2)),
l as (delete from raw.record_subjects where tenant_key = $1 and record_id = any ($2)),
e as (delete from raw.provenance where tenant_key = $1 and derived_id = any ($2))
delete from raw.postings where tenant_key = $1 and record_id = any ($2)
"""


async def create(superuser_url: str, role: str) -> None:
    """Make the table, and let the application's role use it as it uses ours."""
    connection = await asyncpg.connect(superuser_url)
    await connection.execute(TABLE)
    await connection.execute(f"grant usage on schema raw to {role}")
    await connection.execute(f"grant select, insert, delete on all tables in schema raw to {role}")
    await connection.close()


class Baseline:
    """One connection with its statements prepared; every call commits by itself."""

    def __init__(self, connection: asyncpg.Connection[Any], statements: Sequence[Any]) -> None:
        self._connection = connection
        self._insert, self._search, self._delete = statements[:3]
        self._insert_alike, self._derive_alike, self._delete_alike = statements[3:]

    @classmethod
    async def connect(cls, url: str) -> Baseline:
        connection = await asyncpg.connect(url)
        plain, alike = (INSERT, SEARCH, DELETE), (INSERT_ALIKE, DERIVE_ALIKE, DELETE_ALIKE)
        statements = [await connection.prepare(sql) for sql in (*plain, *alike)]
        return cls(connection, statements)

    async def insert(self, row: Row) -> None:
        await self._insert.fetch(*row)

    async def search(self, tenant: str, subject: str, vector: Sequence[float]) -> list[Any]:
        return list(await self._search.fetch(tenant, subject, vector))

    async def delete(self, tenant: str, subject: str) -> None:
        await self._delete.fetch(tenant, subject)

    async def insert_alike(self, row: Row) -> None:
        """Write what ours writes: the record, its link and its postings, in one statement."""
        await self._insert_alike.fetch(*row)

    async def tell_alike(self, tenant: str, subject: str, rows: Sequence[Row]) -> list[UUID]:
        """Write records and a quarter as many derived from four each; return all ids."""
        ids = [row[1] for row in rows]
        for row in rows:
            await self._insert_alike.fetch(*row)
        derived = [uuid4() for _ in range(len(rows) // 4)]
        for number, record_id in enumerate(derived):
            sources = ids[4 * number : 4 * number + 4]
            await self._derive_alike.fetch(tenant, record_id, rows[0][2], subject, sources)
        return ids + derived

    async def delete_alike(self, tenant: str, ids: Sequence[UUID]) -> None:
        """Delete these records with links, edges and postings, in one statement."""
        await self._delete_alike.fetch(tenant, ids)

    async def copy(self, rows: Iterable[Row]) -> None:
        await self._connection.copy_records_to_table(
            "items", schema_name="raw", columns=COLUMNS, records=rows
        )

    async def close(self) -> None:
        await self._connection.close()
