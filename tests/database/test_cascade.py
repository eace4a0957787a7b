"""A DELETE takes everything derived with it, whoever sends it and however."""

from __future__ import annotations

import asyncio
import itertools

import asyncpg
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
    leftovers,
    link,
    living,
    refused,
    register,
    remember,
    source,
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


@pytest.mark.parametrize("start", ["root", "inside"])
async def test_a_cycle_made_by_hand_is_erased_whole(
    client: Connection, inspector: Connection, tenant: str, start: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        bystander = await remember(client, tenant, "bob")
        one = await derive(client, tenant, root)
        two = await derive(client, tenant, one)
        await source(client, tenant, one, two)
    async with acting(client, tenant):
        if start == "root":
            receipt = await forget(client, tenant, "ann")
            assert (receipt["derived"], receipt["provenance_edges"]) == (2, 3)
            assert receipt["cascade_depth"] == 2
        else:
            await client.execute(DELETE, tenant, two)
    kept = {bystander} if start == "root" else {bystander, root}
    assert await living(inspector, tenant) == kept
    assert await damage(inspector, tenant) == []


async def test_a_chain_of_ten_thousand_is_erased_whole(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    """Cascades nested one per level end at about a thousand with "stack depth limit exceeded"."""
    chain = [uuid7() for _ in range(10_000)]
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        await remember(client, tenant, "bob")
        await client.execute(
            "insert into memory.records (tenant_key, record_id, origin, text)"
            " select $1, u, 'derived', 'x' from unnest($2::uuid[]) as u",
            tenant,
            chain,
        )
        await client.execute(
            "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
            " select $1, u, 'ann', $3 from unnest($2::uuid[]) as u",
            tenant,
            chain,
            hash_of(tenant, "ann"),
        )
        await client.execute(
            "insert into memory.provenance (tenant_key, derived_id, source_id)"
            " select $1, d, s from unnest($2::uuid[], $3::uuid[]) as e (d, s)",
            tenant,
            chain,
            [root, *chain[:-1]],
        )
    async with acting(client, tenant):
        dry = await forget(client, tenant, "ann", dry_run=True)
        assert (dry["derived"], dry["cascade_depth"]) == (10_000, 0)
        single = await forget(client, tenant, single=root, dry_run=True)
        assert (single["derived"], single["cascade_depth"]) == (10_000, 10_000)
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, root)
    assert len(await living(inspector, tenant)) == 1
    assert await damage(inspector, tenant) == []
    (stone,) = await tombstones(inspector, tenant)
    assert (stone["memories"], stone["derived"]) == (1, 10_000)


@pytest.mark.parametrize("how", ["forget", "delete"])
async def test_twenty_thousand_records_and_five_thousand_derived_are_erased_whole(
    client: Connection, inspector: Connection, tenant: str, how: str
) -> None:
    roots = [uuid7() for _ in range(20_000)]
    derived = [uuid7() for _ in range(5_000)]
    async with acting(client, tenant):
        kept = await remember(client, tenant, "bob")
        await client.execute(
            "insert into memory.records (tenant_key, record_id, origin, text)"
            " select $1, u, 'remembered', 'x' from unnest($2::uuid[]) as u"
            " union all select $1, u, 'derived', 'x' from unnest($3::uuid[]) as u",
            tenant,
            roots,
            derived,
        )
        await client.execute(
            "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
            " select $1, u, 'ann', $3 from unnest($2::uuid[]) as u",
            tenant,
            roots,
            hash_of(tenant, "ann"),
        )
        await client.execute(
            "insert into memory.provenance (tenant_key, derived_id, source_id)"
            " select $1, d, s from unnest($2::uuid[], $3::uuid[]) as e (d, s)",
            tenant,
            [record_id for record_id in derived for _ in range(4)],
            roots,
        )
    async with acting(client, tenant):
        if how == "forget":
            receipt = await forget(client, tenant, "ann")
            assert (receipt["memories"], receipt["derived"]) == (20_000, 5_000)
            assert receipt["cascade_depth"] == 1
        else:
            await client.execute(
                "delete from memory.records where tenant_key = $1 and record_id = any ($2)",
                tenant,
                roots,
            )
    assert await living(inspector, tenant) == {kept}
    assert await damage(inspector, tenant) == []
    (stone,) = await tombstones(inspector, tenant)
    assert (stone["memories"], stone["derived"], stone["provenance_edges"]) == (
        20_000,
        5_000,
        20_000,
    )


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
async def test_a_forget_in_a_stricter_level_fails_closed(
    connect, inspector: Connection, tenant: str, isolation: str
) -> None:
    old, new = await connect("app"), await connect("app")
    async with acting(new, tenant):
        root = await remember(new, tenant, "ann")
    with refused("23503", "40001"):
        async with acting(old, tenant, isolation):
            await old.fetch("select from memory.records")
            async with acting(new, tenant):
                await derive(new, tenant, root)
            await forget(old, tenant, "ann")
    assert len(await living(inspector, tenant)) == 2
    async with acting(old, tenant, isolation):
        await forget(old, tenant, "ann")
    assert await leftovers(inspector, tenant) == {}


@pytest.mark.parametrize("role", ["app", "owner", "superuser", "bypass"])
@pytest.mark.parametrize("isolation", ISOLATION)
async def test_a_held_record_is_deleted_by_nobody(
    connect, inspector: Connection, tenant: str, role: str, isolation: str
) -> None:
    connection, owner = await connect(role), await connect("owner")
    async with acting(owner, tenant):
        held = await remember(owner, tenant, "ann")
        bob = await remember(owner, tenant, "bob")
        carol = await remember(owner, tenant, "carol")
        digest = await derive(owner, tenant, held, bob)
        await owner.execute(
            "update memory.records set held = true where tenant_key = $1 and record_id = any ($2)",
            tenant,
            [held, digest],
        )
    # The record itself; and one from which a held record was derived.
    for record_id in (held, digest, bob):
        with refused("ME003"):
            async with acting(connection, tenant, isolation):
                await connection.execute(DELETE, tenant, record_id)
    async with acting(connection, tenant, isolation):
        await connection.execute(DELETE, tenant, carol)
    assert await living(inspector, tenant) == {held, bob, digest}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize(
    ("isolation", "state"),
    [("read_committed", "ME003"), ("repeatable_read", "40001"), ("serializable", "40001")],
)
async def test_a_hold_set_after_the_snapshot_still_keeps_the_record(
    connect, inspector: Connection, tenant: str, isolation: str, state: str
) -> None:
    old, owner = await connect("app"), await connect("owner")
    async with acting(old, tenant):
        held = await remember(old, tenant, "ann")
    with refused(state):
        async with acting(old, tenant, isolation):
            await old.fetch("select from memory.records")
            async with acting(owner, tenant):
                await owner.execute("update memory.records set held = true")
            await old.execute(DELETE, tenant, held)
    assert await living(inspector, tenant) == {held}
    async with acting(owner, tenant):
        await owner.execute("update memory.records set held = false")
    async with acting(old, tenant, isolation):
        await old.execute(DELETE, tenant, held)
    assert await living(inspector, tenant) == set()


async def test_artefacts_become_purges_that_know_their_people(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        digest = await derive(client, tenant, ann)
        await register(client, tenant, "of-both", ann, bob)
        await register(client, tenant, "of-digest", digest, ann)
        await register(client, tenant, "of-bob", bob)
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, ann)
    owed = await inspector.fetch(
        "select artefact_id, subject_hashes from memory.purges where tenant_key = $1", tenant
    )
    assert {row["artefact_id"]: row["subject_hashes"] for row in owed} == {
        "of-both": [hash_of(tenant, "ann")],
        "of-digest": [hash_of(tenant, "ann")],
    }
    left = await inspector.fetch(
        "select artefact_id from memory.artefacts where tenant_key = $1", tenant
    )
    assert [row["artefact_id"] for row in left] == ["of-bob"]
    (stone,) = await tombstones(inspector, tenant)
    assert stone["artefacts"] == 2
    assert await damage(inspector, tenant) == []


async def test_an_artefact_of_an_unknown_record_is_refused_at_once(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        with refused("ME006"):
            async with client.transaction():
                await register(client, tenant, "vector-1", root, uuid7())
        await register(client, tenant, "vector-1", root)
    for change in ("update memory.artefacts set artefact_id = 'x'", "delete from memory.artefacts"):
        with refused("42501"):
            async with acting(client, tenant):
                await client.execute(change)
    assert (
        await inspector.fetchval(
            "select artefact_id from memory.artefacts where tenant_key = $1", tenant
        )
        == "vector-1"
    )


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


async def test_with_immediate_constraints_a_raw_delete_is_refused_and_a_forget_works(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        made = await lineage(client, tenant)
    with refused("23503"):
        async with acting(client, tenant):
            await client.execute("set constraints all immediate")
            await client.execute(DELETE, tenant, made["root"])
    async with acting(client, tenant):
        await client.execute("set constraints all immediate")
        await forget(client, tenant, "ann")
    assert await living(inspector, tenant) == made["kept"]
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
