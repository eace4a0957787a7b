"""What a hold keeps from SQL typed into psql, by every role, and what its release carries out."""

from __future__ import annotations

import json

import pytest

from deciding import actions, decide, decided, held
from memory.ids import uuid7
from rawsql import (
    ISOLATION,
    Connection,
    act,
    acting,
    damage,
    derive,
    forget,
    hash_of,
    living,
    refused,
    remember,
    tombstones,
)
from servers import Database

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"
ROLES = ["app", "operator", "owner", "superuser", "bypass"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("isolation", ISOLATION)
async def test_nobody_deletes_what_a_hold_keeps_and_everybody_deletes_beside_it(
    connect, client: Connection, inspector: Connection, tenant: str, role: str, isolation: str
) -> None:
    connection = await connect(role)
    async with acting(client, tenant):
        ann, bob = await remember(client, tenant, "ann"), await remember(client, tenant, "bob")
        root = await remember(client, tenant, "bob")
        digest = await derive(client, tenant, ann, root)
        of_bob = await derive(client, tenant, bob)
    await decided(client, "hold", tenant, "ann")
    assert await held(inspector, tenant) == {ann, digest}
    before = await inspector.fetch(
        "select r::text from memory.records as r where tenant_key = $1 order by 1", tenant
    )
    deletes = (
        (DELETE, ann),
        (DELETE, digest),
        # A record of somebody else, from which a held one was derived.
        (DELETE, root),
        ("delete from memory.records where tenant_key = $1 and record_id <> $2", uuid7()),
        (
            "merge into memory.records as r using (select $2::uuid as id) as s"
            " on r.tenant_key = $1 and r.record_id = s.id when matched then delete",
            root,
        ),
        (
            "with gone as (delete from memory.records where tenant_key = $1 and record_id = $2"
            " returning 1) select count(*) from gone",
            ann,
        ),
    )
    for statement, record_id in deletes:
        with refused("ME003"):
            async with acting(connection, tenant, isolation):
                await connection.execute(statement, tenant, record_id)
    after = await inspector.fetch(
        "select r::text from memory.records as r where tenant_key = $1 order by 1", tenant
    )
    assert after == before
    async with acting(connection, tenant, isolation):
        await connection.execute(DELETE, tenant, bob)
    assert await living(inspector, tenant) == {ann, root, digest}
    assert of_bob not in await living(inspector, tenant)
    assert await damage(inspector, tenant) == []


async def test_the_flag_of_a_person_keeps_their_records_whose_own_was_lost(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    owner = await connect("owner")
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        kept = {root, await derive(client, tenant, root)}
    async with acting(owner, tenant):
        await owner.execute("update memory.subjects set held = true where tenant_key = $1", tenant)
    for dry_run in (True, False):
        async with acting(client, tenant):
            receipt = await forget(client, tenant, "ann", dry_run=dry_run)
        assert (receipt["deferred"], receipt["held"], receipt["memories"]) == (True, 2, 0)
    assert await living(inspector, tenant) == kept
    assert await tombstones(inspector, tenant) == []
    await decided(await connect("operator"), "release", tenant, "ann")
    assert await living(inspector, tenant) == set()


async def test_a_delete_in_a_savepoint_is_refused_and_the_rest_of_the_transaction_stands(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
    await decided(client, "hold", tenant, "ann")
    async with acting(client, tenant):
        with refused("ME003"):
            async with client.transaction():
                await client.execute(DELETE, tenant, ann)
        bob = await remember(client, tenant, "bob")
    assert await living(inspector, tenant) == {ann, bob}


async def test_a_cascade_from_a_hosts_table_stops_at_a_hold(
    database: Database, owner: Connection, app: Connection, superuser: Connection, tenant: str
) -> None:
    await superuser.execute("create table public.customers (tenant text, id uuid primary key)")
    await superuser.execute(
        "alter table memory.records add column customer uuid"
        " references public.customers on delete cascade"
    )
    customers = [uuid7() for _ in range(2)]
    await superuser.executemany(
        "insert into public.customers values ($1, $2)", [(tenant, one) for one in customers]
    )
    kept = []
    for person, customer in zip(("ann", "bob"), customers, strict=True):
        async with acting(app, tenant):
            kept.append(await remember(app, tenant, person))
        await superuser.execute(
            "update memory.records set customer = $1 where record_id = $2", customer, kept[-1]
        )
    await decided(app, "hold", tenant, "ann")
    for isolation in ISOLATION:
        with refused("ME003"):
            async with superuser.transaction(isolation=isolation):
                await superuser.execute("delete from public.customers where id = $1", customers[0])
    await superuser.execute("delete from public.customers where id = $1", customers[1])
    assert await living(superuser, tenant) == {kept[0]}
    assert await superuser.fetchval("select count(*) from public.customers") == 1


async def test_a_deferred_erasure_is_recorded_in_codes_and_completed_in_psql(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    operator = await connect("operator")
    erasures = [uuid7() for _ in range(2)]
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann", kind="profile")
        other = await remember(client, tenant, "ann")
    await decided(client, "hold", tenant, "ann")
    async with acting(client, tenant):
        await forget(
            client, tenant, "ann", erasure=erasures[0], narrowed=["profile"], why="operator"
        )
    async with acting(client, tenant):
        await forget(client, tenant, single=other, erasure=erasures[1])
    rows = await inspector.fetch(
        "select subject_hash, erasure_id, reason, scope, kinds, record_id from memory.decisions"
        " where tenant_key = $1 and action = 'request' order by seq",
        tenant,
    )
    person = hash_of(tenant, "ann")
    assert [tuple(row) for row in rows] == [
        (person, erasures[0], "operator", "kinds", "profile", None),
        (person, erasures[1], "subject_request", "record", None, other),
    ]
    assert await living(inspector, tenant) == {ann, other}
    assert await tombstones(inspector, tenant) == []

    done = await decided(operator, "release", tenant, "ann")
    receipts = json.loads(str(done["receipts"]))
    assert [(r["scope"], r["reason"], r["memories"]) for r in receipts] == [
        ("kinds", "operator", 1),
        ("record", "subject_request", 1),
    ]
    assert "ann" not in str(done["receipts"])
    assert await living(inspector, tenant) == set()
    stones = await tombstones(inspector, tenant)
    assert [(s["erasure_id"], s["subject_hash"], s["scope"]) for s in stones] == [
        (erasures[0], person, "kinds"),
        (erasures[1], person, "record"),
    ]
    assert (await actions(inspector, tenant))[-2:] == ["complete", "complete"]


async def test_an_erasure_completed_by_a_release_is_rolled_back_with_it(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    operator = await connect("operator")
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
    await decided(client, "hold", tenant, "ann")
    async with acting(client, tenant):
        await forget(client, tenant, "ann")
    transaction = operator.transaction()
    await transaction.start()
    await act(operator, tenant)
    await decide(operator, "release", tenant, "ann")
    await transaction.rollback()
    assert await living(inspector, tenant) == {ann}
    assert await held(inspector, tenant) == {ann}
    assert await tombstones(inspector, tenant) == []
    await decided(operator, "release", tenant, "ann")
    assert await living(inspector, tenant) == set()
