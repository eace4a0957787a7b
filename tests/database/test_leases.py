"""Whoever works on a purge has it on a lease, which ends with him and settles nothing twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from rawsql import Connection, acting, hash_of, refused, register, remember, waits
from servers import Database

LEASE = (
    "select * from memory.lease_purges(tenant => $1, index_name => 'index', most => $2,"
    " duration => $3, token => $4, lasting => $5, due_only => $6, people => $7, since => $8)"
)
DEBT = "select * from memory.purges where tenant_key = $1"
LEASED = ("lease", "leased_at", "leased_until", "leased_pid")


async def owing(client: Connection, tenant: str, *artefacts: str, person: str = "ann") -> None:
    """Debts of these artefacts."""
    async with acting(client, tenant):
        record = await remember(client, tenant, person)
        for artefact in artefacts:
            await register(client, tenant, artefact, record)
    async with acting(client, tenant):
        await client.execute("delete from memory.records where record_id = $1", record)


async def lease(
    connection: Connection,
    tenant: str,
    *,
    most: int = 10,
    seconds: int = 60,
    token: UUID | None = None,
    lasting: bool = True,
    due_only: bool = False,
    people: list[str] | None = None,
    since: datetime | None = None,
) -> list[str]:
    async with acting(connection, tenant):
        rows = await connection.fetch(
            LEASE,
            tenant,
            most,
            timedelta(seconds=seconds),
            token or uuid4(),
            lasting,
            due_only,
            people,
            since,
        )
    return sorted(row["artefact_id"] for row in rows)


async def settle(connection: Connection, tenant: str, *artefacts: str) -> int:
    """Settle as who has confirmed these."""
    async with acting(connection, tenant):
        return await connection.fetchval(
            "select memory.settle_purges($1, 'index', array_agg(artefact_id),"
            " array_agg(erasure_id)) from memory.purges"
            " where tenant_key = $1 and artefact_id = any ($2)",
            tenant,
            list(artefacts),
        )


async def defer(
    connection: Connection, tenant: str, token: UUID, error: str | None, *artefacts: str
) -> None:
    async with acting(connection, tenant):
        await connection.execute(
            "select memory.defer_purges($1, 'index', $2, $3, $4, '1 hour')",
            tenant,
            list(artefacts),
            token,
            error,
        )


async def test_a_lease_is_nobody_elses_while_its_backend_lives(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    await owing(client, tenant, "a", "b")
    worker, other = await connect("app"), await connect("operator")
    assert await lease(worker, tenant, most=1) == ["a"]
    assert await lease(other, tenant) == ["b"]
    assert await lease(client, tenant) == []
    (pid,) = {row["leased_pid"] for row in await inspector.fetch(DEBT, tenant)} - {
        other.get_server_pid()
    }
    assert pid == worker.get_server_pid()


@pytest.mark.parametrize("role", ["app", "owner"])
async def test_a_lease_dies_with_its_backend(
    shared: Database, client: Connection, inspector: Connection, tenant: str, role: str
) -> None:
    await owing(client, tenant, "a")
    worker = await asyncpg.connect(shared.url(role))
    pid = worker.get_server_pid()
    assert await lease(worker, tenant, seconds=3_600) == ["a"]
    assert await lease(client, tenant) == []
    await worker.close()
    for _ in range(1_000):
        if not await inspector.fetchval(
            "select count(*) from pg_stat_activity where pid = $1", pid
        ):
            break
    assert await lease(client, tenant) == ["a"]


async def test_a_lease_through_a_pooler_ends_when_it_runs_out(
    shared: Database, client: Connection, inspector: Connection, tenant: str
) -> None:
    await owing(client, tenant, "a", "b")
    worker = await asyncpg.connect(shared.app_url)
    assert await lease(worker, tenant, lasting=False, most=1) == ["a"]
    assert await lease(worker, tenant, lasting=False, most=1, seconds=0) == ["b"]
    await worker.close()
    # The backend is gone, which says nothing about who used it.
    assert await lease(client, tenant) == ["b"]
    await inspector.execute(
        "update memory.purges set leased_until = now() where tenant_key = $1", tenant
    )
    assert [await lease(client, tenant) for _ in range(2)] == [["a"], ["b"]]


async def test_a_lease_dies_with_the_server(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    await owing(client, tenant, "a")
    assert await lease(client, tenant) == ["a"]
    assert await lease(inspector, tenant) == []
    await inspector.execute(
        "update memory.purges set leased_at = pg_postmaster_start_time() - interval '1 second'"
        " where tenant_key = $1",
        tenant,
    )
    assert await lease(inspector, tenant) == ["a"]


async def test_who_lost_the_lease_settles_what_was_confirmed_once_and_defers_nothing(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    await owing(client, tenant, "a", "b", "c")
    slow, next_one = uuid4(), uuid4()
    assert await lease(client, tenant, token=slow, seconds=0) == ["a", "b", "c"]
    assert await lease(inspector, tenant, token=next_one) == ["a", "b", "c"]
    await defer(client, tenant, slow, "OSError", "a", "b", "c")
    assert {row["lease"] for row in await inspector.fetch(DEBT, tenant)} == {next_one}
    confirmed = "select memory.settle_purges($1, 'index', $2, $3)"
    rows = await inspector.fetch(DEBT, tenant)
    values = ([row["artefact_id"] for row in rows], [row["erasure_id"] for row in rows])
    # One of them was erased again meanwhile: it is another debt.
    await inspector.execute(
        "update memory.purges set erasure_id = gen_random_uuid()"
        " where tenant_key = $1 and artefact_id = 'c'",
        tenant,
    )
    for expected in (2, 0):
        async with acting(client, tenant):
            assert await client.fetchval(confirmed, tenant, *values) == expected
    assert await settle(client, tenant, "c") == 1
    receipts = await inspector.fetch(
        "select adapter, artefacts from memory.purge_receipts where tenant_key = $1 order by seq",
        tenant,
    )
    assert [tuple(row) for row in receipts] == [("index", 2), ("index", 1)]


async def test_what_is_registered_while_its_purge_is_owed_is_owed_anew(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    """An older snapshot overlooks the debt; who purges then may not settle the newer one."""
    old = await connect("app")
    async with acting(client, tenant):
        bob = await remember(client, tenant, "bob")
    async with acting(old, tenant, "repeatable_read"):
        await old.fetch("select from memory.records")
        await owing(client, tenant, "a")
        assert await lease(client, tenant) == ["a"]
        await register(old, tenant, "a", bob)
    (first,) = await inspector.fetch(DEBT, tenant)
    async with acting(client, tenant):
        await client.execute("delete from memory.records where record_id = $1", bob)
    (second,) = await inspector.fetch(DEBT, tenant)
    assert second["erasure_id"] != first["erasure_id"]
    assert second["subject_hashes"] == sorted(hash_of(tenant, name) for name in ("ann", "bob"))
    assert [second[name] for name in LEASED] == [None] * len(LEASED)
    confirmed = "select memory.settle_purges($1, 'index', $2, $3)"
    async with acting(client, tenant):
        assert await client.fetchval(confirmed, tenant, ["a"], [first["erasure_id"]]) == 0
    assert await lease(client, tenant) == ["a"]
    assert await settle(client, tenant, "a") == 1


async def test_a_debt_that_is_being_settled_makes_nobody_wait(
    connect, client: Connection, tenant: str
) -> None:
    other = await connect("app")
    await other.execute("set lock_timeout = '2s'")
    await owing(client, tenant, "a", "b")
    async with acting(client, tenant):
        assert await settle(client, tenant, "a") == 1
        assert await lease(other, tenant) == ["b"]


async def test_a_debt_that_is_leased_anew_meanwhile_is_settled_all_the_same(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    other = await connect("app")
    await owing(client, tenant, "a")
    settled = []

    async def later() -> None:
        settled.append(await settle(client, tenant, "a"))

    async with acting(other, tenant):
        assert await lease(other, tenant) == ["a"]
        task = asyncio.create_task(later())
        await waits(task, inspector, client)
    await task
    assert settled == [1]


async def test_a_debt_that_is_written_to_meanwhile_is_deferred_all_the_same(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    token = uuid4()
    await owing(client, tenant, "a", "b")
    assert await lease(client, tenant, token=token) == ["a", "b"]
    # As an erasure does that adds people to a debt.
    other = await connect("superuser")
    async with acting(other, tenant):
        await other.execute(
            "update memory.purges set subject_hashes = subject_hashes"
            " where tenant_key = $1 and artefact_id = 'a'",
            tenant,
        )
        task = asyncio.create_task(defer(client, tenant, token, "OSError", "a"))
        await waits(task, inspector, client)
    await task
    errors = {
        row["artefact_id"]: (row["last_error"], row["lease"])
        for row in await inspector.fetch(DEBT, tenant)
    }
    assert errors == {"a": ("OSError", None), "b": (None, token)}


async def test_what_one_index_confirms_another_still_owes(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        record = await remember(client, tenant, "ann")
        for adapter in ("index", "other"):
            await register(client, tenant, "a", record, adapter=adapter)
    async with acting(client, tenant):
        await client.execute("delete from memory.records where record_id = $1", record)
    erasure = await inspector.fetchval(DEBT.replace("*", "erasure_id"), tenant)
    async with acting(client, tenant):
        settled = await client.fetchval(
            "select memory.settle_purges($1, 'index', '{a}', array[$2::uuid])", tenant, erasure
        )
    assert settled == 1
    assert [row["adapter"] for row in await inspector.fetch(DEBT, tenant)] == ["other"]


async def test_a_failure_leaves_its_class_a_count_and_a_time(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    await owing(client, tenant, "a", "b")
    for attempt in (1, 2):
        token = uuid4()
        assert await lease(client, tenant, token=token) == ["a", "b"]
        await defer(client, tenant, token, "TimeoutError", "a", "b")
        rows = await inspector.fetch(
            "select attempts, last_error, lease, next_try_at - now() > interval '59 minutes' as due"
            " from memory.purges where tenant_key = $1",
            tenant,
        )
        assert {tuple(row) for row in rows} == {(attempt, "TimeoutError", None, True)}
    assert await lease(client, tenant, due_only=True) == []
    await inspector.execute(
        "update memory.purges set next_try_at = now() where tenant_key = $1 and artefact_id = 'b'",
        tenant,
    )
    token = uuid4()
    assert await lease(client, tenant, due_only=True, token=token) == ["b"]
    # Cancelled: the index was not to blame.
    await defer(client, tenant, token, None, "b")
    kept = "select attempts, last_error from memory.purges where artefact_id = 'b'"
    assert tuple(await inspector.fetchrow(f"{kept} and tenant_key = $1", tenant)) == (
        2,
        "TimeoutError",
    )
    assert await lease(client, tenant, due_only=True) == ["b"]
    token = uuid4()
    assert "a" in await lease(client, tenant, token=token)
    with refused("23514"):
        await defer(client, tenant, token, "it said: Ann", "a")


async def test_debts_that_failed_as_often_are_leased_together(
    client: Connection, tenant: str
) -> None:
    await owing(client, tenant, "a", "b")
    token = uuid4()
    assert await lease(client, tenant, most=1, token=token) == ["a"]
    await defer(client, tenant, token, "OSError", "a")
    await owing(client, tenant, "c")
    assert await lease(client, tenant) == ["b", "c"]
    assert await lease(client, tenant) == ["a"]


async def test_a_drain_asks_once_for_each_debt_when_the_clock_is_set_back(
    client: Connection, tenant: str
) -> None:
    """Otherwise it would ask a failing index again and again until the clock has caught up."""
    await owing(client, tenant, "a", "b")
    began = datetime.now(UTC) + timedelta(hours=1)
    token = uuid4()
    assert await lease(client, tenant, token=token, most=1, since=began) == ["a"]
    await defer(client, tenant, token, "OSError", "a")
    assert await lease(client, tenant, token=token, since=began) == ["b"]
    await defer(client, tenant, token, "OSError", "b")
    assert await lease(client, tenant, since=began) == []
    assert await lease(client, tenant) == ["a", "b"]


async def test_only_the_debts_about_these_people_are_leased(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    await owing(client, tenant, "a")
    await owing(client, tenant, "b", person="bob")
    hashes = await inspector.fetchval(
        "select subject_hashes from memory.purges where tenant_key = $1 and artefact_id = 'b'",
        tenant,
    )
    assert await lease(client, tenant, people=list(hashes)) == ["b"]
    assert await lease(client, tenant) == ["a"]


async def test_no_lease_is_taken_in_the_transaction_that_erases(
    client: Connection, tenant: str
) -> None:
    """Two that do so at once would each see the other's claim, and nobody would purge."""
    async with acting(client, tenant):
        record = await remember(client, tenant, "ann")
        await register(client, tenant, "a", record)
    with refused("ME019"):
        async with acting(client, tenant):
            await client.execute("delete from memory.records")
            await client.fetch(LEASE, tenant, 10, timedelta(0), uuid4(), True, False, None, None)
    async with acting(client, tenant):
        await client.execute("delete from memory.records")
    assert await lease(client, tenant) == ["a"]


