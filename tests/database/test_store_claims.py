"""Many sessions of three tenants share artefacts and an index that fails at times."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from memory import ConflictError, Memory, PartialErasureError, UnknownSourceError
from memory.stores.postgres import PostgresStore
from rawsql import Connection, damage
from servers import Database

SESSIONS, OPERATIONS = 6, 60
PEOPLE = ("ann", "bob", "cid")


class Index:
    """What it holds, and at times no answer."""

    name = "index"

    def __init__(self, chance: random.Random) -> None:
        self.held: set[str] = set()
        self.failing = 0.2
        self._chance = chance

    async def _answer(self) -> None:
        await asyncio.sleep(self._chance.choice([0, 0, 0.001, 0.004]))
        if self._chance.random() < self.failing:
            raise OSError

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        await self._answer()
        self.held -= set(artefact_ids)
        await self._answer()
        return len(artefact_ids)

    async def present(self, artefact_ids: Sequence[str]) -> set[str]:
        await self._answer()
        return self.held & set(artefact_ids)


async def write(memory: Memory, index: Index, tenant: str, person: str, artefact: str) -> None:
    """As a host should: register, write, register again."""
    record = (await memory.remember(tenant, text="tea", subject_keys=person)).record

    async def register() -> None:
        await memory.register_artefact(
            tenant, adapter="index", artefact_id=artefact, sources=record
        )

    try:
        await register()
    except (ConflictError, UnknownSourceError):
        return
    index.held.add(artefact)
    try:
        await register()
    except (ConflictError, UnknownSourceError):
        index.held.discard(artefact)


async def test_whatever_is_erased_at_once_the_index_keeps_nothing_that_nobody_registered(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    chance = random.Random(7)  # noqa: S311 - reproducible, not secret
    index = Index(chance)
    tenants = [f"{tenant}-{n}" for n in range(3)]
    memories = [
        Memory(PostgresStore(shared.app_url), indexes=[index], subject_pepper="pepper")
        for _ in range(SESSIONS)
    ]

    partial: list[tuple[str, ...]] = []

    async def session(memory: Memory) -> None:
        for _ in range(OPERATIONS):
            place, person = chance.choice(tenants), chance.choice(PEOPLE)
            kind = chance.random()
            try:
                if kind < 0.6:
                    artefact = f"{tenant}-artefact-{chance.randrange(6)}"
                    await write(memory, index, place, person, artefact)
                elif kind < 0.85:
                    await memory.forget(place, subject_key=person)
                else:
                    await memory.purge_outstanding(place)
            except PartialErasureError as error:
                partial.append(error.receipt.outstanding)

    await asyncio.gather(*map(session, memories))
    assert set(partial) == {("index",)}
    index.failing = 0
    for place in tenants:
        assert (await memories[0].purge_outstanding(place)).outstanding == ()
    registered = {
        row["artefact_id"]
        for row in await inspector.fetch(
            "select artefact_id from memory.artefacts where starts_with(tenant_key, $1)",
            f"{tenant}-",
        )
    }
    assert index.held <= registered
    for place in tenants:
        assert await damage(inspector, place) == []
        for person in PEOPLE:
            assert (await memories[0].forget(place, subject_key=person)).complete
    assert index.held == set()
    left = await inspector.fetchval(
        "select count(*) from memory.artefact_claims where artefact_hash = any ("
        " select memory.framed_hash('index', $1 || '-artefact-' || n)"
        " from generate_series(0, 5) as n)",
        tenant,
    )
    assert left == 0
    owed, paid = await inspector.fetchrow(
        "select (select coalesce(sum(artefacts), 0) from memory.tombstones"
        " where starts_with(tenant_key, $1)),"
        " (select coalesce(sum(artefacts), 0) from memory.purge_receipts"
        " where starts_with(tenant_key, $1))",
        f"{tenant}-",
    )
    assert owed == paid > 0
    for memory in memories:
        await memory.close()
