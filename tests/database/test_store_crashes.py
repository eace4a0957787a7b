"""Client or server is killed in the middle of an erasure: all is there without a tombstone, or all
is gone with one. And what a stopped server looks like to who was using it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from crashes import Crashable, Forgetter, crashable
from memory import Memory, StoreUnavailableError
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from stores import broken_rules, image, leaks

BIG = 800
DERIVED = 40
CLIENT_KILLS = 20
SERVER_KILLS = 5


@pytest.fixture(scope="module")
def server() -> Iterator[Crashable]:
    with crashable() as server:
        yield server


@pytest.fixture
async def engine(server: Crashable) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(normalize_url(server.url))
    yield engine
    await engine.dispose()


@pytest.fixture
def memory(engine: AsyncEngine) -> Memory:
    return Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")


async def big_person(memory: Memory, tenant: str) -> None:
    """Ann with many records and digests, one of which is about Bob too; and Zoe beside them."""
    items = [{"text": f"tea {n}", "subject_keys": "ann"} for n in range(BIG - 1)]
    told = await memory.remember_many(
        tenant, items=[*items, {"text": "tea for two", "subject_keys": ["ann", "bob"]}]
    )
    records = [one.record for one in told]
    size = BIG // DERIVED
    await asyncio.gather(
        *(
            memory.derive(
                tenant, kind="summary", text="teas", sources=records[n * size : (n + 1) * size]
            )
            for n in range(DERIVED)
        )
    )


async def bystander(memory: Memory, tenant: str) -> None:
    told = (await memory.remember(tenant, text="milk", subject_keys="zoe")).record
    await memory.derive(tenant, kind="summary", text="milk", sources=told)


class Witness:
    """What stands in the database, by a superuser's connection of its own."""

    def __init__(self, server: Crashable, tenant: str) -> None:
        self._server = server
        self._tenant = tenant
        self.stones = 0

    async def _connect(self) -> Connection:
        return await asyncpg.connect(self._server.superuser_url)

    async def quiet(self) -> None:
        """No backend of the application works any more."""
        connection = await self._connect()
        for _ in range(1_000):
            if not await connection.fetchval(
                "select count(*) from pg_stat_activity"
                " where usename = 'memory_app' and state <> 'idle'"
            ):
                break
            await asyncio.sleep(0.01)
        await connection.close()

    async def bystander(self) -> list[str]:
        """Zoe's rows in the same tenant, as text."""
        connection = await self._connect()
        rows = []
        for table, column in (
            ("records", "record_id"),
            ("record_subjects", "record_id"),
            ("postings", "record_id"),
            ("provenance", "derived_id"),
        ):
            rows += await connection.fetch(
                f"select t::text as row from memory.{table} as t where t.tenant_key = $1"
                f" and t.{column} in (select l.record_id from memory.record_subjects as l"
                " where l.tenant_key = $1 and l.subject_key = 'zoe') order by 1",
                self._tenant,
            )
        rows += [
            {"row": row}
            for table in (await image(connection, f"{self._tenant}-other")).values()
            for row in table
        ]
        await connection.close()
        return [row["row"] for row in rows]

    async def erased(self) -> bool:
        """Whether all of Ann went, with a tombstone; fails for anything between all and nothing."""
        connection = await self._connect()
        assert await broken_rules(connection) == {}
        left = await connection.fetchrow(
            "select count(*) filter (where r.origin = 'remembered'),"
            " count(*) filter (where r.origin = 'derived'),"
            " (select count(*) from memory.postings as p where p.tenant_key = $1),"
            " (select count(*) from memory.provenance as p where p.tenant_key = $1)"
            " from memory.records as r where r.tenant_key = $1",
            self._tenant,
        )
        counts = await connection.fetch(
            "select memories, derived, provenance_edges from memory.tombstones"
            " where tenant_key = $1 order by seq",
            self._tenant,
        )
        await connection.close()
        new = [tuple(row) for row in counts[self.stones :]]
        self.stones = len(counts)
        whole = (BIG + 1, DERIVED + 1, 2 * BIG + 1 + DERIVED + 2, BIG + 1)
        if not new:
            assert tuple(left) == whole
            return False
        assert new == [(BIG, DERIVED, BIG)]
        assert tuple(left) == (1, 1, 2, 1)
        return True


@pytest.fixture
async def witness(server: Crashable, memory: Memory, tenant: str) -> Witness:
    await bystander(memory, tenant)
    await bystander(memory, f"{tenant}-other")
    await big_person(memory, tenant)
    return Witness(server, tenant)


