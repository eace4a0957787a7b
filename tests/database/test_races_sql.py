"""Random interleavings of raw SQL by several sessions: whatever the order, nothing is severed."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from effort import tries
from memory.fingerprint import tombstone_digest
from memory.ids import uuid7
from memory.types import Tombstone
from rawsql import (
    ISOLATION,
    RETRYABLE,
    Connection,
    acting,
    damage,
    derive,
    forget,
    hash_of,
    leftovers,
    link,
    living,
    register,
    remember,
    tombstones,
)
from servers import Database

ROUNDS = tries(200)
# A deadlock or serialization failure, or an end of a deferred foreign key that vanished meanwhile.
AGAIN = {*RETRYABLE, "23503"}
UNKNOWN_SOURCE = "ME006"


class Session:
    """One connection that runs a transaction again until it passes, with pauses by chance."""

    def __init__(self, connection: Connection, tenant: str, chance: random.Random) -> None:
        self.connection = connection
        self.tenant = tenant
        self.chance = chance

    async def run(self, verb: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
        """What the verb returned; None if a record that it needs is gone for good."""
        # A later link and an erasure are refused in a stricter level than READ COMMITTED.
        levels = ISOLATION[:1] if verb in (link, relate, forget) else ISOLATION
        isolation = self.chance.choice(levels)
        for _ in range(50):
            await self.pause()
            try:
                async with acting(self.connection, self.tenant, isolation):
                    await self.pause()
                    done = await verb(self.connection, self.tenant, *given, **named)
                    await self.pause()
            except asyncpg.PostgresError as error:
                if error.sqlstate == UNKNOWN_SOURCE or (
                    verb in (link, relate) and error.constraint_name == "link_record"
                ):
                    return None
                if error.sqlstate not in AGAIN:
                    raise
            else:
                return done
        raise AssertionError("it never passed")

    async def pause(self) -> None:
        if self.chance.random() < 0.5:
            await asyncio.sleep(self.chance.random() * 0.003)


@pytest.fixture
async def sessions(
    shared: Database, inspector: Connection, tenant: str, request: pytest.FixtureRequest
) -> AsyncIterator[list[Session]]:
    """Six sessions of the application; what they do follows from the test's name."""
    await inspector.execute(f"alter database {shared.name} set deadlock_timeout = '20ms'")
    opened = [await asyncpg.connect(shared.app_url) for _ in range(6)]
    yield [
        Session(connection, tenant, random.Random(f"{request.node.name}-{n}"))  # noqa: S311
        for n, connection in enumerate(opened)
    ]
    for connection in opened:
        await connection.close()


async def delete(connection: Connection, tenant: str, record_id: UUID) -> None:
    await connection.execute(
        "delete from memory.records where tenant_key = $1 and record_id = $2", tenant, record_id
    )


async def relate(connection: Connection, tenant: str, record_id: UUID, person: str) -> None:
    await connection.execute(
        "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
        " values ($1, $2, $3, $4) on conflict do nothing",
        tenant,
        record_id,
        person,
        hash_of(tenant, person),
    )


async def sound(inspector: Connection, tenant: str) -> list[Tombstone]:
    """Nothing is severed, and the chain is whole; returns it."""
    assert await damage(inspector, tenant) == []
    chain = [Tombstone(**dict(row)) for row in await tombstones(inspector, tenant)]
    assert [stone.seq for stone in chain] == list(range(1, len(chain) + 1))
    for before, after in itertools.pairwise(chain):
        assert after.previous == before.digest
    assert all(tombstone_digest(stone) == stone.digest for stone in chain)
    return chain


def attested(receipts: list[asyncpg.Record], chain: list[Tombstone]) -> None:
    """The counts of each receipt are those of its tombstone."""
    by_erasure = {(stone.erasure_id, stone.subject_hash): stone for stone in chain}
    for receipt in receipts:
        stone = by_erasure[receipt["erasure_id"], receipt["subject_hashes"][0]]
        for count in ("memories", "derived", "provenance_edges", "artefacts"):
            assert receipt[count] == getattr(stone, count), count


async def test_derive_against_forget_leaves_no_orphan(
    sessions: list[Session], inspector: Connection, tenant: str
) -> None:
    eraser, maker, other, further, *_ = sessions
    receipts = []
    for n in range(ROUNDS):
        made = uuid7()
        async with acting(inspector, tenant):
            root = await remember(inspector, tenant, f"ann-{n}")
            kept = await remember(inspector, tenant, f"bob-{n}")
            old = await derive(inspector, tenant, root, kept)
        receipt, *_ = await asyncio.gather(
            eraser.run(forget, f"ann-{n}"),
            maker.run(derive, root, record_id=made),
            other.run(derive, old, kept),
            further.run(derive, made, kept),
        )
        receipts.append(receipt)
    assert len(await living(inspector, tenant)) == ROUNDS
    attested(receipts, await sound(inspector, tenant))


async def test_remember_against_forget_is_before_or_after(
    sessions: list[Session], inspector: Connection, tenant: str
) -> None:
    eraser, one, two, *_ = sessions
    receipts, before = [], 0
    for n in range(ROUNDS):
        ann = f"ann-{n}"
        if n % 2:
            await eraser.run(remember, ann)
        receipt, *_ = await asyncio.gather(
            eraser.run(forget, ann), one.run(remember, ann), two.run(remember, ann, f"bob-{n}")
        )
        receipts.append(receipt)
        left = await inspector.fetchval(
            "select count(*) from memory.record_subjects"
            " where tenant_key = $1 and subject_key = $2",
            tenant,
            ann,
        )
        assert receipt["memories"] + left == 2 + n % 2
        before += receipt["memories"] - n % 2
    # Both orders were met, or the rounds prove little.
    assert 0 < before < 2 * ROUNDS
    attested(receipts, await sound(inspector, tenant))


