"""Two hundred seeded interleavings per pair of verbs: nothing about an erased person survives.

Every round has a tenant of its own and fails with its name, which holds the seed. Starts are spread
over some milliseconds, and in half of the rounds somebody holds a lock meanwhile, so that writers
queue up in another order than they came.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memory import (
    ConflictError,
    Memory,
    PartialErasureError,
    Receipt,
    Record,
    TenantMemory,
    UnknownRecordError,
    UnknownSourceError,
)
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection, act
from servers import Database
from stores import broken_rules, mentions, rows_of

ROUNDS, FEWER = 200, 80
AT_ONCE = 6
T = TypeVar("T")


class Round:
    """One interleaving: a tenant, a source of chance, and what each verb returned."""

    def __init__(
        self, memory: Memory, scenario: str, seed: int, lockers: asyncpg.Pool[Any]
    ) -> None:
        self.name = f"{scenario}-{seed}-"
        self.needle = f"needle{scenario}"
        self.chance = random.Random(self.name)  # noqa: S311 - reproducible, not secret
        self.tenant: TenantMemory = memory.for_tenant(self.name)
        self.receipts: list[Receipt] = []
        self.stored: list[Record] = []
        self.refused = 0
        self._lockers = lockers

    async def remember(self, *people: str, **named: Any) -> Record:
        text = f"{self.needle} of {' and '.join(people)}"
        told = await self.tenant.remember(text=text, subject_keys=people, **named)
        self.stored.append(told.record)
        return told.record

    async def derive(self, *sources: Record, **named: Any) -> Record:
        made = await self.tenant.derive(
            kind="summary", text=f"{self.needle} in short", sources=sources, **named
        )
        self.stored.append(made.record)
        return made.record

    async def supersede(self, record: Record, **named: Any) -> Record:
        told = await self.tenant.supersede(
            record_id=record.record_id, text=f"{self.needle} anew", **named
        )
        self.stored.append(told.record)
        return told.record

    async def forget(self, person: str) -> Receipt:
        try:
            receipt = await self.tenant.forget(subject_key=person)
        except PartialErasureError as error:  # no index is there to be asked
            receipt = error.receipt
        self.receipts.append(receipt)
        return receipt

    async def together(
        self, *verbs: Coroutine[Any, Any, Any], refused: tuple[type[Exception], ...] = ()
    ) -> list[Any]:
        """Run verbs at random moments; what they may be refused with comes back as a result."""
        delays = [self.chance.uniform(0, 0.005) for _ in verbs]
        interloper = self._interloper() if self.chance.random() < 0.5 else asyncio.sleep(0)

        async def later(delay: float, verb: Coroutine[Any, Any, Any]) -> Any:
            await asyncio.sleep(delay)
            try:
                return await verb
            except refused as error:
                self.refused += 1
                return error

        async with asyncio.TaskGroup() as group:
            group.create_task(interloper)
            tasks = [group.create_task(later(*pair)) for pair in zip(delays, verbs, strict=True)]
        return [task.result() for task in tasks]

    async def _interloper(self) -> None:
        table = self.chance.choice(["records", "subjects", "record_subjects"])
        mode = self.chance.choice(["update", "share", "key share", "no key update"])
        async with self._lockers.acquire() as connection, connection.transaction():
            await act(connection, self.name)
            await connection.execute(
                f"select from memory.{table} where tenant_key = $1 order by random() limit 1"
                f" for {mode}",
                self.name,
            )
            await asyncio.sleep(self.chance.uniform(0.001, 0.008))

    def check_sums(self) -> None:
        """Every record that a verb returned was counted by exactly one receipt."""
        counted = [(receipt.counts.memories, receipt.counts.derived) for receipt in self.receipts]
        expected = [
            len([r for r in self.stored if r.origin == origin])
            for origin in ("remembered", "derived")
        ]
        assert [sum(column) for column in zip(*counted, strict=True)] == expected, self.name


Scenario = Callable[[Round], Awaitable[None]]
Play = Callable[..., Awaitable[list[Round]]]


@pytest.fixture
async def play(shared: Database, inspector: Connection) -> AsyncIterator[Play]:
    """Plays a scenario ``ROUNDS`` times, then looks past the store at what is left."""
    engine = create_async_engine(normalize_url(shared.app_url), pool_size=20, hide_parameters=True)
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    lockers = await asyncpg.create_pool(shared.superuser_url, min_size=1, max_size=AT_ONCE)

    async def playing(scenario: str, act_out: Scenario, rounds: int = ROUNDS) -> list[Round]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(seed: int) -> Round:
            async with gate:
                this = Round(memory, scenario, seed, lockers)
                await act_out(this)
                return this

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(seed)) for seed in range(rounds)]
        played = [task.result() for task in tasks]
        for this in played:
            this.check_sums()
        prefix = f"{scenario}-"
        assert await broken_rules(inspector, prefix) == {}
        left = await rows_of(inspector, prefix)
        assert not {"records", "record_subjects", "provenance", "postings", "artefacts"} & set(left)
        assert set(await mentions(inspector, f"needle{scenario}")) == set()
        await tombstones_agree(inspector, prefix, played)
        return played

    yield playing
    await lockers.close()
    await engine.dispose()


async def tombstones_agree(inspector: Connection, prefix: str, rounds: list[Round]) -> None:
    """Each receipt has one tombstone, with the same counts; and there are no others."""
    rows = await inspector.fetch(
        "select erasure_id, subject_hash, memories, derived, provenance_edges, artefacts"
        " from memory.tombstones where starts_with(tenant_key, $1)",
        prefix,
    )
    expected = [
        (
            receipt.erasure_id,
            *receipt.subject_hashes,
            receipt.counts.memories,
            receipt.counts.derived,
            receipt.counts.provenance_edges,
            receipt.counts.artefacts,
        )
        for this in rounds
        for receipt in this.receipts
    ]
    assert sorted(map(tuple, rows)) == sorted(expected)


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
