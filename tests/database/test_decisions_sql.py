"""Who decides about a person in psql, and whom a block refuses, in every role and level."""

from __future__ import annotations

import contextlib

import pytest

from deciding import actions, decide, decided, held
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
)

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"
ROLES = ["app", "operator", "owner", "superuser", "bypass"]
STRICTER = ISOLATION[1:]


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
        for given in ("null", "repeat('0', 64)"):
            hold = f"select subject_hash from memory.hold($1, 'ann', {given})"
            assert await client.fetchval(hold, tenant) == hash_of(tenant, "ann")


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
