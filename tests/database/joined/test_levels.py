"""Isolation levels of the caller's: what a snapshot cannot see is refused, not missed."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from joining import Joined
from memory import ConflictError, InvalidInputError, Memory, RetryableError
from rawsql import Connection
from stores import leaks, rows_of

STRICTER = ["REPEATABLE READ", "SERIALIZABLE"]


@pytest.mark.parametrize("level", STRICTER)
async def test_an_erasure_is_refused_where_the_snapshot_would_miss_what_is_newer(
    engine: AsyncEngine, joined: Joined, own: Memory, tenant: str, level: Any
) -> None:
    told = (await own.remember(tenant, text="before", subject_keys="ann")).record
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level=level)
        memory = joined(connection)
        assert await memory.get(tenant, record_id=told)
        await own.remember(tenant, text="meanwhile", subject_keys="ann")
        for call in (
            memory.forget(tenant, subject_key="ann"),
            memory.forget_record(tenant, record_id=told),
        ):
            with pytest.raises(InvalidInputError, match="READ COMMITTED") as caught:
                await call
            assert leaks(caught.value, []) == []
        assert (await memory.forget(tenant, subject_key="ann", dry_run=True)).counts.memories == 1
        await memory.remember(tenant, text="the transaction goes on", subject_keys="ann")
        await connection.commit()
    assert await own.erasure_history(tenant) == []
    async with engine.begin() as connection:
        receipt = await joined(connection).forget(tenant, subject_key="ann")
    assert receipt.counts.memories == 3
    assert await own.records(tenant) == []


@pytest.mark.parametrize("level", STRICTER)
async def test_a_derive_from_what_was_erased_since_the_snapshot_fails_closed(
    engine: AsyncEngine, joined: Joined, own: Memory, superuser: Connection, tenant: str, level: Any
) -> None:
    told = (await own.remember(tenant, text="a needle", subject_keys="ann")).record
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level=level)
        assert await joined(connection).get(tenant, record_id=told)
        await own.forget(tenant, subject_key="ann")
        with pytest.raises(RetryableError):
            await joined(connection).derive(tenant, kind="summary", text="needle", sources=told)
        await connection.commit()
    assert "records" not in await rows_of(superuser, tenant)


@pytest.mark.parametrize("level", STRICTER)
async def test_a_version_superseded_since_the_snapshot_fails_closed(
    engine: AsyncEngine, joined: Joined, own: Memory, tenant: str, level: Any
) -> None:
    told = (await own.remember(tenant, text="tea", subject_keys="ann")).record
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level=level)
        memory = joined(connection)
        assert await memory.get(tenant, record_id=told)
        await own.supersede(tenant, record_id=told, text="milk")
        with pytest.raises(RetryableError):
            await memory.supersede(tenant, record_id=told, text="coffee")
        with pytest.raises((RetryableError, ConflictError)):
            await memory.remember(
                tenant, text="coffee", subject_keys="ann", record_key=str(told.record_id)
            )
        await connection.commit()
    assert [r.text for r in await own.records(tenant)] == ["milk"]


async def test_a_connection_in_autocommit_is_refused_and_stores_nothing(
    engine: AsyncEngine, joined: Joined, superuser: Connection, tenant: str
) -> None:
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        with pytest.raises(InvalidInputError, match="autocommit") as caught:
            await joined(connection).remember(tenant, text=tenant, subject_keys="ann")
        assert leaks(caught.value, [tenant]) == []
    assert await rows_of(superuser, tenant) == {}
