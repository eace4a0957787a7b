"""Rules of lineage against raw SQL: what a record is about, and what it came from."""

from __future__ import annotations

import asyncio

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
    insert_record,
    link,
    living,
    refused,
    remember,
    source,
    subjects_of,
    waits,
)

WRITERS = ("app", "owner", "superuser", "bypass")
# What the session says its tenant is when it commits, {} being the right one.
AT_COMMIT = ("{}", "", "somebody-else")


@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("said", AT_COMMIT)
@pytest.mark.parametrize("role", WRITERS)
async def test_a_derived_record_without_source_does_not_commit_whatever_tenant_is_said(
    connect, inspector: Connection, tenant: str, role: str, said: str, isolation: str
) -> None:
    connection = await connect(role)
    with refused("ME001"):
        async with acting(connection, tenant, isolation):
            orphan = await insert_record(connection, tenant, origin="derived")
            await link(connection, tenant, orphan, "ann")
            await act(connection, said.format(tenant))
    assert await living(inspector, tenant) == set()

    async with acting(connection, tenant, isolation):
        root = await remember(connection, tenant, "ann")
        made = await derive(connection, tenant, root)
        await act(connection, said.format(tenant))
    assert await living(inspector, tenant) == {root, made}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("role", ["superuser", "bypass"])
async def test_a_job_that_never_set_a_tenant_is_judged_all_the_same(
    connect, inspector: Connection, tenant: str, role: str
) -> None:
    connection = await connect(role)
    with refused("ME001"):
        async with acting(connection, None):
            orphan = await insert_record(connection, tenant, origin="derived")
            await link(connection, tenant, orphan, "ann")
    async with acting(connection, None):
        made = await derive(connection, tenant, await remember(connection, tenant, "ann"))
    assert made in await living(inspector, tenant)
    assert await damage(inspector, tenant) == []
    assert await connection.fetchval("select current_setting('app.current_tenant', true)") in (
        None,
        "",
    )


@pytest.mark.parametrize("said", AT_COMMIT)
@pytest.mark.parametrize("role", WRITERS)
async def test_a_record_about_nobody_does_not_commit(
    connect, inspector: Connection, tenant: str, role: str, said: str
) -> None:
    connection = await connect(role)
    with refused("ME008"):
        async with acting(connection, tenant):
            await insert_record(connection, tenant)
            await act(connection, said.format(tenant))
    assert await living(inspector, tenant) == set()

    async with acting(connection, tenant):
        kept = await insert_record(connection, tenant)
        await link(connection, tenant, kept, "ann")
        await act(connection, said.format(tenant))
    assert await living(inspector, tenant) == {kept}


@pytest.mark.parametrize("role", WRITERS)
async def test_an_unknown_source_is_refused_at_once(connect, tenant: str, role: str) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        made = await insert_record(connection, tenant, origin="derived")
        with refused("ME006"):
            async with connection.transaction():
                await source(connection, tenant, made, uuid7())
        known = await remember(connection, tenant, "ann")
        with refused("ME006"):
            async with connection.transaction():
                await source(connection, tenant, made, known, uuid7())
        await source(connection, tenant, made, known)


async def test_a_source_of_another_tenant_is_unknown(
    connect, inspector: Connection, tenant: str, neighbour: str
) -> None:
    connection = await connect("superuser")
    async with acting(connection, None):
        theirs = await remember(connection, neighbour, "ann")
        ours = await remember(connection, tenant, "ann")
    with refused("ME006"):
        async with acting(connection, None):
            await derive(connection, tenant, theirs)
    async with acting(connection, None):
        await derive(connection, tenant, ours)
    assert len(await living(inspector, tenant)) == 2