async def test_a_client_killed_while_it_forgets_leaves_all_or_nothing(
    server: Crashable, memory: Memory, witness: Witness, tenant: str
) -> None:
    chance = random.Random(4)  # noqa: S311 - reproducible, not secret
    before = await witness.bystander()
    forgetter = Forgetter(server.url)
    needed = 0.0
    for _ in range(2):  # the first one also warms the machine up
        started = time.monotonic()
        forgetter.start(tenant, "ann")
        assert forgetter.outcome() == "done"
        needed = time.monotonic() - started
        assert await witness.erased()
        await big_person(memory, tenant)
    outcomes = []
    for number in range(CLIENT_KILLS * 3):
        pid = forgetter.start(tenant, "ann")
        time.sleep(needed * (number % CLIENT_KILLS + chance.random()) / CLIENT_KILLS)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        killed = forgetter.outcome() == "killed"
        await witness.quiet()
        erased = await witness.erased()
        assert erased or killed
        assert await witness.bystander() == before
        if erased:
            await big_person(memory, tenant)
        outcomes += [erased] if killed else []
        if len(outcomes) == CLIENT_KILLS:
            break
    forgetter.close()
    assert len(outcomes) == CLIENT_KILLS
    assert not all(outcomes)
    await memory.forget(tenant, subject_key="ann")
    assert await witness.erased()


async def test_a_server_killed_while_it_forgets_recovers_to_all_or_nothing(
    server: Crashable, engine: AsyncEngine, memory: Memory, witness: Witness, tenant: str
) -> None:
    chance = random.Random(5)  # noqa: S311 - reproducible, not secret
    before = await witness.bystander()
    loop = asyncio.get_running_loop()
    started = loop.time()
    await memory.forget(tenant, subject_key="ann")
    needed = loop.time() - started
    assert await witness.erased()
    await big_person(memory, tenant)
    unavailable = 0
    for number in range(SERVER_KILLS):
        call = asyncio.ensure_future(memory.forget(tenant, subject_key="ann"))
        await asyncio.sleep(needed * (number + chance.random()) / SERVER_KILLS)
        server.kill()
        (outcome,) = await asyncio.gather(call, return_exceptions=True)
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, StoreUnavailableError)
            assert leaks(outcome, [tenant]) == []
            unavailable += 1
        server.start()
        await engine.dispose()  # a call that ended before the kill told the pool nothing
        erased = await witness.erased()
        assert erased or isinstance(outcome, StoreUnavailableError)
        assert await witness.bystander() == before
        if erased:
            await big_person(memory, tenant)
    assert unavailable >= SERVER_KILLS // 2
    await memory.forget(tenant, subject_key="ann")
    assert await witness.erased()


async def test_a_stopped_server_is_unavailable_and_used_again_when_it_is_back(
    server: Crashable, memory: Memory, tenant: str
) -> None:
    await asyncio.gather(
        *(memory.remember(tenant, text="tea", subject_keys="ann") for _ in range(3))
    )
    server.stop()
    for _ in range(2):
        with pytest.raises(StoreUnavailableError) as caught:
            await memory.remember(tenant, text=tenant, subject_keys="ann")
        assert leaks(caught.value, [tenant, str(server.data)]) == []
        assert not (await memory.ready()).ready
    server.start()
    assert (await memory.ready()).ready
    assert len(await memory.records(tenant)) == 3


async def test_a_wrong_password_is_unavailable_and_not_quoted(
    server: Crashable, tenant: str
) -> None:
    password = f"password-of-{tenant}"
    admin = await asyncpg.connect(server.superuser_url)
    rules = server.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all memory_app scram-sha-256\n{before}")
    try:
        await admin.execute("alter role memory_app password 'the right one'")
        await admin.execute("select pg_reload_conf()")
        await asyncio.sleep(0.2)
        for given, right in ((password, False), ("the right one", True)):
            engine = create_async_engine(normalize_url(server.url).set(password=given))
            memory = Memory(PostgresStore(engine))
            if right:
                assert await memory.records(tenant) == []
            else:
                with pytest.raises(StoreUnavailableError, match="28P01") as caught:
                    await memory.records(tenant)
                assert leaks(caught.value, [password, "memory_app"]) == []
            await engine.dispose()
    finally:
        rules.write_text(before)
        await admin.execute("select pg_reload_conf()")
        await admin.close()
