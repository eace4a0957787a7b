"""Holds, releases, blocks and readmissions typed into psql, by every role, at every level."""

from __future__ import annotations

import contextlib
import json

import pytest

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
    link,
    living,
    refused,
    remember,
    tombstones,
)
from servers import Database

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"
ROLES = ["app", "operator", "owner", "superuser", "bypass"]
STRICTER = ISOLATION[1:]


async def decide(connection: Connection, verb: str, tenant: str, person: str) -> dict[str, object]:
    """Call memory.hold, release or readmit in the caller's transaction."""
    row = await connection.fetchrow(
        f"select * from memory.{verb}(tenant => $1, person => $2, person_hash => $3)",
        tenant,
        person,
        hash_of(tenant, person),
    )
    assert row is not None
    return dict(row)


async def decided(connection: Connection, verb: str, tenant: str, person: str) -> dict[str, object]:
    """The same in a transaction of its own."""
    async with acting(connection, tenant):
        return await decide(connection, verb, tenant, person)


async def held(inspector: Connection, tenant: str) -> set[object]:
    rows = await inspector.fetch(
        "select record_id from memory.records where tenant_key = $1 and held", tenant
    )
    return {row["record_id"] for row in rows}


async def actions(inspector: Connection, tenant: str) -> list[str]:
    rows = await inspector.fetch(
        "select action from memory.decisions where tenant_key = $1 order by seq", tenant
    )
    return [row["action"] for row in rows]


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


@pytest.mark.parametrize("role", ROLES)
async def test_every_role_holds_and_only_operators_release_and_readmit(
    connect, client: Connection, inspector: Connection, tenant: str, role: str
) -> None:
    connection = await connect(role)
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        await forget(client, tenant, "bob", block=True)
    row = await decided(connection, "hold", tenant, "ann")
    assert row["subject_hash"] == hash_of(tenant, "ann")
    assert await held(inspector, tenant) == {ann}
    may = role in ("operator", "owner", "superuser")
    for verb, person in (("release", "ann"), ("readmit", "bob")):
        if may:
            await decided(connection, verb, tenant, person)
        else:
            with refused("42501"):
                await decided(connection, verb, tenant, person)
    assert await held(inspector, tenant) == (set() if may else {ann})
    expected = ["block", "hold"] + (["release", "readmit"] if may else [])
    assert await actions(inspector, tenant) == expected
    with contextlib.nullcontext() if may else refused("ME005"):
        async with acting(client, tenant):
            await remember(client, tenant, "bob")


async def test_a_host_role_decides_nothing(connect, inspector: Connection, tenant: str) -> None:
    host = await connect("host")
    for verb in ("hold", "release", "readmit"):
        with refused("42501"):
            await decided(host, verb, tenant, "ann")
    for call in ("memory.block($1, $2, null)", "memory.decide($1, $2, 'release')"):
        for role in ("app", "operator", "host"):
            connection = await connect(role)
            with refused("42501"):
                async with acting(connection, tenant):
                    await connection.execute(f"select {call}", tenant, hash_of(tenant, "ann"))
    assert await actions(inspector, tenant) == []


async def test_a_decision_is_of_the_current_tenant(
    connect, client: Connection, inspector: Connection, tenant: str, neighbour: str
) -> None:
    operator = await connect("operator")
    async with acting(client, neighbour):
        theirs = await remember(client, neighbour, "ann")
    for verb in ("hold", "release", "readmit", "sweep"):
        for current in (tenant, "", None):
            with refused("ME012"):
                async with acting(operator, current):
                    if verb == "sweep":
                        await operator.execute(
                            "select memory.sweep($1, 'tenant', confirm => $1)", neighbour
                        )
                    else:
                        await decide(operator, verb, neighbour, "ann")
    await decided(operator, "hold", tenant, "ann")
    assert await held(inspector, neighbour) == set()
    assert await living(inspector, neighbour) == {theirs}
    assert await actions(inspector, neighbour) == []


@pytest.mark.parametrize("isolation", STRICTER)
async def test_holding_and_releasing_need_fresh_snapshots(
    connect, client: Connection, inspector: Connection, tenant: str, isolation: str
) -> None:
    operator = await connect("operator")
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
    for verb in ("hold", "release"):
        with refused("ME017"):
            async with acting(operator, tenant, isolation):
                await decide(operator, verb, tenant, "ann")
    with refused("ME017"):
        async with acting(operator, tenant, isolation):
            await operator.execute("select memory.sweep($1)", tenant)
    assert await actions(inspector, tenant) == []
    assert await held(inspector, tenant) == set()


