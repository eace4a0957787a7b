"""Links and edges of a living record are neither removed nor changed."""

from __future__ import annotations

import asyncio

import pytest

from rawsql import (
    ISOLATION,
    Connection,
    acting,
    damage,
    derive,
    hash_of,
    living,
    refused,
    register,
    remember,
    subjects_of,
)
from stores import image

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


SEVERING = {
    "the link": REMOVALS["a link"],
    "the edge": REMOVALS["an edge"],
    "whose link": "update memory.record_subjects set subject_key = 'eve'"
    " where tenant_key = $1 and record_id = $2",
    "whose edge": "update memory.provenance set source_id = gen_random_uuid()"
    " where tenant_key = $1 and derived_id = $2",
    "whose artefact": "update memory.artefacts set record_id = gen_random_uuid()"
    " where tenant_key = $1 and record_id = $2",
    "which record": "update memory.records set record_id = gen_random_uuid()"
    " where tenant_key = $1 and record_id = $2",
}


async def test_a_session_that_calls_itself_a_replica_severs_nothing_either(
    connect, inspector: Connection, tenant: str
) -> None:
    """Jobs call themselves so to be quick; no foreign key looks then."""
    job = await connect("superuser")
    async with acting(job, tenant):
        root = await remember(job, tenant, "ann")
        made = await derive(job, tenant, root)
        await register(job, tenant, "vector-1", made)
    before = await image(inspector, tenant)
    await job.execute("set session_replication_role = replica")
    for what, statement in SEVERING.items():
        with refused("ME004" if what.startswith("the ") else "ME002"):
            async with acting(job, None):
                await job.execute(statement, tenant, made)
    assert await image(inspector, tenant) == before
    async with acting(job, None):
        await job.execute(
            "update memory.records set superseded_at = now() where record_id = $1", root
        )
        await job.execute("delete from memory.records where record_id = $1", made)
    assert await living(inspector, tenant) == {root}
    assert await damage(inspector, tenant) == []


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
