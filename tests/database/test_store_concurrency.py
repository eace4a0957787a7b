"""Two hundred seeded interleavings per pair of verbs: nothing about an erased person survives."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memory import ConflictError, Record, UnknownRecordError, UnknownSourceError
from rawsql import Connection
from rounds import FEWER, Play, Round, playing
from servers import Database


@pytest.fixture
async def play(shared: Database, inspector: Connection) -> AsyncIterator[Play]:
    async with playing(shared, inspector, "app") as play:
        yield play


async def test_derive_beside_forget_dies_or_is_erased(play: Play) -> None:
    async def scenario(this: Round) -> None:
        told = [await this.remember("ann") for _ in range(this.chance.randint(1, 3))]
        both = await this.remember("ann", "bob")
        await this.together(
            this.derive(*told),
            this.derive(both),
            this.derive(this.chance.choice(told), both),
            this.forget("ann"),
            refused=(UnknownSourceError,),
        )

    rounds = await play("derive", scenario)
    assert any(this.refused for this in rounds), "one order only"
    assert any(this.receipts[0].counts.derived for this in rounds), "one order only"


async def test_remember_beside_forget_is_counted_once(play: Play) -> None:
    async def scenario(this: Round) -> None:
        if this.chance.random() < 0.7:
            await this.remember("ann")
        await this.together(
            this.remember("ann"),
            this.remember("ann", "bob"),
            this.forget("ann"),
            this.remember("bob", "ann"),
        )
        await this.forget("ann")

    await play("remember", scenario)


async def test_two_forgets_of_overlapping_people_erase_once(play: Play) -> None:
    async def scenario(this: Round) -> None:
        people = ["ann", "bob", "cid"]
        told = [
            await this.remember(*this.chance.sample(people, this.chance.randint(1, 3)))
            for _ in range(4)
        ]
        digest = await this.derive(*this.chance.sample(told, 3))
        await this.derive(digest, this.chance.choice(told))
        await this.together(*(this.forget(person) for person in people))

    await play("forgets", scenario)


async def test_a_chain_of_derivations_beside_forget_leaves_no_link(play: Play) -> None:
    async def scenario(this: Round) -> None:
        told = await this.remember("ann")

        async def chain() -> None:
            last = told
            for _ in range(4):
                last = await this.derive(last, told)

        await this.together(chain(), chain(), this.forget("ann"), refused=(UnknownSourceError,))

    rounds = await play("chain", scenario)
    assert any(this.refused for this in rounds), "one order only"
    assert any(this.receipts[0].counts.derived for this in rounds), "one order only"


async def test_two_supersedes_of_one_version_have_one_winner(play: Play) -> None:
    async def scenario(this: Round) -> None:
        keyed = {"record_key": "plan"} if this.chance.random() < 0.5 else {}
        old = await this.remember("ann", **keyed)
        results = await this.together(
            this.supersede(old), this.supersede(old), refused=(ConflictError,)
        )
        winners = [result for result in results if isinstance(result, Record)]
        assert len(winners) == 1, this.name
        assert [
            record.version for record in await this.tenant.history(record_key=old.record_key)
        ] == [2, 1]
        (current,) = await this.tenant.records(subject_keys="ann")
        assert current.record_id == winners[0].record_id
        await this.forget("ann")

    await play("winner", scenario)


async def test_supersede_beside_forget_leaves_no_version(play: Play) -> None:
    async def scenario(this: Round) -> None:
        old = await this.remember("ann")
        await this.together(
            this.supersede(old),
            this.supersede(old, subject_keys="bob"),
            this.forget("ann"),
            refused=(ConflictError, UnknownRecordError),
        )
        await this.forget("ann")
        await this.forget("bob")

    await play("rewrite", scenario, FEWER)


async def test_versions_of_a_key_written_at_once_form_one_line(play: Play) -> None:
    async def scenario(this: Round) -> None:
        if this.chance.random() < 0.5:
            await this.remember("ann", record_key="plan")
        await this.together(
            *(this.remember("ann", record_key="plan") for _ in range(3)), refused=(ConflictError,)
        )
        line = await this.tenant.history(record_key="plan")
        assert [record.version for record in line] == list(range(len(line), 0, -1)), this.name
        assert [record.superseded_at is None for record in line] == [True] + [False] * (
            len(line) - 1
        )
        assert {record.record_id for record in line} == {r.record_id for r in this.stored}
        await this.forget("ann")

    await play("versions", scenario)


async def test_retries_of_one_write_at_once_store_it_once(play: Play) -> None:
    async def scenario(this: Round) -> None:
        given = (await this.remember("zoe")).record_id
        await this.forget("zoe")
        answers = await this.together(
            *(
                this.tenant.remember(text=this.needle, subject_keys="ann", record_id=given)
                for _ in range(3)
            )
        )
        assert len({answer.record.created_at for answer in answers}) == 1, this.name
        this.stored.append(answers[0].record)
        await this.forget("ann")

    await play("retries", scenario, FEWER)


async def test_a_person_recognised_beside_derive_and_forget_is_erased_everywhere(
    play: Play,
) -> None:
    async def scenario(this: Round) -> None:
        told = await this.remember("ann")
        first = await this.derive(told)

        async def relate(record: Record, person: str) -> Record:
            return await this.tenant.relate(record_id=record.record_id, subject_keys=person)

        await this.together(
            relate(told, "bob"),
            relate(first, "cid"),
            this.derive(told),
            this.derive(first),
            this.forget(this.chance.choice(["ann", "bob", "cid"])),
            refused=(UnknownRecordError,),
        )
        for person in ("bob", "cid", "ann"):
            await this.forget(person)

    await play("relate", scenario)


async def test_artefacts_registered_beside_forget_are_owed_or_refused(
    play: Play, inspector: Connection
) -> None:
    async def scenario(this: Round) -> None:
        told = await this.remember("ann")
        await this.together(
            this.tenant.register_artefact(adapter="index", artefact_id="one", sources=told),
            this.derive(told, artefacts=[("index", "two")]),
            this.forget("ann"),
            refused=(UnknownSourceError,),
        )

    await play("artefacts", scenario, FEWER)
    owed = await inspector.fetch(
        "select p.tenant_key, count(*) from memory.purges as p"
        " where starts_with(p.tenant_key, 'artefacts-') group by p.tenant_key"
    )
    counted = await inspector.fetch(
        "select t.tenant_key, sum(t.artefacts) from memory.tombstones as t"
        " where starts_with(t.tenant_key, 'artefacts-') group by t.tenant_key"
        " having sum(t.artefacts) > 0"
    )
    assert sorted(map(tuple, owed)) == sorted(map(tuple, counted))


async def test_batches_about_the_same_new_people_in_opposite_order_both_succeed(
    play: Play,
) -> None:
    async def scenario(this: Round) -> None:
        people = [f"person-{n}" for n in range(6)]

        async def batch(order: list[str]) -> None:
            items = [{"text": this.needle, "subject_keys": person} for person in order]
            told = await this.tenant.remember_many(items=items)
            this.stored.extend(one.record for one in told)

        await this.together(batch(people), batch(people[::-1]))
        await this.together(*(this.forget(person) for person in people))

    await play("batches", scenario, FEWER)
