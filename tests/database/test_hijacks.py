"""Triggers, tables and names that a role puts in the way gain it nothing."""

from __future__ import annotations

import asyncpg
import pytest

from memory.fingerprint import tombstone_digest
from memory.types import Tombstone
from rawsql import (
    Connection,
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
from servers import Postgres

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"


async def trigger_functions(inspector: Connection) -> list[str]:
    rows = await inspector.fetch(
        "select proname from pg_proc where pronamespace = 'memory'::regnamespace"
        " and prorettype = 'trigger'::regtype and prosecdef"
    )
    return [row["proname"] for row in rows]


@pytest.mark.parametrize("timing", ["after delete", "after insert"])
async def test_a_trigger_function_on_a_temporary_table_is_no_way_to_other_tenants(
    connect, inspector: Connection, tenant: str, neighbour: str, timing: str
) -> None:
    """With EXECUTE left to PUBLIC the cascade on a table of one's own erases across tenants."""
    app, superuser = await connect("app"), await connect("superuser")
    async with acting(app, neighbour):
        theirs = await derive(app, neighbour, await remember(app, neighbour, "ann"))
    names = await trigger_functions(inspector)
    assert {"erase", "seal", "edge_added", "link_added", "link_kept", "edge_kept"} <= set(names)
    rows = "old table as gone" if "delete" in timing else "new table as added"
    for connection, state in ((app, "42501"), (superuser, "ME009")):
        await connection.execute("create temp table bait (like memory.records)")
        for name in names:
            seal = name in ("seal", "record_complete")
            each = "row" if seal else f"statement execute function memory.{name}()"
            creation = f"create trigger t {timing} on bait " + (
                f"for each row execute function memory.{name}()"
                if each == "row"
                else f"referencing {rows} for each {each}"
            )
            with refused(state):
                async with acting(connection, tenant):
                    await connection.execute(creation)
                    await connection.execute(
                        "insert into bait (tenant_key, record_id, origin, kind, text, metadata,"
                        " redacted, version, term_count, occurred_at, created_at, held)"
                        " values ($1, $2, 'remembered', 'x', 'x', '{}', '{}', 1, 1, now(),"
                        " now(), false)",
                        neighbour,
                        theirs,
                    )
                    await connection.execute("delete from bait")
    assert len(await living(inspector, neighbour)) == 2
    assert await tombstones(inspector, neighbour) == []
    async with acting(app, neighbour):
        await forget(app, neighbour, "ann")
    assert await living(inspector, neighbour) == set()


async def test_the_application_puts_no_trigger_rule_or_policy_on_our_tables(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    await client.execute(
        "create function pg_temp.swallow() returns trigger language plpgsql as"
        " 'begin return null; end'"
    )
    for statement in (
        "create trigger t before delete on memory.records for each row"
        " execute function pg_temp.swallow()",
        "create rule r as on delete to memory.records do instead nothing",
        "create policy open on memory.records using (true)",
        "alter table memory.records disable trigger all",
        "alter table memory.records disable row level security",
        "drop trigger erase on memory.records",
        "create table memory.mine (a int)",
        "create function memory.mine() returns int language sql as 'select 1'",
        "alter function memory.erase() set search_path = public",
        "create index on memory.records (text)",
        "set session_replication_role = replica",
        "create table child () inherits (memory.records)",
    ):
        with refused("42501"):
            async with client.transaction():
                await client.execute(statement)
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        await client.execute(DELETE, tenant, root)
    assert len(await tombstones(inspector, tenant)) == 1


HIJACKS = {
    "temporary tables": [
        "create temp table records as select * from memory.records where false",
        "create temp table record_subjects as select * from memory.record_subjects where false",
        "create temp table provenance as select * from memory.provenance where false",
        "create temp table pending_evidence as select 1 as a",
        "create temp table subjects as select 1 as a",
    ],
    "temporary types": [
        "create type pg_temp.text as enum ('a')",
        "create domain pg_temp.uuid as int",
        "create type pg_temp.tombstones as (a int)",
    ],
    "temporary functions": [
        "create function pg_temp.each(uuid[]) returns setof uuid language sql as 'select $1[1]'",
        "create function pg_temp.closure(text, uuid[]) returns uuid[] language sql as 'select $2'",
        "create function pg_temp.set_config(text, text, boolean) returns text language sql as"
        " 'select $2'",
        "create function pg_temp.sha256(bytea) returns bytea language sql as 'select $1'",
        "set search_path = pg_temp, public, pg_catalog",
    ],
    "public functions": [
        "create function public.unnest(uuid[]) returns setof uuid language sql as"
        " 'select $1[1] where false'",
        "create function public.set_config(text, text, boolean) returns text language sql as"
        " 'select $2'",
        "create function public.current_setting(text, boolean) returns text language sql as"
        " $$ select 'somebody-else' $$",
        "create function public.cardinality(uuid[]) returns int language sql as 'select 0'",
        "create function public.encode(bytea, text) returns text language sql as"
        " $$ select repeat('0', 64) $$",
        "set search_path = public, pg_catalog",
    ],
    "public operators": [
        "create function public.never(text, text) returns boolean language sql as 'select false'",
        "create function public.never(uuid, uuid) returns boolean language sql as 'select false'",
        "create operator public.= (function = public.never, leftarg = text, rightarg = text)",
        "create operator public.= (function = public.never, leftarg = uuid, rightarg = uuid)",
        "create operator public.<> (function = public.never, leftarg = text, rightarg = text)",
        "set search_path = public, pg_catalog",
    ],
    "session settings": [
        "set standard_conforming_strings = off",
        "set array_nulls = off",
        "set transform_null_equals = on",
        "set enable_indexscan = off",
        "set enable_indexonlyscan = off",
        "set enable_nestloop = off",
        "set plan_cache_mode = force_custom_plan",
        "set quote_all_identifiers = on",
        "set bytea_output = escape",
        "set DateStyle = German",
        "set from_collapse_limit = 1",
        "set memory.erasure = 'mine, write nothing'",
    ],
}


@pytest.mark.parametrize("kind", HIJACKS)
async def test_nothing_put_in_the_way_of_names_changes_an_erasure(
    server: Postgres, kind: str
) -> None:
    with server.migrated() as database:
        superuser = await asyncpg.connect(database.superuser_url)
        await superuser.execute("grant create on schema public to public")
        client = await asyncpg.connect(database.app_url)
        try:
            made = {}
            async with acting(client, "acme"):
                for person in ("ann", "bob", "carol"):
                    made[person] = await remember(client, "acme", person)
                    await derive(client, "acme", made[person])
            for statement in HIJACKS[kind]:
                await client.execute(statement)
            await superuser.execute("set search_path = pg_catalog")
            # The attacker's own statement names what it means; the triggers find their own way.
            await client.execute(
                "begin; select pg_catalog.set_config('app.current_tenant', 'acme', true);"
                " delete from memory.records"
                f" where record_id operator(pg_catalog.=) '{made['ann']}'::pg_catalog.uuid;"
                f" select memory.forget('acme', 'bob', '{'0' * 64}'); commit"
            )
            assert len(await living(superuser, "acme")) == 2
            assert made["carol"] in await living(superuser, "acme")
            assert await damage(superuser, "acme") == []
            chain = [Tombstone(**dict(row)) for row in await tombstones(superuser, "acme")]
            assert {stone.subject_hash for stone in chain} == {
                hash_of("acme", "ann"),
                hash_of("acme", "bob"),
            }
            for stone in chain:
                assert (stone.memories, stone.derived) == (1, 1)
                assert stone.digest == tombstone_digest(stone)
        finally:
            await client.close()
            await superuser.close()