async def test_a_hash_alone_names_nobody(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    """It would set the person's flag and leave the records as they are."""
    operator = await connect("operator")
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
    for verb in ("hold", "release", "readmit"):
        with refused("ME014"):
            async with acting(operator, tenant):
                await operator.execute(
                    f"select memory.{verb}($1, null, $2)", tenant, hash_of(tenant, "ann")
                )
    assert await actions(inspector, tenant) == []
    assert not await inspector.fetchval(
        "select bool_or(held) from memory.subjects where tenant_key = $1", tenant
    )


async def test_somebody_unknown_needs_a_hash(client: Connection, tenant: str) -> None:
    for given in (None, "ann", "0" * 63):
        with refused("ME014", "23514"):
            async with acting(client, tenant):
                await client.execute("select memory.hold($1, 'ann', $2)", tenant, given)
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
        row = await client.fetchrow("select * from memory.hold($1, 'ann')", tenant)
    assert row["subject_hash"] == hash_of(tenant, "ann")


async def test_a_rolled_back_decision_never_was(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
    transaction = client.transaction()
    await transaction.start()
    await act(client, tenant)
    await decide(client, "hold", tenant, "ann")
    row = await forget(client, tenant, "ann", block=True)
    assert (row["deferred"], row["held"]) == (True, 1)
    await transaction.rollback()
    assert await actions(inspector, tenant) == []
    assert await held(inspector, tenant) == set()
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
        await client.execute(DELETE, tenant, ann)


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


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("isolation", ISOLATION)
async def test_a_blocked_person_is_written_about_by_nobody(
    connect, client: Connection, inspector: Connection, tenant: str, role: str, isolation: str
) -> None:
    connection = await connect(role)
    async with acting(client, tenant):
        bob = await remember(client, tenant, "bob")
    async with acting(client, tenant):
        await forget(client, tenant, "ann", block=True)
    with refused("ME005"):
        async with acting(connection, tenant, isolation):
            await remember(connection, tenant, "ann")
    with refused("ME005"):
        async with acting(connection, tenant, isolation):
            await link(connection, tenant, bob, "ann")
    assert await living(inspector, tenant) == {bob}
    async with acting(connection, tenant, isolation):
        other = await remember(connection, tenant, "bob")
    assert await living(inspector, tenant) == {bob, other}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("isolation", STRICTER)
@pytest.mark.parametrize("what", ["remember", "derive"])
async def test_a_block_that_an_older_snapshot_cannot_see_is_not_passed_by(
    connect, inspector: Connection, tenant: str, what: str, isolation: str
) -> None:
    """Also of somebody held, whose records stay and could be derived from."""
    old, new = await connect("app"), await connect("app")
    async with acting(new, tenant):
        ann = await remember(new, tenant, "ann")
    if what == "derive":
        await decided(new, "hold", tenant, "ann")
    with refused("40001"):
        async with acting(old, tenant, isolation):
            await old.fetch("select from memory.records")
            async with acting(new, tenant):
                await forget(new, tenant, "ann", block=True)
            if what == "derive":
                await derive(old, tenant, ann)
            else:
                await remember(old, tenant, "ann")
    assert await living(inspector, tenant) == ({ann} if what == "derive" else set())


async def test_decisions_are_changed_by_nobody(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    await decided(client, "hold", tenant, "ann")
    for role in ("owner", "superuser"):
        connection = await connect(role)
        for change in (
            "delete from memory.decisions where tenant_key = $1",
            "update memory.decisions set action = 'release' where tenant_key = $1",
        ):
            with refused("ME010"):
                async with acting(connection, tenant):
                    await connection.execute(change, tenant)
    for role in ("app", "operator"):
        connection = await connect(role)
        with refused("42501"):
            async with acting(connection, tenant):
                await connection.execute(
                    "insert into memory.decisions (tenant_key, subject_hash, action)"
                    " values ($1, $2, 'release')",
                    tenant,
                    hash_of(tenant, "ann"),
                )
    assert await actions(inspector, tenant) == ["hold"]
