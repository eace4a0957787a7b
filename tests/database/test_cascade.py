"""A DELETE takes everything derived with it, whoever sends it and however."""

from __future__ import annotations

import itertools

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
    living,
    register,
    remember,
    tombstones,
)

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"


async def lineage(connection: Connection, tenant: str) -> dict[str, object]:
    """A person with a chain of three, and a bystander with a digest, that must survive."""
    root = await remember(connection, tenant, "ann")
    one = await derive(connection, tenant, root)
    two = await derive(connection, tenant, one)
    other = await remember(connection, tenant, "bob")
    digest = await derive(connection, tenant, other)
    return {"root": root, "gone": {root, one, two}, "kept": {other, digest}}


@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("app", "{}"),
        ("owner", "{}"),
        *itertools.product(["superuser", "bypass"], ["{}", None, "", "somebody-else"]),
    ],
)
async def test_a_delete_cascades_for_every_role_and_tenant_setting(
    connect, inspector: Connection, tenant: str, role: str, said: str | None, isolation: str
) -> None:
    writer, connection = await connect("app"), await connect(role)
    async with acting(writer, tenant):
        made = await lineage(writer, tenant)
    said = said and said.format(tenant)
    async with acting(connection, said, isolation):
        assert await connection.execute(DELETE, tenant, made["root"]) == "DELETE 1"
        # The delete has put the tenant back; then what it left to the commit.
        for pending in ("select", "set constraints all immediate"):
            await connection.execute(pending)
            now = await connection.fetchval("select current_setting('app.current_tenant', true)")
            assert (now or "") == (said or "")
    assert await living(inspector, tenant) == made["kept"]
    assert await damage(inspector, tenant) == []
    (stone,) = await tombstones(inspector, tenant)
    assert stone["subject_hash"] == hash_of(tenant, "ann")
    assert (stone["memories"], stone["derived"], stone["provenance_edges"]) == (1, 2, 2)
    assert (stone["reason"], stone["scope"]) == ("operator", "record")


@pytest.mark.parametrize("said", [None, "", "somebody-else"])
@pytest.mark.parametrize("role", ["app", "owner"])
async def test_a_role_under_rls_without_the_tenant_deletes_nothing(
    connect, inspector: Connection, tenant: str, role: str, said: str | None
) -> None:
    writer, connection = await connect("app"), await connect(role)
    async with acting(writer, tenant):
        made = await lineage(writer, tenant)
    async with acting(connection, said):
        assert await connection.execute(DELETE, tenant, made["root"]) == "DELETE 0"
    assert await living(inspector, tenant) == made["gone"] | made["kept"]
    async with acting(connection, tenant):
        assert await connection.execute(DELETE, tenant, made["root"]) == "DELETE 1"
    assert await living(inspector, tenant) == made["kept"]


@pytest.mark.parametrize("role", ["superuser", "bypass"])
async def test_one_delete_over_two_tenants_cascades_in_both(
    connect, inspector: Connection, tenant: str, neighbour: str, role: str
) -> None:
    connection = await connect(role)
    roots, kept = [], {}
    for name in (tenant, neighbour):
        async with acting(connection, name):
            made = await lineage(connection, name)
        roots.append(made["root"])
        kept[name] = made["kept"]
    async with acting(connection, None):
        await connection.execute("delete from memory.records where record_id = any ($1)", roots)
    for name in (tenant, neighbour):
        assert await living(inspector, name) == kept[name]
        assert await damage(inspector, name) == []
        (stone,) = await tombstones(inspector, name)
        assert (stone["seq"], stone["memories"], stone["derived"]) == (1, 1, 2)


async def test_the_same_ids_in_another_tenant_stay(
    connect, inspector: Connection, tenant: str, neighbour: str
) -> None:
    connection = await connect("superuser")
    root, digest = uuid7(), uuid7()
    for name in (tenant, neighbour):
        async with acting(connection, name):
            await remember(connection, name, "ann", record_id=root)
            await derive(connection, name, root, record_id=digest)
    async with acting(connection, None):
        await connection.execute(DELETE, tenant, root)
    assert await living(inspector, tenant) == set()
    assert await living(inspector, neighbour) == {root, digest}
    assert await tombstones(inspector, neighbour) == []
    assert await damage(inspector, neighbour) == []


