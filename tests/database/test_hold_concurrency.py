"""Two hundred seeded interleavings per pair: a hold keeps all or nothing, a block lets nothing by.

Whatever the order, every record is counted by exactly one receipt in the end, and nothing is left
once all holds are lifted and everybody is erased: ``playing`` looks past the store for that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

import asyncpg
import pytest

from memory import SubjectBlockedError, UnknownRecordError
from rawsql import Connection
from rounds import FEWER, Play, Round, playing
from servers import Database


@pytest.fixture
async def play(shared: Database, inspector: Connection) -> AsyncIterator[Play]:
    async with playing(shared, inspector, "operator") as play:
        yield play


_MISHELD = """
    select r.record_id from memory.records as r
    where r.tenant_key = $1 and r.held <> exists (
        select from memory.record_subjects as l
        join memory.subjects as s
            on s.tenant_key = l.tenant_key and s.subject_hash = l.subject_hash
        where l.tenant_key = $1 and l.record_id = r.record_id and s.held)
"""

Look = Callable[[Round], Awaitable[set[UUID]]]


@pytest.fixture
async def alive(shared: Database) -> AsyncIterator[Look]:
    """The ids of a round's records, past the store; and no flag says other than the holds do."""
    pool = await asyncpg.create_pool(shared.superuser_url, min_size=1, max_size=6)

    async def look(this: Round) -> set[UUID]:
        assert await pool.fetch(_MISHELD, this.name) == [], this.name
        rows = await pool.fetch(
            "select record_id from memory.records where tenant_key = $1", this.name
        )
        return {row["record_id"] for row in rows}

    yield look
    await pool.close()


async def test_a_hold_beside_an_erasure_keeps_all_or_comes_too_late(
    play: Play, alive: Look
) -> None:
    async def scenario(this: Round) -> None:
        told = [await this.remember("ann") for _ in range(this.chance.randint(1, 3))]
        made = await this.derive(*told)
        await this.together(this.forget("ann"), this.tenant.hold(subject_key="ann"))
        (receipt,) = this.receipts
        kept = {record.record_id for record in (*told, made)} if receipt.deferred else set()
        assert await alive(this) == kept, this.name
        assert (receipt.held, receipt.counts.records) in ((len(kept), 0), (0, len(told) + 1))
        await this.release("ann")

    rounds = await play("hold-forget", scenario)
    deferred = [this.receipts[0].deferred for this in rounds]
    assert any(deferred), "one order only"
    assert not all(deferred), "one order only"


async def test_what_is_written_beside_a_hold_is_held(play: Play, alive: Look) -> None:
    async def scenario(this: Round) -> None:
        bob = await this.remember("bob")
        ann = await this.remember("ann") if this.chance.random() < 0.5 else bob
        await this.together(
            this.remember("ann"),
            this.remember("bob", "ann"),
            this.derive(ann, bob),
            this.tenant.hold(subject_key="ann"),
            this.remember("bob"),
        )
        before = await alive(this)
        await this.forget("ann")
        await this.forget("bob")
        about_ann = {r.record_id for r in this.stored if "ann" in r.subject_keys}
        assert about_ann <= await alive(this) <= before, this.name
        await this.release("ann")

    await play("hold-write", scenario)


async def test_a_person_recognised_or_derived_from_beside_a_hold_is_held_everywhere(
    play: Play, alive: Look
) -> None:
    async def scenario(this: Round) -> None:
        told = await this.remember("bob")
        first = await this.derive(told)
        await this.together(
            this.tenant.relate(record_id=told.record_id, subject_keys="ann"),
            this.derive(told),
            this.derive(first),
            this.tenant.hold(subject_key="ann"),
        )
        everything = await alive(this)
        receipt = await this.forget("bob")
        assert (receipt.held, receipt.counts.records) == (4, 0), this.name
        assert await alive(this) == everything
        await this.release("ann")

    await play("hold-relate", scenario)


async def test_releases_at_once_complete_an_erasure_once(play: Play, alive: Look) -> None:
    """Ann's waits for three people: herself, Bob, and Cid, who share no record with each other."""

    async def scenario(this: Round) -> None:
        for person in ("bob", "cid"):
            await this.derive(await this.remember("ann"), await this.remember(person))
        people = ["ann", "bob", "cid"]
        for person in people:
            await this.tenant.hold(subject_key=person)
        await this.forget("ann")
        await this.together(*(this.release(person) for person in people))
        actions = [one.action for one in await this.tenant.decisions()]
        assert actions.count("complete") == 1, this.name
        assert len(await alive(this)) == 2, this.name
        for person in people[1:]:
            await this.forget(person)

    await play("releases", scenario)


async def test_an_erasure_beside_a_release_is_carried_out_once(play: Play, alive: Look) -> None:
    async def scenario(this: Round) -> None:
        told = await this.remember("ann", "bob")
        await this.derive(told)
        await this.tenant.hold(subject_key="bob")
        await this.together(this.forget("ann"), this.release("bob"), this.forget("bob"))
        assert await alive(this) == set(), this.name

    rounds = await play("release-forget", scenario)
    deferred = [any(receipt.deferred for receipt in this.receipts) for this in rounds]
    assert any(deferred), "one order only"
    assert not all(deferred), "one order only"


async def test_a_write_beside_a_block_is_erased_or_refused(play: Play, alive: Look) -> None:
    async def scenario(this: Round) -> None:
        if this.chance.random() < 0.5:
            await this.remember("ann")
        bob = await this.remember("bob")
        await this.together(
            this.remember("ann"),
            this.remember("bob", "ann"),
            this.tenant.relate(record_id=bob.record_id, subject_keys="ann"),
            this.forget("ann", block_future=True),
            this.remember("ann"),
            refused=(SubjectBlockedError, UnknownRecordError),
        )
        left = {record.record_id for record in await this.tenant.records(subject_keys="ann")}
        assert left == set(), this.name
        assert await alive(this) <= {bob.record_id}
        await this.forget("bob")

    rounds = await play("block-write", scenario)
    assert any(this.refused for this in rounds), "one order only"
    assert any(this.receipts[0].counts.memories > 1 for this in rounds), "one order only"


async def test_a_derivation_beside_the_block_of_somebody_held_is_kept_or_refused(
    play: Play, alive: Look
) -> None:
    async def scenario(this: Round) -> None:
        told = await this.remember("ann")
        await this.tenant.hold(subject_key="ann")
        await this.together(
            this.derive(told),
            this.forget("ann", block_future=True),
            this.derive(told),
            refused=(SubjectBlockedError,),
        )
        assert await alive(this) == {record.record_id for record in this.stored}, this.name
        with pytest.raises(SubjectBlockedError):
            await this.derive(told)
        await this.release("ann")

    rounds = await play("block-derive", scenario, FEWER)
    assert any(this.refused for this in rounds), "one order only"
