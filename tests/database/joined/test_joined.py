"""Inside the caller's transaction: nothing is committed here, and nothing of it is disturbed."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from joining import Index, Joined, order, orders
from memory import Memory
from rawsql import Connection
from stores import broken_rules, image, mentions, rows_of


async def test_a_row_of_the_hosts_and_a_memory_commit_together(
    engine: AsyncEngine, joined: Joined, superuser: Connection, tenant: str
) -> None:
    async with engine.begin() as connection:
        await order(connection, tenant)
        await joined(connection).remember(tenant, text="paid the order", subject_keys="ann")
        assert await rows_of(superuser, tenant) == {}
        assert await orders(superuser, tenant) == 0
    assert (await rows_of(superuser, tenant))["records"] == 1
    assert await orders(superuser, tenant) == 1


async def test_a_rollback_of_the_hosts_leaves_no_row_in_any_table(
    engine: AsyncEngine, joined: Joined, own: Memory, superuser: Connection, tenant: str
) -> None:
    kept = (await own.remember(tenant, text="kept", subject_keys="zoe")).record
    before = await image(superuser, tenant)
    async with engine.connect() as connection:
        await order(connection, tenant)
        memory = joined(connection)
        told = (await memory.remember(tenant, text="a needle", subject_keys="ann")).record
        made = await memory.derive(
            tenant,
            kind="summary",
            text="needle",
            sources=[told, kept],
            artefacts=[("index", "needle")],
        )
        await memory.relate(tenant, record_id=told, subject_keys="bob")
        await memory.supersede(tenant, record_id=told, text="another needle")
        await memory.forget(tenant, subject_key="bob")
        await memory.forget_record(tenant, record_id=kept)
        assert await memory.get(tenant, record_id=made.record) is None
        await connection.rollback()
    assert await image(superuser, tenant) == before
    assert await mentions(superuser, "needle") == {}
    assert await orders(superuser, tenant) == 0


async def test_forget_waits_with_its_purges_for_a_store_of_its_own(
    engine: AsyncEngine, joined: Joined, own: Memory, index: Index, tenant: str
) -> None:
    told = (await own.remember(tenant, text="tea", subject_keys="ann")).record
    await own.register_artefact(tenant, adapter="index", artefact_id="one", sources=told)
    async with engine.begin() as connection:
        receipt = await joined(connection).forget(tenant, subject_key="ann")
        assert (await joined(connection).purge_outstanding(tenant)).outstanding == ("index",)
    assert receipt.anchor is None
    assert receipt.outstanding == ("index",)
    assert not receipt.complete
    assert receipt.counts.records == receipt.counts.artefacts == 1
    assert index.asked == []
    purged = await own.purge_outstanding(tenant)
    assert (purged.settled, purged.outstanding) == (1, ())
    assert index.asked == ["one"]
    (stone,) = await own.erasure_history(tenant)
    assert stone.erasure_id == receipt.erasure_id
    assert (stone.memories, stone.artefacts) == (1, 1)


async def test_two_forgets_in_one_transaction_leave_two_tombstones(
    engine: AsyncEngine, joined: Joined, own: Memory, superuser: Connection, tenant: str
) -> None:
    for person in ("ann", "bob"):
        await own.remember(tenant, text="tea", subject_keys=person)
    async with engine.begin() as connection:
        memory = joined(connection)
        receipts = [await memory.forget(tenant, subject_key=person) for person in ("ann", "bob")]
        await memory.remember(tenant, text="tea again", subject_keys="ann")
    stones = await own.erasure_history(tenant)
    assert {stone.erasure_id for stone in stones} == {r.erasure_id for r in receipts}
    assert [stone.memories for stone in stones] == [1, 1]
    assert [r.text for r in await own.records(tenant)] == ["tea again"]
    assert await broken_rules(superuser, tenant) == {}


async def test_the_connection_of_an_orm_session_can_be_joined(
    engine: AsyncEngine, joined: Joined, superuser: Connection, tenant: str
) -> None:
    async with AsyncSession(engine) as session:
        await session.execute(text("insert into public.orders values (:t, 'orm')"), {"t": tenant})
        memory = joined(await session.connection())
        await memory.remember(tenant, text="tea", subject_keys="ann")
        await session.rollback()
        assert await rows_of(superuser, tenant) == {}
        memory = joined(await session.connection())
        await memory.remember(tenant, text="milk", subject_keys="ann")
        await session.commit()
    assert (await rows_of(superuser, tenant))["records"] == 1