async def test_a_batch_reads_no_more_than_itself_beside_a_long_backlog(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    """In rows, not in time: 100 batches of a backlog must not each read all of it."""
    await inspector.execute(
        "insert into memory.purges (tenant_key, adapter, artefact_id, erasure_id, attempts)"
        " select $1, 'index', n::text, gen_random_uuid(), n % 3"
        " from generate_series(1, 30000) as n",
        tenant,
    )

    async def read() -> int:
        return await client.fetchval(
            "select sum(pg_stat_get_xact_tuples_returned(oid))::bigint from pg_class"
            " where relnamespace = 'memory'::regnamespace and relkind in ('r', 'i')"
        )

    token = uuid4()
    for step in ("lease", "settle", "lease again", "defer"):
        async with client.transaction():
            await client.execute("select set_config('app.current_tenant', $1, true)", tenant)
            before = await read()
            if step.startswith("lease"):
                values = (tenant, 1_000, timedelta(minutes=1), token, True, False, None, None)
                rows = await client.fetch(LEASE, *values)
                ids = [row["artefact_id"] for row in rows]
                assert len(ids) == 1_000
            elif step == "settle":
                erasures = [row["erasure_id"] for row in rows]
                settle_all = "select memory.settle_purges($1, 'index', $2, $3)"
                assert await client.fetchval(settle_all, tenant, ids, erasures) == 1_000
            else:
                give_back = "select memory.defer_purges($1, 'index', $2, $3, 'OSError', '1 hour')"
                await client.execute(give_back, tenant, ids, token)
            assert await read() - before < 10_000, step
