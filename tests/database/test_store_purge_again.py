"""An artefact that is registered, written and erased again while its purge is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import pytest

from memory import Memory
from memory.stores.postgres import PostgresStore
from rawsql import Connection
from servers import Database


class Index:
    """Calls back once, after it has purged and before it answers."""

    name = "vectors"

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.asked = 0
        self.then: Callable[[], Awaitable[None]] | None = None

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        self.held -= set(artefact_ids)
        self.asked += 1
        then, self.then = self.then, None
        if then is not None:
            await then()
        return len(artefact_ids)


async def test_a_purge_for_one_erasure_does_not_settle_the_next(
    shared: Database, client: Connection, tenant: str
) -> None:
    index = Index()
    async with (
        Memory(PostgresStore(shared.app_url), indexes=[index], subject_pepper="pepper") as memory,
        Memory(PostgresStore(shared.app_url), subject_pepper="pepper") as other,
    ):

        async def told(person: str) -> UUID:
            record = (await other.remember(tenant, text="called", subject_keys=person)).record
            await other.register_artefact(
                tenant, adapter="vectors", artefact_id="digest", sources=record
            )
            index.held.add("digest")
            return record.record_id

        async def erased_again() -> None:
            record_id = await told("bob")
            async with client.transaction():
                await client.execute("select set_config('app.current_tenant', $1, true)", tenant)
                await client.execute("delete from memory.records where record_id = $1", record_id)

        await told("ann")
        index.then = erased_again
        # The second debt is another one: it is not settled by the first answer but asked for again.
        assert (await memory.forget(tenant, subject_key="ann")).complete
        assert index.held == set()
        assert index.asked == 2
        assert (await memory.purge_outstanding(tenant)).adapters == ()


async def test_a_cancelled_purge_gives_its_lease_back(shared: Database, tenant: str) -> None:
    index = Index()
    store = PostgresStore(shared.app_url)
    async with Memory(store, indexes=[index], subject_pepper="pepper") as memory:
        told = await memory.remember(tenant, text="called", subject_keys="ann")
        await memory.register_artefact(
            tenant, adapter="vectors", artefact_id="digest", sources=told
        )

        async def hang() -> None:
            started.set()
            await asyncio.sleep(60)

        started, index.then = asyncio.Event(), hang
        erasing = asyncio.create_task(memory.forget(tenant, subject_key="ann"))
        await started.wait()
        erasing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await erasing
        assert (await memory.purge_outstanding(tenant)).settled == 1
