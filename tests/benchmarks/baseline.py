"""The same work by raw asyncpg: a plain table, prepared statements, binary COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

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
"""
INSERT = "insert into raw.items values ($1, $2, $3, $4, $5)"
SEARCH = """
select record_id, text, subject_key, 1 - (embedding::vector <=> $3::real[]::vector) as score
from raw.items where tenant_key = $1 and subject_key = $2
order by embedding::vector <=> $3::real[]::vector limit 8
"""
DELETE = "delete from raw.items where tenant_key = $1 and subject_key = $2"


async def create(superuser_url: str, role: str) -> None:
    """Make the table, and let the application's role use it as it uses ours."""
    connection = await asyncpg.connect(superuser_url)
    await connection.execute(TABLE)
    await connection.execute(f"grant usage on schema raw to {role}")
    await connection.execute(f"grant select, insert, delete on raw.items to {role}")
    await connection.close()


class Baseline:
    """One connection with its statements prepared; every call commits by itself."""

    def __init__(self, connection: asyncpg.Connection[Any], statements: Sequence[Any]) -> None:
        self._connection = connection
        self._insert, self._search, self._delete = statements

    @classmethod
    async def connect(cls, url: str) -> Baseline:
        connection = await asyncpg.connect(url)
        statements = [await connection.prepare(sql) for sql in (INSERT, SEARCH, DELETE)]
        return cls(connection, statements)

    async def insert(self, row: Row) -> None:
        await self._insert.fetch(*row)

    async def search(self, tenant: str, subject: str, vector: Sequence[float]) -> list[Any]:
        return list(await self._search.fetch(tenant, subject, vector))

    async def delete(self, tenant: str, subject: str) -> None:
        await self._delete.fetch(tenant, subject)

    async def copy(self, rows: Iterable[Row]) -> None:
        await self._connection.copy_records_to_table(
            "items", schema_name="raw", columns=COLUMNS, records=rows
        )

    async def close(self) -> None:
        await self._connection.close()