async def test_an_edge_from_a_record_that_is_not_there_does_not_commit(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
    with refused("23503"):
        async with acting(client, tenant):
            await source(client, tenant, uuid7(), root)
    async with acting(client, tenant):
        await derive(client, tenant, root)
    assert await damage(inspector, tenant) == []


async def test_a_link_of_a_record_that_is_not_there_does_not_commit(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    with refused("23503"):
        async with acting(client, tenant):
            await link(client, tenant, uuid7(), "ann")
    assert await damage(inspector, tenant) == []


async def test_a_record_is_not_its_own_source(client: Connection, tenant: str) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        made = await derive(client, tenant, root)
        with refused("23514"):
            async with client.transaction():
                await source(client, tenant, made, made)
        await derive(client, tenant, made)


async def test_a_remembered_record_takes_no_sources(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        rewrite = await remember(client, tenant, "acme")
        made = await derive(client, tenant, root)
    with refused("ME002"):
        async with acting(client, tenant):
            await source(client, tenant, rewrite, root)
    async with acting(client, tenant):
        await source(client, tenant, made, rewrite)
    assert await subjects_of(inspector, tenant, made) == {"ann", "acme"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize(
    "change",
    ["origin = 'remembered'", "record_id = gen_random_uuid()", "tenant_key = 'somebody-else'"],
)
@pytest.mark.parametrize("role", ["owner", "superuser"])
async def test_identity_and_origin_of_a_record_never_change(
    connect, tenant: str, role: str, change: str
) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        root = await remember(connection, tenant, "ann")
        made = await derive(connection, tenant, root)
    update = "update memory.records set {} where tenant_key = $1 and record_id = $2"
    with refused("ME002"):
        async with acting(connection, tenant):
            await connection.execute(update.format(change), tenant, made)
    async with acting(connection, tenant):
        done = await connection.execute(update.format("kind = 'digest'"), tenant, made)
    assert done == "UPDATE 1"


async def test_the_application_cannot_rewrite_a_record(client: Connection, tenant: str) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
    update = "update memory.records set {} where tenant_key = $1 and record_id = $2"
    for change in ("origin = 'derived'", "text = 'other'", "held = false", "record_id = null"):
        with refused("42501"):
            async with acting(client, tenant):
                await client.execute(update.format(change), tenant, root)
    async with acting(client, tenant):
        done = await client.execute(update.format("superseded_at = now()"), tenant, root)
    assert done == "UPDATE 1"


REMOVALS = {
    "a link": "delete from memory.record_subjects where tenant_key = $1 and record_id = $2",
    "an edge": "delete from memory.provenance where tenant_key = $1 and derived_id = $2",
}
MERGED_REMOVALS = {
    "a link": "merge into memory.record_subjects as t using (values ($1, $2::uuid)) as v (a, b)"
    " on t.tenant_key = v.a and t.record_id = v.b when matched then delete",
    "an edge": "merge into memory.provenance as t using (values ($1, $2::uuid)) as v (a, b)"
    " on t.tenant_key = v.a and t.derived_id = v.b when matched then delete",
}


@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("what", REMOVALS)
@pytest.mark.parametrize("role", ["owner", "superuser"])
async def test_removing_a_link_or_an_edge_of_a_living_record_is_refused_at_once(
    connect, inspector: Connection, tenant: str, role: str, what: str, isolation: str
) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        root = await remember(connection, tenant, "ann")
        made = await derive(connection, tenant, root)
    for statement in (REMOVALS[what], MERGED_REMOVALS[what]):
        with refused("ME004"):
            async with acting(connection, tenant, isolation):
                await connection.execute(statement, tenant, made)
                pytest.fail("not at once")
    assert await subjects_of(inspector, tenant, made) == {"ann"}

    async with acting(connection, tenant, isolation):
        await connection.execute(
            "delete from memory.records where tenant_key = $1 and record_id = $2", tenant, made
        )
    assert await living(inspector, tenant) == {root}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("what", REMOVALS)
@pytest.mark.parametrize("said", [None, "", "somebody-else"])
async def test_a_removal_is_refused_whatever_tenant_the_job_says_it_is(
    connect, inspector: Connection, tenant: str, said: str | None, what: str
) -> None:
    connection = await connect("superuser")
    async with acting(connection, None):
        made = await derive(connection, tenant, await remember(connection, tenant, "ann"))
    with refused("ME004"):
        async with acting(connection, said):
            await connection.execute(REMOVALS[what], tenant, made)
    assert await subjects_of(inspector, tenant, made) == {"ann"}
    assert await damage(inspector, tenant) == []
    async with acting(connection, said):
        await connection.execute(
            "delete from memory.records where tenant_key = $1 and record_id = $2", tenant, made
        )
    assert made not in await living(inspector, tenant)


@pytest.mark.parametrize("what", REMOVALS)
async def test_the_application_may_not_remove_a_link_or_an_edge(
    client: Connection, tenant: str, what: str
) -> None:
    async with acting(client, tenant):
        made = await derive(client, tenant, await remember(client, tenant, "ann"))
    with refused("42501"):
        async with acting(client, tenant):
            await client.execute(REMOVALS[what], tenant, made)
    async with acting(client, tenant):
        assert (
            await client.execute(
                "delete from memory.records where tenant_key = $1 and record_id = $2", tenant, made
            )
            == "DELETE 1"
        )


async def test_two_sessions_that_remove_one_edge_each_leave_no_orphan(
    connect, inspector: Connection, tenant: str
) -> None:
    one, two = await connect("owner"), await connect("owner")
    async with acting(one, tenant):
        left = await remember(one, tenant, "ann")
        right = await remember(one, tenant, "bob")
        made = await derive(one, tenant, left, right)

    async def remove(connection: Connection, edge: object) -> None:
        async with acting(connection, tenant):
            await connection.execute(
                "delete from memory.provenance where tenant_key = $1 and source_id = $2",
                tenant,
                edge,
            )

    done = await asyncio.gather(remove(one, left), remove(two, right), return_exceptions=True)
    assert [getattr(error, "sqlstate", None) for error in done] == ["ME004", "ME004"]
    assert await living(inspector, tenant) == {left, right, made}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("table", ["record_subjects", "provenance"])
@pytest.mark.parametrize("role", ["owner", "superuser", "app"])
async def test_links_and_edges_are_never_updated(
    connect, tenant: str, role: str, table: str
) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        made = await derive(connection, tenant, await remember(connection, tenant, "ann"))
    state = "42501" if role == "app" else "ME002"
    for statement in (
        f"update memory.{table} set tenant_key = tenant_key where tenant_key = $1",
        f"update memory.{table} set tenant_key = tenant_key where tenant_key = $1 and false",
    ):
        with refused(state):
            async with acting(connection, tenant):
                await connection.execute(statement, tenant)
    async with acting(connection, tenant):
        await derive(connection, tenant, made)


async def test_an_upsert_cannot_update_a_link(connect, tenant: str) -> None:
    owner = await connect("owner")
    insert = (
        "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
        " values ($1, $2, 'ann', $3) on conflict "
    )
    async with acting(owner, tenant):
        kept = await remember(owner, tenant, "ann")
    with refused("ME002"):
        async with acting(owner, tenant):
            await owner.execute(
                insert + "(tenant_key, record_id, subject_key) do update set inherited = true",
                tenant,
                kept,
                hash_of(tenant, "ann"),
            )
    async with acting(owner, tenant):
        await owner.execute(insert + "do nothing", tenant, kept, hash_of(tenant, "ann"))


async def test_the_application_cannot_call_a_direct_link_inherited(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await insert_record(client, tenant)
        with refused("42501"):
            async with client.transaction():
                await client.execute(
                    "insert into memory.record_subjects"
                    " (tenant_key, record_id, subject_key, subject_hash, inherited)"
                    " values ($1, $2, 'ann', $3, true)",
                    tenant,
                    root,
                    hash_of(tenant, "ann"),
                )
        await link(client, tenant, root, "ann")
        made = await derive(client, tenant, root)
    rows = await inspector.fetch(
        "select record_id, inherited from memory.record_subjects where tenant_key = $1", tenant
    )
    assert {row["record_id"]: row["inherited"] for row in rows} == {root: False, made: True}


@pytest.mark.parametrize("role", WRITERS)
async def test_a_subject_key_has_one_hash(
    connect, inspector: Connection, tenant: str, neighbour: str, role: str
) -> None:
    connection = await connect(role)
    insert = (
        "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
        " values ($1, $2, 'ann', $3)"
    )
    async with acting(connection, tenant):
        await remember(connection, tenant, "ann")
    for other in (hash_of(tenant, "bob"), "0" * 64, "f" * 64):
        with refused("ME011"):
            async with acting(connection, tenant):
                record_id = await insert_record(connection, tenant)
                await connection.execute(insert, tenant, record_id, other)
    with refused("ME011"):
        async with acting(connection, tenant):
            pair = [await insert_record(connection, tenant) for _ in range(2)]
            await connection.execute(
                "insert into memory.record_subjects"
                " (tenant_key, record_id, subject_key, subject_hash)"
                " select $1, u.id, 'new', u.hash"
                " from unnest($2::uuid[], $3::text[]) as u (id, hash)",
                tenant,
                pair,
                ["0" * 64, "1" * 64],
            )
    async with acting(connection, tenant):
        record_id = await insert_record(connection, tenant)
        await connection.execute(insert, tenant, record_id, hash_of(tenant, "ann"))
    async with acting(connection, neighbour):
        await remember(connection, neighbour, "ann")
    assert await damage(inspector, tenant) == []


async def test_a_derived_record_is_about_everybody_its_sources_are_about(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        one = await remember(client, tenant, "ann", "acme")
        two = await remember(client, tenant, "bob")
        digest = await derive(client, tenant, one, two)
        belief = await derive(client, tenant, digest)
    assert await subjects_of(inspector, tenant, belief) == {"ann", "acme", "bob"}
    assert await damage(inspector, tenant) == []


async def test_a_later_link_reaches_a_whole_chain(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        bystander = await remember(client, tenant, "carol")
        chain = [await derive(client, tenant, root)]
        for _ in range(30):
            chain.append(await derive(client, tenant, chain[-1]))
        outside = await derive(client, tenant, bystander)
    async with acting(client, tenant):
        await link(client, tenant, root, "dana")
    for record_id in chain:
        assert await subjects_of(inspector, tenant, record_id) == {"ann", "dana"}
    assert await subjects_of(inspector, tenant, outside) == {"carol"}
    assert await damage(inspector, tenant) == []


async def test_a_link_reaches_what_was_derived_in_the_same_transaction(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        belief = await derive(client, tenant, await derive(client, tenant, root))
        await link(client, tenant, root, "dana")
    assert await subjects_of(inspector, tenant, belief) == {"ann", "dana"}
    assert await damage(inspector, tenant) == []


async def test_a_link_reaches_what_was_derived_from_a_record_touched_in_the_same_transaction(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        digest = await derive(client, tenant, root)
    async with acting(client, tenant):
        await client.execute(
            "update memory.records set superseded_at = now()"
            " where tenant_key = $1 and record_id = $2",
            tenant,
            root,
        )
        await link(client, tenant, root, "dana")
    assert await subjects_of(inspector, tenant, digest) == {"ann", "dana"}
    assert await damage(inspector, tenant) == []


async def test_edges_written_in_the_wrong_order_pass_everybody_on(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        digest = await insert_record(client, tenant, origin="derived")
        belief = await insert_record(client, tenant, origin="derived")
        await source(client, tenant, belief, bob, digest)
        await source(client, tenant, digest, ann)
    assert await subjects_of(inspector, tenant, belief) == {"ann", "bob"}
    assert await damage(inspector, tenant) == []


async def test_an_edge_added_later_passes_everybody_on(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        digest = await derive(client, tenant, ann)
        belief = await derive(client, tenant, digest)
    async with acting(client, tenant):
        await source(client, tenant, digest, bob)
    assert await subjects_of(inspector, tenant, belief) == {"ann", "bob"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_later_link_that_might_overlook_a_derivation_is_refused(
    connect, inspector: Connection, tenant: str, isolation: str
) -> None:
    old, new = await connect("app"), await connect("app")
    async with acting(new, tenant):
        root = await remember(new, tenant, "ann")
        digest = await derive(new, tenant, root)
        bob = await remember(new, tenant, "bob")
    for work in ((link, root, "dana"), (source, digest, bob)):
        with refused("40001"):
            async with acting(old, tenant, isolation):
                await old.fetch("select from memory.records")
                async with acting(new, tenant):
                    await derive(new, tenant, digest)
                await work[0](old, tenant, *work[1:])
    # Of its own making, also under a savepoint, a record takes links as ever.
    async with acting(old, tenant, isolation):
        async with old.transaction():
            fresh = await remember(old, tenant, "ann")
            made = await derive(old, tenant, fresh, root)
        async with old.transaction():
            await link(old, tenant, fresh, "dana")
        await link(old, tenant, made, "eve")
    assert await subjects_of(inspector, tenant, made) == {"ann", "dana", "eve"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
@pytest.mark.parametrize("where", ["root", "digest"])
async def test_a_derivation_that_cannot_see_a_later_link_fails(
    connect, inspector: Connection, tenant: str, where: str, isolation: str
) -> None:
    old, new = await connect("app"), await connect("app")
    async with acting(new, tenant):
        root = await remember(new, tenant, "ann")
        digest = await derive(new, tenant, root)
    of = {"root": root, "digest": digest}[where]
    with refused("40001"):
        async with acting(old, tenant, isolation):
            await old.fetch("select from memory.records")
            async with acting(new, tenant):
                await link(new, tenant, root, "dana")
            await derive(old, tenant, of)
    async with acting(old, tenant, isolation):
        made = await derive(old, tenant, of)
    assert await subjects_of(inspector, tenant, made) == {"ann", "dana"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("first", ["derive", "relate"])
async def test_a_later_link_and_a_derive_in_flight_wait_for_each_other(
    connect, inspector: Connection, tenant: str, first: str
) -> None:
    one, two = await connect("app"), await connect("app")
    made = uuid7()
    async with acting(one, tenant):
        root = await remember(one, tenant, "ann")

    async def work(connection: Connection, verb: str) -> None:
        if verb == "derive":
            await derive(connection, tenant, root, record_id=made)
        else:
            await link(connection, tenant, root, "dana")

    async def later() -> None:
        async with acting(two, tenant):
            await work(two, "relate" if first == "derive" else "derive")

    async with acting(one, tenant):
        await work(one, first)
        task = asyncio.create_task(later())
        await waits(task, inspector, two)
    await task
    assert await subjects_of(inspector, tenant, made) == {"ann", "dana"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("first", ["derive", "delete"])
async def test_a_delete_and_a_derive_in_flight_wait_for_each_other(
    connect, inspector: Connection, tenant: str, first: str
) -> None:
    one, two = await connect("app"), await connect("app")
    async with acting(one, tenant):
        root = await remember(one, tenant, "ann")
        bystander = await remember(one, tenant, "bob")

    async def work(connection: Connection, verb: str) -> None:
        if verb == "derive":
            await derive(connection, tenant, root)
        else:
            await connection.execute(
                "delete from memory.records where tenant_key = $1 and record_id = $2",
                tenant,
                root,
            )

    async def later() -> None:
        async with acting(two, tenant):
            await work(two, "delete" if first == "derive" else "derive")

    async with acting(one, tenant):
        await work(one, first)
        task = asyncio.create_task(later())
        await waits(task, inspector, two)
    if first == "derive":
        await task
    else:
        with pytest.raises(asyncpg.PostgresError) as caught:
            await task
        assert caught.value.sqlstate == "ME006"
    assert await living(inspector, tenant) == {bystander}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("verbs", ["remember, forget", "forget, remember", "relate, forget"])
async def test_a_writer_about_a_person_and_an_erasure_wait_for_each_other(
    connect, inspector: Connection, tenant: str, verbs: str
) -> None:
    """Who comes second sees what the first one did: an erasure that blocks leaves no straggler."""
    one, two = await connect("app"), await connect("app")
    first, second = verbs.split(", ")
    async with acting(one, tenant):
        bystander = await remember(one, tenant, "bob")
        await remember(one, tenant, "ann")

    async def work(connection: Connection, verb: str) -> None:
        if verb == "remember":
            await remember(connection, tenant, "ann")
        elif verb == "relate":
            await link(connection, tenant, bystander, "ann")
        else:
            await forget(connection, tenant, "ann")

    async def later() -> None:
        async with acting(two, tenant):
            await work(two, second)

    async with acting(one, tenant):
        await work(one, first)
        task = asyncio.create_task(later())
        await waits(task, inspector, two)
        # Another person's memories wait for neither.
        three = await connect("app")
        async with acting(three, tenant):
            await remember(three, tenant, "carol")
    await task
    left = {"remember, forget": 2, "forget, remember": 3, "relate, forget": 1}[verbs]
    assert len(await living(inspector, tenant)) == left
    assert await damage(inspector, tenant) == []


async def set_subject(owner: Connection, tenant: str, person: str, flag: str) -> None:
    async with acting(owner, tenant):
        await owner.execute(
            f"insert into memory.subjects (tenant_key, subject_hash, {flag}) values ($1, $2, true)"
            f" on conflict (tenant_key, subject_hash) do update set {flag} = true",
            tenant,
            hash_of(tenant, person),
        )


@pytest.mark.parametrize("role", WRITERS)
async def test_a_blocked_person_is_refused_for_direct_links_and_passes_by_inheritance(
    connect, inspector: Connection, tenant: str, role: str
) -> None:
    connection, owner = await connect(role), await connect("owner")
    async with acting(connection, tenant):
        root = await remember(connection, tenant, "ann")
        other = await remember(connection, tenant, "bob")
    await set_subject(owner, tenant, "ann", "blocked")
    with refused("ME005"):
        async with acting(connection, tenant):
            await remember(connection, tenant, "ann")
    with refused("ME005"):
        async with acting(connection, tenant):
            await link(connection, tenant, other, "carol", "ann")
    async with acting(connection, tenant):
        made = await derive(connection, tenant, root)
        await remember(connection, tenant, "bob")
    assert await subjects_of(inspector, tenant, made) == {"ann"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("flag", ["blocked", "held"])
@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_block_or_hold_that_an_older_snapshot_cannot_see_is_not_passed_by(
    connect, inspector: Connection, tenant: str, isolation: str, flag: str
) -> None:
    connection, owner = await connect("app"), await connect("owner")
    async with acting(connection, tenant):
        first = await remember(connection, tenant, "ann")
    with refused("40001"):
        async with acting(connection, tenant, isolation):
            await connection.fetch("select from memory.records")
            await set_subject(owner, tenant, "ann", flag)
            await remember(connection, tenant, "ann")
    assert await living(inspector, tenant) == {first}
    async with acting(connection, tenant, isolation):
        await remember(connection, tenant, "bob")


async def test_a_hold_is_taken_over_by_new_and_derived_records(
    connect, inspector: Connection, client: Connection, tenant: str
) -> None:
    owner = await connect("owner")
    async with acting(client, tenant):
        before = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        digest_of_bob = await derive(client, tenant, bob)
    await set_subject(owner, tenant, "ann", "held")
    async with acting(owner, tenant):
        await owner.execute(
            "update memory.records set held = true where tenant_key = $1 and record_id = $2",
            tenant,
            before,
        )
    async with acting(client, tenant):
        after = await remember(client, tenant, "ann")
        digest = await derive(client, tenant, before, bob)
        belief = await derive(client, tenant, digest)
        free = await derive(client, tenant, bob)
    held = "select record_id from memory.records where tenant_key = $1 and held"
    rows = await inspector.fetch(held, tenant)
    assert {row["record_id"] for row in rows} == {before, after, digest, belief}

    # A held person recognised later: the record, and what was derived from it before.
    async with acting(client, tenant):
        await link(client, tenant, bob, "ann")
    rows = await inspector.fetch(held, tenant)
    assert {row["record_id"] for row in rows} == {
        before,
        after,
        digest,
        belief,
        bob,
        digest_of_bob,
        free,
    }
