"""TRUNCATE, and changes to evidence, are refused for everybody."""

from __future__ import annotations

import asyncpg
import pytest

from memory.ids import uuid7
from rawsql import (
    TABLES,
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

EVIDENCE = ("tombstones", "decisions", "purge_receipts")
INSERTS = {
    "tombstones": "insert into memory.tombstones values ($1, 99, gen_random_uuid(), $2,"
    " 'operator', 'record', 0, 0, 0, 0, now(), 1, '', repeat('0', 64))",
    "decisions": "insert into memory.decisions (tenant_key, subject_hash, action)"
    " select $1, $2, 'hold'",
    "purge_receipts": "insert into memory.purge_receipts"
    " (tenant_key, adapter, erasure_id, artefacts)"
    " select $1::text, 'index', gen_random_uuid(), length($2)",
    "pending_evidence": "insert into memory.pending_evidence (tenant_key, erasure_id,"
    " subject_hash, reason, scope, memories, derived, provenance_edges, artefacts)"
    " values ($1, gen_random_uuid(), $2, 'operator', 'record', 0, 0, 0, 0)",
    "chain_heads": "insert into memory.chain_heads select $1, 1, $2",
    "subjects": "insert into memory.subjects (tenant_key, subject_hash) values ($1, $2)",
    "tenants": "insert into memory.tenants select $1 where $2 <> ''",
    "purges": "insert into memory.purges (tenant_key, adapter, artefact_id, erasure_id)"
    " select $1, 'index', $2, gen_random_uuid()",
    "tenant_counts": "insert into memory.tenant_counts (tenant_key, records, terms)"
    " select $1::text, length($2), 1",
    "artefact_claims": "insert into memory.artefact_claims select $2, $2 where $1 <> ''",
    "installation": "insert into memory.installation (pepper_check) select $2 where $1 <> ''",
}


async def with_evidence(owner: Connection, tenant: str) -> None:
    """A row in each table of evidence."""
    async with acting(owner, tenant):
        await remember(owner, tenant, "ann")
        await forget(owner, tenant, "ann")
        for table in ("decisions", "purge_receipts"):
            await owner.execute(INSERTS[table], tenant, hash_of(tenant, "ann"))


@pytest.mark.parametrize("role", ["app", "owner", "superuser", "bypass", "host", "operator"])
@pytest.mark.parametrize("table", TABLES)
async def test_truncate_is_refused_on_each_table_for_each_role(
    connect, tenant: str, inspector: Connection, table: str, role: str
) -> None:
    connection = await connect(role)
    writer = await connect("app")
    async with acting(writer, tenant):
        kept = await derive(writer, tenant, await remember(writer, tenant, "ann"))
    state = "ME007" if role in ("owner", "superuser") else "42501"
    for form in ("", "cascade", "restart identity cascade"):
        # A plain TRUNCATE of records meets its foreign keys first.
        also = ("0A000",) if table == "records" and form == "" and state == "ME007" else ()
        with refused(state, *also):
            async with acting(connection, tenant):
                await connection.execute(f"truncate memory.{table} {form}")
    assert kept in await living(inspector, tenant)
    async with acting(writer, tenant):
        await writer.execute("delete from memory.records where record_id = $1", kept)
    assert await damage(inspector, tenant) == []


async def test_truncate_of_one_table_or_all_is_refused_even_as_a_replica(
    connect, tenant: str, inspector: Connection
) -> None:
    superuser = await connect("superuser")
    async with acting(superuser, tenant):
        kept = await remember(superuser, tenant, "ann")
    await superuser.execute("set session_replication_role = replica")
    every = ", ".join(f"memory.{name}" for name in TABLES)
    for tables in (every, *(f"memory.{name} cascade" for name in TABLES)):
        with refused("ME007"):
            await superuser.execute(f"truncate {tables}")
    assert await living(inspector, tenant) == {kept}


CHANGES = {
    "update": "update memory.{} set tenant_key = tenant_key",
    "update of nothing": "update memory.{} set tenant_key = tenant_key where false",
    "delete": "delete from memory.{}",
    "delete of one": "delete from memory.{} where tenant_key = '{tenant}'",
    "merge": "merge into memory.{} as t using (values (1)) as v (a) on true"
    " when matched then delete",
}


@pytest.mark.parametrize("replica", [False, True])
@pytest.mark.parametrize("role", ["owner", "superuser"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("table", EVIDENCE)
async def test_evidence_is_never_changed_not_even_by_the_owner(
    connect, inspector: Connection, tenant: str, table: str, change: str, role: str, replica: bool
) -> None:
    if replica and role == "owner":
        return
    owner, connection = await connect("owner"), await connect(role)
    await with_evidence(owner, tenant)
    if replica:
        await connection.execute("set session_replication_role = replica")
    count = f"select count(*) from memory.{table} where tenant_key = $1"
    before = await inspector.fetchval(count, tenant)
    with refused("ME010"):
        async with acting(connection, tenant):
            await connection.execute(CHANGES[change].format(table, tenant=tenant))
    assert await inspector.fetchval(count, tenant) == before == 1

    async with acting(owner, tenant):
        await forget(owner, tenant, "ann")
        await owner.execute(INSERTS["decisions"], tenant, hash_of(tenant, "ann"))
        await owner.execute(INSERTS["purge_receipts"], tenant, hash_of(tenant, "ann"))
    assert await inspector.fetchval(count, tenant) == 2


@pytest.mark.parametrize("table", INSERTS)
@pytest.mark.parametrize("role", ["app", "operator", "bypass", "host"])
async def test_no_application_writes_evidence_or_bookkeeping_by_hand(
    connect, inspector: Connection, tenant: str, table: str, role: str
) -> None:
    connection, writer = await connect(role), await connect("app")
    with refused("42501"):
        async with acting(connection, tenant):
            await connection.execute(INSERTS[table], tenant, hash_of(tenant, "ann"))
    for change in ("update memory.{0} set {1} = {1}", "delete from memory.{0}"):
        column = "artefact_hash" if table == "artefact_claims" else "tenant_key"
        column = "singleton" if table == "installation" else column
        with refused("42501"):
            async with acting(connection, tenant):
                await connection.execute(change.format(table, column))
    async with acting(writer, tenant):
        await remember(writer, tenant, "ann")
        await forget(writer, tenant, "ann")
    assert len(await tombstones(inspector, tenant)) == 1


@pytest.mark.parametrize("table", ["tombstones", "pending_evidence"])
@pytest.mark.parametrize(
    ("column", "value", "constraint"),
    [
        ("subject_hash", "customer:ann", "subject_hash_is_hash"),
        ("subject_hash", "A" * 64, "subject_hash_is_hash"),
        ("subject_hash", "a" * 63, "subject_hash_is_hash"),
        ("subject_hash", "a" * 64 + "\n", "subject_hash_is_hash"),
        ("subject_hash", "a" * 65, "subject_hash_is_hash"),
        ("subject_hash", "", "subject_hash_is_hash"),
        ("reason", "Ramesh asked", "reason_known"),
        ("scope", "everything", "scope_known"),
        ("tenant_key", "", "tenant_key_bounded"),
        ("tenant_key", "t" * 257, "tenant_key_bounded"),
    ],
)
async def test_evidence_has_no_room_for_free_text(
    inspector: Connection, tenant: str, table: str, column: str, value: str, constraint: str
) -> None:
    row = {
        "tenant_key": tenant,
        "subject_hash": hash_of(tenant, "ann"),
        "reason": "operator",
        "scope": "record",
    }
    counts = {"memories": 0, "derived": 0, "provenance_edges": 0, "artefacts": 0}
    if table == "tombstones":
        counts |= {"seq": 1, "format": 1}
        row |= {"previous": "", "digest": "0" * 64}
    times = ", erased_at" if table == "tombstones" else ""
    now = ", now()" if times else ""

    async def insert(**changed: object) -> None:
        values = row | counts | changed
        places = ", ".join(f"${n}" for n, _ in enumerate(values, 1))
        await inspector.execute(
            f"insert into memory.{table} ({', '.join(values)}, erasure_id{times})"
            f" values ({places}, gen_random_uuid(){now})",
            *values.values(),
        )

    transaction = inspector.transaction()
    await transaction.start()
    with pytest.raises(asyncpg.CheckViolationError) as caught:
        async with inspector.transaction():
            await insert(**{column: value})
    assert caught.value.constraint_name == constraint
    if table == "tombstones":
        for name in counts.keys() - {"format"}:
            with pytest.raises(asyncpg.CheckViolationError):
                async with inspector.transaction():
                    await insert(**{name: -1})
        for name in ("previous", "digest"):
            with pytest.raises(asyncpg.CheckViolationError):
                async with inspector.transaction():
                    await insert(**{name: "what happened"})
    await insert()
    await transaction.rollback()


async def test_a_decision_is_one_of_these_and_a_request_says_what_was_asked(
    connect, tenant: str
) -> None:
    owner = await connect("owner")
    insert = "insert into memory.decisions (tenant_key, subject_hash, action) values ($1, $2, $3)"
    person = hash_of(tenant, "ann")
    for wrong in ((person, "because Ramesh asked"), ("customer:ann", "hold"), (person, "")):
        with refused("23514"):
            async with acting(owner, tenant):
                await owner.execute(insert, tenant, *wrong)
    async with acting(owner, tenant):
        for action in ("block", "readmit", "hold", "release", "complete"):
            await owner.execute(insert, tenant, person, action)
    asked = (
        "insert into memory.decisions"
        " (tenant_key, subject_hash, action, erasure_id, reason, scope, kinds)"
        " values ($1, $2, 'request', $3, $4, $5, $6)"
    )
    right = (uuid7(), "operator", "kinds", "profile summary")
    for wrong in (
        (None, *right[1:]),
        (right[0], None, *right[2:]),
        (right[0], "she rang", *right[2:]),
        (*right[:2], None, right[3]),
        (*right[:2], "tenant", right[3]),
        (*right[:3], "Ramesh asked"),
    ):
        with refused("23514"):
            async with acting(owner, tenant):
                await owner.execute(asked, tenant, person, *wrong)
    async with acting(owner, tenant):
        await owner.execute(asked, tenant, person, *right)


@pytest.mark.parametrize(("role", "replica"), [("owner", False), ("superuser", True)])
async def test_pending_evidence_is_not_removed_before_it_is_sealed(
    connect, inspector: Connection, tenant: str, role: str, replica: bool
) -> None:
    owner, eraser = await connect("owner"), await connect(role)
    if replica:
        await eraser.execute("set session_replication_role = replica")
    for change in (
        "delete from memory.pending_evidence",
        "update memory.pending_evidence set memories = 0",
        "update memory.pending_evidence set xid = '0'",
    ):
        async with acting(owner, tenant):
            root = await remember(owner, tenant, "ann")
        with refused("ME010"):
            async with acting(eraser, tenant):
                await eraser.execute("delete from memory.records where record_id = $1", root)
                await eraser.execute(change)
    async with acting(owner, tenant):
        await owner.execute("delete from memory.records")
    (stone,) = await tombstones(inspector, tenant)
    assert stone["memories"] == 3
    assert await damage(inspector, tenant) == []
