"""Many debts, and one index that cannot pay its own."""

from __future__ import annotations

import pytest

from memory import Memory, PartialErasureError
from memory.stores.postgres import PostgresStore
from rawsql import Connection
from servers import Database

MORE_THAN_ONE_LEASE = 10_001


class Index:
    def __init__(self, name: str, *, broken: bool = False) -> None:
        self.name, self.broken, self.asked = name, broken, 0

    async def purge(self, artefact_ids: list[str]) -> int:
        if self.broken:
            raise OSError
        self.asked += len(artefact_ids)
        return len(artefact_ids)


async def owe(memory: Memory, inspector: Connection, tenant: str, adapter: str, many: int) -> None:
    told = await memory.remember(tenant, text="Ann called", subject_keys="ann")
    await inspector.execute(
        "insert into memory.artefacts (tenant_key, adapter, artefact_id, record_id)"
        " select $1, $2, n::text, $3 from generate_series(1, $4::integer) as n",
        tenant,
        adapter,
        told.record.record_id,
        many,
    )


async def test_an_index_that_fails_does_not_keep_another_waiting(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    broken, sound = Index("a", broken=True), Index("b")
    store = PostgresStore(shared.app_url)
    async with Memory(store, indexes=[broken, sound], subject_pepper="pepper") as memory:
        await owe(memory, inspector, tenant, "a", MORE_THAN_ONE_LEASE)
        await owe(memory, inspector, tenant, "b", 1)
        with pytest.raises(PartialErasureError) as partial:
            await memory.forget(tenant, subject_key="ann")
        assert partial.value.receipt.outstanding == ("a",)
        assert sound.asked == 1


async def test_more_than_one_lease_is_settled_by_one_erasure(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    index = Index("b")
    store = PostgresStore(shared.app_url)
    async with Memory(store, indexes=[index], subject_pepper="pepper") as memory:
        await owe(memory, inspector, tenant, "b", MORE_THAN_ONE_LEASE)
        assert (await memory.forget(tenant, subject_key="ann")).complete
        assert index.asked == MORE_THAN_ONE_LEASE
