"""Random histories around a backup: a replay takes what the lost erasures would have taken."""

from __future__ import annotations

import asyncio
import contextlib
import random
from uuid import UUID

import asyncpg
import pytest

import memory
from memory import ExportedRecord, TenantMemory, UnknownSourceError
from restores import backup, codes, opened, stream
from servers import Database
from stores import broken_rules, mentions

PEOPLE = ("ann", "bob", "cy", "dee")


async def random_steps(home: TenantMemory, chance: random.Random, steps: int) -> None:
    """Memories about one or two people, and what is derived from any of them."""
    for number in range(steps):
        stored = await home.records(limit=1000)
        if stored and chance.random() < 0.4:
            sources = chance.sample(stored, min(len(stored), chance.randint(1, 3)))
            await home.derive(kind="summary", text=f"made {number}", sources=sources)
        else:
            people = chance.sample(PEOPLE, chance.randint(1, 2))
            await home.remember(text=f"told {number}", subject_keys=people)


async def ids(home: TenantMemory, person: str | None = None) -> set[UUID]:
    """Everything, or everything held about a person."""
    if person is None:
        return {record.record_id for record in await home.records(limit=1000)}
    stream = home.export(subject_key=person)
    return {entry.record_id async for entry in stream if isinstance(entry, ExportedRecord)}


@pytest.mark.parametrize("seed", range(6))
async def test_a_replay_takes_exactly_what_the_lost_erasures_would_have_taken(
    database: Database, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    before, after = chance.choice(PEOPLE), chance.sample(PEOPLE, chance.randint(1, 2))
    async with opened(database) as service:
        home = service.for_tenant("acme")
        await random_steps(home, chance, 12)
        await home.forget(subject_key=before)
        await random_steps(home, chance, 8)
    with backup(database) as restored:
        async with opened(database) as service:
            home = service.for_tenant("acme")
            for person in after:
                await random_steps(home, chance, 2)
                await home.forget(subject_key=person)
            await random_steps(home, chance, 3)
        lines = await stream(database)
        async with opened(restored) as service:
            home = service.for_tenant("acme")
            lost = set().union(*[await ids(home, person) for person in after])
            stays = await ids(home) - lost
            # After the restore, before the replay: what comes now stays, if its sources do.
            later = (await home.remember(text="later", subject_keys=after)).record.record_id
            done = await memory.replay(restored.owner_url, lines)
            assert (done.known, done.records) == (1, len(lost))
            assert await ids(home) == stays | {later}
        assert await codes(restored, lines) <= {"chain_lost", "older_than_erasure"}
        assert (await memory.replay(restored.owner_url, lines)).records == 0


async def test_a_replay_beside_writers_leaves_nothing_old_and_nothing_broken(
    database: Database,
) -> None:
    async with opened(database) as service:
        home = service.for_tenant("acme")
        old = [
            (await home.remember(text=f"needle {n}", subject_keys=["ann", "bob"])).record
            for n in range(60)
        ]
    with backup(database) as restored:
        async with opened(database) as service:
            await service.forget("acme", subject_key="ann")
        lines = await stream(database)
        async with opened(restored) as service:
            home = service.for_tenant("acme")
            done = asyncio.Event()
            fresh: list[UUID] = []

            async def write(seed: int) -> None:
                chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
                while not done.is_set():
                    told = await home.remember(text="new", subject_keys=["ann", "zoe"])
                    fresh.append(told.record.record_id)
                    with contextlib.suppress(UnknownSourceError):
                        await home.derive(
                            kind="summary", text="needle anew", sources=chance.sample(old, 2)
                        )

            writers = [asyncio.create_task(write(seed)) for seed in range(4)]
            await asyncio.sleep(0.1)
            result = await memory.replay(restored.owner_url, lines)
            done.set()
            await asyncio.gather(*writers)
            assert result.records >= len(old)
            assert {item.text for item in await home.records(limit=1000)} == {"new"}
            assert await ids(home) == set(fresh)
        inspector = await asyncpg.connect(restored.superuser_url)
        assert await broken_rules(inspector) == {}
        assert await mentions(inspector, "needle") == {}
        await inspector.close()
        assert await codes(restored, lines) == {"chain_lost"}
