"""Through PgBouncer in transaction mode, with fewer servers than callers, tenants never mix."""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from memory import ConflictError, Memory, Recall, StoreUnavailableError
from memory.stores.postgres import PostgresStore
from processes import pooler
from rawsql import Connection
from servers import Database
from stores import broken_rules, leaks

TASKS, CALLS = 20, 2_000


@pytest.fixture(scope="module")
def pooled_url(shared: Database) -> Iterator[str]:
    """The shared database through a pool of two servers."""
    host, port = shared.server.address
    url = make_url(shared.app_url)
    with (
        tempfile.TemporaryDirectory(prefix="pgbouncer-") as folder,
        pooler(
            host=host,
            port=f"{port} pool_size=2",  # one more setting on the line of the database
            logins={url.username or "": url.password or ""},
            user=Path(host).owner() if host.startswith("/") else "nobody",
            folder=Path(folder),
        ) as listening,
    ):
        pooled = url.set(host="127.0.0.1", port=listening, query={})
        yield pooled.render_as_string(hide_password=False)


@pytest.fixture
async def memory(pooled_url: str) -> AsyncIterator[Memory]:
    store = PostgresStore(pooled_url, pooler=True)
    memory = Memory(store, redactor=None, subject_pepper="pepper")
    yield memory
    await memory.close()


async def one_call(memory: Memory, chance: random.Random, tenant: str) -> set[str]:
    """One verb at random; the tenants of everything it returned."""
    kind = chance.randrange(10)
    if kind == 0:
        told = await memory.remember(
            tenant, text="tea", subject_keys=chance.choice(["bob", "cid"]), embedding=[1.0, 2.0]
        )
        return {told.record.tenant_key}
    if kind == 1:
        return {(await memory.forget(tenant, subject_key="bob")).tenant_key}
    if kind == 2:
        told = await memory.remember(tenant, text="tea", subject_keys="cid", record_key="k")
        made = await memory.derive(tenant, kind="summary", text="tea", sources=told.record)
        return {made.record.tenant_key}
    if kind == 3:
        return {record.tenant_key for record in await memory.records(tenant, limit=5)}
    answer: Recall
    if kind in (4, 5):
        answer = await memory.recall(tenant, embedding=[1.0, 2.0], limit=3)
    elif kind in (6, 7):
        answer = await memory.recall(tenant, text="tea", subject_keys="ann")
    else:
        answer = await memory.recall(tenant, subject_keys="ann")
    assert answer.hits
    return {hit.record.tenant_key for hit in answer.hits}


async def test_twenty_callers_of_two_tenants_share_two_servers_and_nothing_else(
    memory: Memory, shared: Database, inspector: Connection, tenant: str, neighbour: str
) -> None:
    for place in (tenant, neighbour):
        await memory.remember(place, text="tea", subject_keys="ann", embedding=[1.0, 2.0])
    conflicts = 0

    async def caller(number: int) -> None:
        nonlocal conflicts
        chance = random.Random(number)  # noqa: S311 - reproducible, not secret
        for _ in range(CALLS // TASKS):
            place = chance.choice([tenant, neighbour])
            try:
                assert await one_call(memory, chance, place) <= {place}
            except ConflictError:
                conflicts += 1  # two versions of one key at once

    async with asyncio.TaskGroup() as group:
        for number in range(TASKS):
            group.create_task(caller(number))
    assert conflicts < CALLS / 10
    servers = await inspector.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() and usename = $1",
        shared.role("app"),
    )
    assert 1 <= servers <= 2
    for prefix in (tenant, neighbour):
        assert await broken_rules(inspector, prefix) == {}


async def test_calls_cancelled_behind_the_pooler_leave_no_tenant_to_the_next(
    memory: Memory, tenant: str, neighbour: str
) -> None:
    chance = random.Random(3)  # noqa: S311
    for place in (tenant, neighbour):
        await memory.remember(place, text="tea", subject_keys="ann", embedding=[1.0, 2.0])
    for _ in range(60):
        call = asyncio.ensure_future(one_call(memory, chance, tenant))
        await asyncio.sleep(chance.uniform(0, 0.012))
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConflictError):
            await call
        assert await one_call(memory, chance, neighbour) <= {neighbour}


async def test_a_pooler_that_is_not_there_is_unavailable(tenant: str) -> None:
    store = PostgresStore(f"postgres://app:{tenant}@127.0.0.1:1/db", pooler=True)
    memory = Memory(store, redactor=None)
    with pytest.raises(StoreUnavailableError) as caught:
        await memory.remember(tenant, text=tenant, subject_keys="ann")
    assert leaks(caught.value, [tenant, "127.0.0.1"]) == []
    await memory.close()
