"""Ways around the cascade fail closed or cascade all the same."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import asyncpg
import pytest

from rawsql import (
    Connection,
    acting,
    damage,
    derive,
    forget,
    leftovers,
    link,
    living,
    refused,
    register,
    remember,
    tombstones,
    waits,
)
from servers import Database

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"


async def lineage(connection: Connection, tenant: str) -> dict[str, object]:
    """A person with a chain of three, and a bystander with a digest, that must survive."""
    root = await remember(connection, tenant, "ann")
    one = await derive(connection, tenant, root)
    two = await derive(connection, tenant, one)
    other = await remember(connection, tenant, "bob")
    digest = await derive(connection, tenant, other)
    return {"root": root, "gone": {root, one, two}, "kept": {other, digest}}


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
@pytest.mark.parametrize("made", ["derived record", "link", "artefact"])
async def test_a_delete_never_severs_what_its_snapshot_cannot_see(
    connect, inspector: Connection, tenant: str, made: str, isolation: str
) -> None:
    old, new = await connect("app"), await connect("app")
    async with acting(new, tenant):
        root = await remember(new, tenant, "ann")
        bystander = await remember(new, tenant, "bob")
    with refused("23503", "40001"):
        async with acting(old, tenant, isolation):
            await old.fetch("select from memory.records")
            async with acting(new, tenant):
                if made == "derived record":
                    await derive(new, tenant, root)
                elif made == "link":
                    await link(new, tenant, root, "dana")
                else:
                    await register(new, tenant, "vector-1", root)
            await old.execute(DELETE, tenant, root)
    assert root in await living(inspector, tenant)
    assert await damage(inspector, tenant) == []
    assert await tombstones(inspector, tenant) == []

    async with acting(old, tenant, isolation):
        await old.execute(DELETE, tenant, root)
    assert await living(inspector, tenant) == {bystander}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("how", ["delete", "forget"])
async def test_a_record_that_another_transaction_rewrites_meanwhile_goes_all_the_same(
    connect, inspector: Connection, tenant: str, how: str
) -> None:
    one, two = await connect("app"), await connect("app")
    async with acting(one, tenant):
        root = await remember(one, tenant, "ann")
        digest = await derive(one, tenant, root)
        kept = await remember(one, tenant, "bob")

    async def later() -> None:
        async with acting(two, tenant):
            if how == "delete":
                await two.execute(DELETE, tenant, root)
            else:
                await forget(two, tenant, "ann")

    async with acting(one, tenant):
        await one.execute(
            "update memory.records set superseded_at = now() where record_id = any ($1)",
            [digest, kept],
        )
        task = asyncio.create_task(later())
        await waits(task, inspector, two)
    await task
    assert await living(inspector, tenant) == {kept}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_forget_in_a_stricter_level_is_refused_whole(
    connect, inspector: Connection, tenant: str, isolation: str
) -> None:
    old, new = await connect("app"), await connect("app")
    async with acting(new, tenant):
        root = await remember(new, tenant, "ann")
    with refused("ME017"):
        async with acting(old, tenant, isolation):
            await old.fetch("select from memory.records")
            async with acting(new, tenant):
                await derive(new, tenant, root)
            await forget(old, tenant, "ann")
    assert len(await living(inspector, tenant)) == 2
    async with acting(old, tenant):
        await forget(old, tenant, "ann")
    assert await leftovers(inspector, tenant) == {}


async def host_table(owner: Connection, host: Connection, on: str) -> None:
    """A host's customers, a role without any right in our schema, and records that hang on them."""
    await owner.execute("create table public.customers (customer_id int primary key)")
    await owner.execute("grant select, insert, delete, truncate on public.customers to public")
    await owner.execute(
        "alter table memory.records add column customer_id int"
        " references public.customers on delete cascade"
    )
    await host.execute("insert into public.customers values (1), (2)")
    await owner.execute(f"create index on memory.records (customer_id) -- {on}")


async def test_a_hosts_table_cascades_for_a_role_that_has_no_rights_here(
    database: Database, superuser: Connection
) -> None:
    owner = await asyncpg.connect(database.owner_url)
    host = await asyncpg.connect(database.host_url)
    try:
        await host_table(owner, host, "delete")
        async with acting(owner, "acme"):
            made = await lineage(owner, "acme")
            await owner.execute(
                "update memory.records set customer_id = 1 where record_id = $1", made["root"]
            )
            await owner.execute(
                "update memory.records set customer_id = 2 where record_id = any ($1)",
                made["kept"],
            )
        with refused("42501"):
            await host.execute("delete from memory.records")
        with refused("ME007"):
            await owner.execute("truncate public.customers cascade")
        await host.execute("delete from public.customers where customer_id = 1")
        assert await living(superuser, "acme") == made["kept"]
        assert await damage(superuser, "acme") == []
        (stone,) = await tombstones(superuser, "acme")
        assert (stone["reason"], stone["memories"], stone["derived"]) == ("operator", 1, 2)
    finally:
        await host.close()
        await owner.close()


async def test_triggers_switched_off_fail_closed_at_commit(
    database: Database, superuser: Connection
) -> None:
    async with acting(superuser, "acme"):
        made = await lineage(superuser, "acme")
    with refused("23503"):
        async with acting(superuser, "acme"):
            await superuser.execute("alter table memory.records disable trigger user")
            await superuser.execute(DELETE, "acme", made["root"])
    assert await living(superuser, "acme") == made["gone"] | made["kept"]
    async with acting(superuser, "acme"):
        await superuser.execute(DELETE, "acme", made["root"])
    assert await living(superuser, "acme") == made["kept"]


async def test_as_a_replica_the_cascade_and_its_evidence_are_complete(
    connect, inspector: Connection, tenant: str
) -> None:
    connection = await connect("superuser")
    async with acting(connection, tenant):
        made = await lineage(connection, tenant)
    await connection.execute("set session_replication_role = replica")
    async with acting(connection, None):
        await connection.execute(DELETE, tenant, made["root"])
    assert await living(inspector, tenant) == made["kept"]
    assert len(await tombstones(inspector, tenant)) == 1
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("verb", ["forget", "sweep"])
async def test_with_immediate_constraints_a_raw_delete_is_refused_and_an_erasure_works(
    client: Connection, inspector: Connection, tenant: str, verb: str
) -> None:
    async with acting(client, tenant):
        made = await lineage(client, tenant)
        due = await remember(client, tenant, "ann", expires_at=datetime(2026, 1, 1, tzinfo=UTC))
    with refused("23503"):
        async with acting(client, tenant):
            await client.execute("set constraints all immediate")
            await client.execute(DELETE, tenant, made["root"])
    async with acting(client, tenant):
        await client.execute("set constraints all immediate")
        if verb == "forget":
            await forget(client, tenant, "ann")
        else:
            await client.execute("select memory.sweep($1)", tenant)
    gone = {due} | (made["gone"] if verb == "forget" else set())
    assert await living(inspector, tenant) == (made["gone"] | made["kept"] | {due}) - gone
    assert await damage(inspector, tenant) == []
