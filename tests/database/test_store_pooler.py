"""Through PgBouncer in transaction mode, with fewer servers than callers, tenants never mix."""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import ConflictError, InstallError, Memory, Recall, StoreUnavailableError
from memory.engines import open_engine
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from pages import ROOT, Page
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


async def calls(engine: AsyncEngine, tenant: str, *, pooler: bool) -> set[str]:
    """Write and read from ten tasks at once; the classes of what went wrong."""
    memory = Memory(PostgresStore(engine, pooler=pooler), redactor=None, subject_pepper="pepper")
    wrong: set[str] = set()

    async def caller() -> None:
        for _ in range(5):
            try:
                await memory.remember(tenant, text="tea", subject_keys="ann")
                await memory.recall(tenant, text="tea", subject_keys="ann")
            except InstallError as error:
                wrong.add(str(error))

    await asyncio.gather(*(caller() for _ in range(10)))
    await engine.dispose()
    return wrong


UNPREPARED = {"a pooler loses prepared statements: PostgresStore(url, pooler=True)"}


async def test_this_pooler_does_lose_prepared_statements(pooled_url: str, tenant: str) -> None:
    """Else what passes through it would prove nothing; and the error says what to do."""
    host = create_async_engine(normalize_url(pooled_url), hide_parameters=True)
    assert await calls(host, tenant, pooler=True) == UNPREPARED
    unaware = Memory(PostgresStore(pooled_url), redactor=None, subject_pepper="pepper")
    with pytest.raises(InstallError) as caught:  # it sends start-up parameters too
        await unaware.remember(tenant, text="tea", subject_keys="ann")
    assert {str(caught.value)} == UNPREPARED
    await unaware.close()


async def test_an_engine_of_the_hosts_set_up_as_the_page_says_works(
    pooled_url: str, tenant: str, inspector: Connection
) -> None:
    page = Page(ROOT / "docs" / "deploy.md")
    [block] = [block for block in page.blocks("python") if "connect_args" in block.code]
    names = {"url": normalize_url(pooled_url), "pepper": "pepper"}
    imports = "from memory import Memory, PostgresStore\n"
    exec(imports + block.code, names)  # noqa: S102 - our own page
    engine: AsyncEngine = names["engine"]  # type: ignore[assignment]
    assert await calls(engine, tenant, pooler=True) == set()
    assert await broken_rules(inspector, tenant) == {}


async def test_no_prepared_statement_stays_on_a_server(pooled_url: str, tenant: str) -> None:
    """The protocol prepares every statement, unnamed: the next client finds none of them."""
    await on_both_servers(pooled_url, "deallocate all")  # what the clients above have left
    engine = open_engine(pooled_url, pooler=True)
    assert await calls(engine, tenant, pooler=True) == set()
    left = await on_both_servers(pooled_url, "select count(*) from pg_prepared_statements")
    assert left == [0, 0]


async def on_both_servers(pooled_url: str, statement: str) -> list[int | None]:
    """Run a statement on each server behind the pooler; return the numbers they answer."""
    engine = open_engine(pooled_url, pooler=True)
    pids, found = set(), []
    async with engine.begin() as first, engine.begin() as second:
        for connection in (first, second):
            pids.add(await connection.scalar(text("select pg_backend_pid()")))
            answer = await connection.execute(text(statement))
            found.append(answer.scalar() if answer.returns_rows else None)
    await engine.dispose()
    assert len(pids) == 2
    return found
