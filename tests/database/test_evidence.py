"""Evidence of erasures: always written, whatever the label, and free of content."""

from __future__ import annotations

from uuid import UUID

import pytest

from rawsql import (
    Connection,
    act,
    acting,
    damage,
    derive,
    forget,
    hash_of,
    leftovers,
    living,
    refused,
    register,
    remember,
    tombstones,
)

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"


ERASURE = UUID("00000000-0000-4000-8000-000000000001")


async def label(connection: Connection, value: str) -> None:
    await connection.execute("select set_config('memory.erasure', $1, true)", value)


@pytest.mark.parametrize(
    "forged",
    [
        "",
        " ",
        "garbage",
        f"{ERASURE} subject_request",
        f"{ERASURE} because subject",
        f"{ERASURE} subject_request everything",
        f"{ERASURE} subject_request subject nobody",
        f"{ERASURE} subject_request subject {'A' * 64}",
        f"{ERASURE} subject_request subject {'0' * 64} ",
        f"{ERASURE} subject_request subject {'0' * 64}\n",
        f"x{ERASURE} subject_request subject {'0' * 64}",
        f"{ERASURE} subject_request subject {'0' * 64}",
        f"{ERASURE} subject_request subject",
        f"{ERASURE} retention_policy retention",
        "00000000000040008000000000000001 subject_request subject",
        "notahexa-nota-nota-nota-notahexadeci subject_request subject",
        "'; delete from memory.pending_evidence; --",
        "null null null null",
        "x" * 100_000,
    ],
    ids=str.strip,
)
async def test_no_label_suppresses_evidence(
    client: Connection, inspector: Connection, tenant: str, forged: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann", "bob")
        await derive(client, tenant, root)
        await remember(client, tenant, "carol")
    async with acting(client, tenant):
        await label(client, forged)
        await client.execute(DELETE, tenant, root)
    rows = await tombstones(inspector, tenant)
    assert {row["subject_hash"] for row in rows} == {
        hash_of(tenant, "ann"),
        hash_of(tenant, "bob"),
    }
    assert [(row["memories"], row["derived"]) for row in rows] == [(1, 1), (1, 1)]
    assert await damage(inspector, tenant) == []


async def test_a_label_claims_only_records_about_the_person_it_names(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        both = await remember(client, tenant, "ann", "bob")
        carol = await remember(client, tenant, "carol")
        await register(client, tenant, "vector-1", ann, carol)
        await register(client, tenant, "vector-2", carol)
    async with acting(client, tenant):
        await label(client, f"{ERASURE} subject_request subject {hash_of(tenant, 'ann')}")
        await client.execute(
            "delete from memory.records where tenant_key = $1 and record_id = any ($2)",
            tenant,
            [ann, both, carol],
        )
    rows = {row["subject_hash"]: row for row in await tombstones(inspector, tenant)}
    assert set(rows) == {hash_of(tenant, "ann"), hash_of(tenant, "carol")}
    labelled, other = rows[hash_of(tenant, "ann")], rows[hash_of(tenant, "carol")]
    assert (labelled["erasure_id"], labelled["reason"]) == (ERASURE, "subject_request")
    assert (labelled["memories"], labelled["artefacts"]) == (2, 1)
    assert other["erasure_id"] != ERASURE
    assert (other["reason"], other["scope"], other["memories"]) == ("operator", "record", 1)
    assert other["artefacts"] == 2


async def test_a_label_is_not_forged_through_the_hash_beside_a_single_record(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
    async with acting(client, tenant):
        receipt = await forget(
            client, tenant, single=root, person_hash=hash_of(tenant, "bob"), why="operator"
        )
    (stone,) = await tombstones(inspector, tenant)
    assert stone["subject_hash"] == hash_of(tenant, "ann")
    assert (stone["erasure_id"], stone["scope"]) == (receipt["erasure_id"], "record")


async def test_one_tombstone_a_person_reason_and_transaction(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        records = [await remember(client, tenant, "ann") for _ in range(3)]
        await derive(client, tenant, records[0], records[1])
        await derive(client, tenant, records[1])
    async with acting(client, tenant):
        for record_id in records[:2]:
            await client.execute(DELETE, tenant, record_id)
    async with acting(client, tenant):
        await forget(client, tenant, "ann")
    first, second = await tombstones(inspector, tenant)
    assert (first["memories"], first["derived"], first["provenance_edges"]) == (2, 2, 3)
    assert (second["memories"], second["reason"]) == (1, "subject_request")
    assert first["erasure_id"] != second["erasure_id"]


async def test_an_erasure_of_nothing_leaves_a_tombstone_that_says_so(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        kept = await remember(client, tenant, "bob")
    for _ in range(2):
        async with acting(client, tenant):
            receipt = await forget(client, tenant, "ann")
        assert (receipt["memories"], receipt["derived"], receipt["cascade_depth"]) == (0, 0, 0)
    rows = await tombstones(inspector, tenant)
    assert [(row["memories"], row["reason"], row["scope"]) for row in rows] == [
        (0, "subject_request", "subject"),
        (0, "subject_request", "subject"),
    ]
    assert await living(inspector, tenant) == {kept}


async def test_a_dry_run_leaves_nothing(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann", "bob")
        made = await derive(client, tenant, root)
    async with acting(client, tenant):
        receipt = await forget(client, tenant, "ann", dry_run=True)
    assert (receipt["memories"], receipt["derived"], receipt["bystanders"]) == (1, 1, 1)
    assert receipt["bystander_keys"] == ["bob"]
    assert await living(inspector, tenant) == {root, made}
    assert await tombstones(inspector, tenant) == []
    async with acting(client, tenant):
        done = await forget(client, tenant, "ann", expected=receipt["closure"])
    assert (done["memories"], done["bystander_keys"]) == (1, None)
    (stone,) = await tombstones(inspector, tenant)
    assert stone["subject_hash"] == hash_of(tenant, "ann")


async def test_an_erasure_of_another_closure_than_the_approved_one_is_refused(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
        dry = await forget(client, tenant, "ann", dry_run=True)
        await remember(client, tenant, "ann")
    with refused("ME013"):
        async with acting(client, tenant):
            await forget(client, tenant, "ann", expected=dry["closure"])
    assert len(await living(inspector, tenant)) == 2
    async with acting(client, tenant):
        again = await forget(client, tenant, "ann", dry_run=True)
        await forget(client, tenant, "ann", expected=again["closure"])
    assert await leftovers(inspector, tenant) == {}


@pytest.mark.parametrize("why", ["because", "", "SUBJECT_REQUEST", "subject_request ", None])
@pytest.mark.parametrize("known", [True, False])
async def test_an_unknown_reason_is_refused_and_not_written_down_as_another(
    client: Connection, inspector: Connection, tenant: str, why: str | None, known: bool
) -> None:
    async with acting(client, tenant):
        await remember(client, tenant, "ann" if known else "bob")
    with refused("ME014"):
        async with acting(client, tenant):
            await forget(client, tenant, "ann", why=why)
    assert await tombstones(inspector, tenant) == []
    async with acting(client, tenant):
        await forget(client, tenant, "ann", why="retention_policy")
    (stone,) = await tombstones(inspector, tenant)
    assert stone["reason"] == "retention_policy"


async def test_an_erasure_without_an_id_or_of_two_things_is_refused(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
    for wrong in (
        {"person": "ann", "erasure": None},
        {"person": "ann", "single": root},
        {"person": None, "single": root, "block": True},
        {"person": "ann", "narrowed": ["episodic"], "block": True},
        {"person": None},
    ):
        with refused("ME014"):
            async with acting(client, tenant):
                await forget(client, tenant, **wrong)
    async with acting(client, tenant):
        await forget(client, tenant, "ann", erasure=ERASURE)
    (stone,) = await tombstones(inspector, tenant)
    assert stone["erasure_id"] == ERASURE


async def test_erasures_of_one_transaction_leave_a_tombstone_each(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    """Also under one id, where they differ in reason or scope."""
    async with acting(client, tenant):
        for why, narrowed in (
            ("operator", None),
            ("subject_request", None),
            ("operator", ["profile"]),
        ):
            await forget(client, tenant, "ann", erasure=ERASURE, why=why, narrowed=narrowed)
        await forget(client, tenant, "ann", why="operator")
    rows = await tombstones(inspector, tenant)
    assert [(row["reason"], row["scope"]) for row in rows] == [
        ("operator", "subject"),
        ("subject_request", "subject"),
        ("operator", "kinds"),
        ("operator", "subject"),
    ]
    assert [row["erasure_id"] == ERASURE for row in rows] == [True, True, True, False]


@pytest.mark.parametrize("end", ["rollback", "savepoint"])
async def test_what_is_rolled_back_leaves_no_tombstone_and_no_gap(
    client: Connection, inspector: Connection, tenant: str, end: str
) -> None:
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
        await remember(client, tenant, "bob")
    outer = client.transaction()
    await outer.start()
    await act(client, tenant)
    inner = client.transaction()
    await inner.start()
    await forget(client, tenant, "ann")
    await inner.rollback()
    await (outer.commit() if end == "savepoint" else outer.rollback())
    assert await tombstones(inspector, tenant) == []
    async with acting(client, tenant):
        await forget(client, tenant, "bob")
    (stone,) = await tombstones(inspector, tenant)
    assert (stone["seq"], stone["previous"]) == (1, "")
    assert stone["subject_hash"] == hash_of(tenant, "bob")


async def test_part_of_a_transaction_rolled_back_is_not_in_its_tombstone(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        records = [await remember(client, tenant, "ann") for _ in range(3)]
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, records[0])
        undone = client.transaction()
        await undone.start()
        await client.execute(DELETE, tenant, records[1])
        await undone.rollback()
    (stone,) = await tombstones(inspector, tenant)
    assert stone["memories"] == 1
    assert await damage(inspector, tenant) == []


async def test_the_label_and_the_tenant_are_the_callers_again_after_an_erasure(
    client: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
        await label(client, "the caller's own")
        await forget(client, tenant, "ann")
        row = await client.fetchrow(
            "select current_setting('app.current_tenant'), current_setting('memory.erasure')"
        )
        assert tuple(row) == (tenant, "the caller's own")


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_an_older_snapshot_is_no_ground_to_erase_from(
    client: Connection, tenant: str, isolation: str
) -> None:
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
    with refused("ME017"):
        async with acting(client, tenant, isolation):
            await forget(client, tenant, "ann")
    async with acting(client, tenant, isolation):
        assert (await forget(client, tenant, "ann", dry_run=True))["memories"] == 1
    async with acting(client, tenant):
        assert (await forget(client, tenant, "ann"))["memories"] == 1
