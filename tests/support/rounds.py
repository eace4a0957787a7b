"""Seeded interleavings of verbs, and what every one of them leaves behind.

Every round has a tenant of its own and fails with its name, which holds the seed. Starts are spread
over some milliseconds, and in half of the rounds somebody holds a lock meanwhile, so that writers
queue up in another order than they came.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import create_async_engine

from effort import tries
from memory import LegalHoldError, Memory, PartialErasureError, Receipt, Record, TenantMemory
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection, act
from servers import Database
from stores import broken_rules, mentions, rows_of

ROUNDS, FEWER = tries(200), tries(80)
AT_ONCE = 6


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

    async def forget(self, person: str, **named: Any) -> Receipt:
        try:
            receipt = await self.tenant.forget(subject_key=person, **named)
        except (PartialErasureError, LegalHoldError) as error:  # no index is there to be asked
            receipt = error.receipt
        self.receipts.append(receipt)
        return receipt

    async def release(self, person: str) -> None:
        done = await self.tenant.release(subject_key=person)
        self.receipts += done.receipts

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


@contextlib.asynccontextmanager
async def playing(shared: Database, inspector: Connection, role: str) -> AsyncIterator[Play]:
    """Plays a scenario ``ROUNDS`` times, then looks past the store at what is left."""
    engine = create_async_engine(
        normalize_url(shared.url(role)), pool_size=20, hide_parameters=True
    )
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    lockers = await asyncpg.create_pool(shared.superuser_url, min_size=1, max_size=AT_ONCE)

    async def play(scenario: str, act_out: Scenario, rounds: int = ROUNDS) -> list[Round]:
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

    yield play
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
        if receipt.counts.records or not receipt.deferred
    ]
    assert sorted(map(tuple, rows)) == sorted(expected)
