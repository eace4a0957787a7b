"""A retry that meets its own first attempt in flight is a retry still."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from memory import ConflictError, Memory
from memory.stores.postgres import PostgresStore
from servers import Database


async def test_retries_at_once_under_a_record_key_all_get_the_one_record(
    shared: Database, tenant: str
) -> None:
    async with Memory(PostgresStore(shared.app_url), subject_pepper="pepper") as memory:
        for _ in range(5):
            own_id, line = uuid4(), str(uuid4())
            told = await asyncio.gather(
                *(
                    memory.remember(
                        tenant,
                        text="Ann called",
                        subject_keys="ann",
                        record_id=own_id,
                        record_key=line,
                    )
                    for _ in range(30)
                )
            )
            assert {item.record.record_id for item in told} == {own_id}
            assert len(await memory.history(tenant, record_key=line)) == 1


async def test_other_versions_at_once_are_a_conflict_still(shared: Database, tenant: str) -> None:
    async with Memory(PostgresStore(shared.app_url), subject_pepper="pepper") as memory:
        told = await asyncio.gather(
            *(
                memory.remember(
                    tenant,
                    text=f"Ann called {n}",
                    subject_keys="ann",
                    record_id=uuid4(),
                    record_key="line",
                )
                for n in range(30)
            ),
            return_exceptions=True,
        )
        conflicts = [item for item in told if isinstance(item, ConflictError)]
        assert len(await memory.history(tenant, record_key="line")) == 30 - len(conflicts)