STATEMENTS = {
    "merge": "merge into memory.records as r using (values ($1::text, $2::uuid)) as v (t, i)"
    " on r.tenant_key = v.t and r.record_id = v.i when matched then delete",
    "returning": DELETE + " returning record_id",
    "cte": f"with gone as ({DELETE} returning record_id) select count(*) from gone",
    "using": "delete from memory.records as r using memory.record_subjects as l"
    " where r.tenant_key = $1 and l.tenant_key = $1 and l.record_id = r.record_id"
    " and r.record_id = $2",
}


@pytest.mark.parametrize("form", STATEMENTS)
async def test_every_form_of_delete_cascades(
    client: Connection, inspector: Connection, tenant: str, form: str
) -> None:
    async with acting(client, tenant):
        made = await lineage(client, tenant)
    async with acting(client, tenant):
        await client.fetch(STATEMENTS[form], tenant, made["root"])
    assert await living(inspector, tenant) == made["kept"]
    assert await damage(inspector, tenant) == []


async def test_a_cursor_deletes_with_the_cascade(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        made = await lineage(client, tenant)
    async with acting(client, tenant):
        await client.execute(
            "declare walk cursor for select from memory.records"
            f" where record_id = '{made['root']}' for update"
        )
        await client.execute("move next from walk")
        await client.execute("delete from memory.records where current of walk")
    assert await living(inspector, tenant) == made["kept"]


async def test_a_delete_in_a_savepoint_that_is_rolled_back_and_redone(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        made = await lineage(client, tenant)
    async with acting(client, tenant):
        undone = client.transaction()
        await undone.start()
        await client.execute(DELETE, tenant, made["root"])
        await undone.rollback()
        assert await client.fetchval("select current_setting('app.current_tenant')") == tenant
        assert await client.execute(DELETE, tenant, made["root"]) == "DELETE 1"
    assert await living(inspector, tenant) == made["kept"]
    assert await damage(inspector, tenant) == []
    assert [stone["derived"] for stone in await tombstones(inspector, tenant)] == [2]


async def test_the_tenant_is_put_back_after_a_refusal_caught_inside_the_database(
    connect, inspector: Connection, tenant: str
) -> None:
    owner = await connect("owner")
    async with acting(owner, tenant):
        made = await derive(owner, tenant, await remember(owner, tenant, "ann"))
    superuser = await connect("superuser")
    async with acting(superuser, "somebody-else"):
        await superuser.execute(
            "do $$ begin delete from memory.provenance where derived_id = "
            f"'{made}'; exception when sqlstate 'ME004' then null; end $$"
        )
        said = await superuser.fetchval("select current_setting('app.current_tenant')")
    assert said == "somebody-else"
    assert made in await living(inspector, tenant)


async def test_the_same_ids_may_be_deleted_and_written_again_in_one_transaction(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        digest = await derive(client, tenant, root)
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, root)
        await remember(client, tenant, "ann", record_id=root)
        await derive(client, tenant, root, record_id=digest)
    assert await living(inspector, tenant) == {root, digest}
    assert await damage(inspector, tenant) == []
    assert len(await tombstones(inspector, tenant)) == 1


async def test_what_is_written_and_deleted_in_one_transaction_leaves_evidence_too(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        made = await lineage(client, tenant)
        await client.execute(DELETE, tenant, made["root"])
    assert await living(inspector, tenant) == made["kept"]
    assert len(await tombstones(inspector, tenant)) == 1
    assert await damage(inspector, tenant) == []


async def test_a_rollback_leaves_nothing_of_an_erasure(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        made = await lineage(client, tenant)
        await register(client, tenant, "vector-1", made["root"])
    transaction = client.transaction()
    await transaction.start()
    await act(client, tenant)
    await forget(client, tenant, "ann")
    await transaction.rollback()
    assert await living(inspector, tenant) == made["gone"] | made["kept"]
    assert await tombstones(inspector, tenant) == []
    for table in ("purges", "chain_heads", "pending_evidence"):
        assert not await inspector.fetchval(
            f"select count(*) from memory.{table} where tenant_key = $1", tenant
        )
    async with acting(client, tenant):
        await forget(client, tenant, "ann")
    assert await living(inspector, tenant) == made["kept"]