async def test_erasures_of_shared_records_count_each_record_once(
    sessions: list[Session], inspector: Connection, tenant: str
) -> None:
    one, two, three, *_ = sessions
    receipts = []
    for n in range(ROUNDS):
        ann, bob, carol = f"ann-{n}", f"bob-{n}", f"carol-{n}"
        async with acting(inspector, tenant):
            both = await remember(inspector, tenant, ann, bob)
            own = await remember(inspector, tenant, bob)
            third = await remember(inspector, tenant, carol)
            digest = await derive(inspector, tenant, both, own)
            await derive(inspector, tenant, third, digest)
            await register(inspector, tenant, f"vector-{n}", both, third)
        done = await asyncio.gather(
            one.run(forget, ann), two.run(forget, bob), three.run(forget, carol)
        )
        assert sum(receipt["memories"] for receipt in done) == 3
        assert sum(receipt["derived"] for receipt in done) == 2
        assert sum(receipt["artefacts"] for receipt in done) == 1
        receipts += done
    assert await leftovers(inspector, tenant) == {}
    attested(receipts, await sound(inspector, tenant))


async def test_a_link_against_derivations_reaches_all_of_them(
    sessions: list[Session], inspector: Connection, tenant: str
) -> None:
    one, two, three, four, *_ = sessions
    for n in range(ROUNDS):
        async with acting(inspector, tenant):
            root = await remember(inspector, tenant, f"ann-{n}")
            digest = await derive(inspector, tenant, root)
        await asyncio.gather(
            one.run(link, root, f"dana-{n}"),
            two.run(derive, root),
            three.run(derive, digest),
            four.run(link, digest, f"eve-{n}"),
        )
    await sound(inspector, tenant)
    for n in range(ROUNDS):
        # Nobody may be missed: whoever is erased takes them all.
        receipt = await one.run(forget, f"dana-{n}")
        assert (receipt["memories"], receipt["derived"]) == (1, 3)
    assert await leftovers(inspector, tenant) == {}


async def test_a_link_against_forget_is_before_or_after(
    sessions: list[Session], inspector: Connection, tenant: str
) -> None:
    one, two, three, *_ = sessions
    receipts = []
    for n in range(ROUNDS):
        async with acting(inspector, tenant):
            root = await remember(inspector, tenant, f"ann-{n}")
            await derive(inspector, tenant, root)
        ann, _, dana = await asyncio.gather(
            one.run(forget, f"ann-{n}"),
            two.run(link, root, f"dana-{n}"),
            three.run(forget, f"dana-{n}"),
        )
        assert ann["memories"] + dana["memories"] == 1
        receipts += [ann, dana]
    assert await leftovers(inspector, tenant) == {}
    attested(receipts, await sound(inspector, tenant))


async def test_a_raw_delete_against_derive_and_register(
    sessions: list[Session], inspector: Connection, tenant: str
) -> None:
    one, two, three, four, *_ = sessions
    for n in range(ROUNDS):
        made = uuid7()
        async with acting(inspector, tenant):
            root = await remember(inspector, tenant, f"ann-{n}")
            kept = await remember(inspector, tenant, "bob")
            digest = await derive(inspector, tenant, root, kept)
        await asyncio.gather(
            one.run(delete, root),
            two.run(derive, digest, record_id=made),
            three.run(derive, kept, made),
            four.run(register, f"vector-{n}", digest, root),
        )
    assert len(await living(inspector, tenant)) == ROUNDS
    chain = await sound(inspector, tenant)
    of_ann = {hash_of(tenant, f"ann-{n}") for n in range(ROUNDS)}
    assert sum(stone.memories for stone in chain if stone.subject_hash in of_ann) == ROUNDS
    assert {stone.reason for stone in chain} == {"operator"}


async def test_everything_at_once(
    sessions: list[Session], inspector: Connection, tenant: str
) -> None:
    people = [f"person-{n}" for n in range(5)]
    made: list[UUID] = []
    receipts: list[asyncpg.Record] = []

    async def step(session: Session) -> None:
        chance, recent = session.chance, made[-12:]
        who = chance.sample(people, chance.choice([1, 1, 1, 2]))
        what = chance.choice(["remember"] * 4 + ["derive"] * 5 + ["relate", "delete", "forget"])
        if what == "remember" or not recent:
            made.append(await session.run(remember, *who))
        elif what == "derive":
            sources = chance.sample(recent, min(len(recent), chance.randint(1, 3)))
            if digest := await session.run(derive, *sources):
                made.append(digest)
        elif what == "relate":
            await session.run(relate, chance.choice(recent), who[0])
        elif what == "delete":
            await session.run(delete, chance.choice(recent))
        else:
            receipts.append(await session.run(forget, who[0]))

    async def lane(session: Session) -> None:
        for _ in range(150):
            await step(session)

    await asyncio.gather(*map(lane, sessions))
    assert len(receipts) > 20
    attested(receipts, await sound(inspector, tenant))
    for person in people:
        receipts.append(await sessions[0].run(forget, person))
    assert await leftovers(inspector, tenant) == {}
    attested(receipts, await sound(inspector, tenant))
