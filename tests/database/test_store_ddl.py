"""A DBA changes a table, or a newer revision does, while a process that is older goes on."""

from __future__ import annotations

import asyncpg

from memory import Memory
from memory.ids import uuid7
from memory.stores.postgres import PostgresStore
from servers import Database

EVE = uuid7()


async def test_a_column_that_was_added_or_widened_does_not_disturb_the_readers(
    database: Database,
) -> None:
    owner = await asyncpg.connect(database.owner_url)
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        acme = memory.for_tenant("acme")
        told = (await acme.remember(text="Ann called", subject_keys="ann")).record
        await acme.forget(subject_key="bob")

        async def seen() -> object:
            return (
                # In a transaction, which cannot prepare its statements anew.
                (await acme.remember(text="Eve", subject_keys="eve", record_id=EVE)).record,
                await acme.get(record_id=told),
                await acme.records(),
                await acme.recall(text="called"),
                await acme.erasure_history(),
            )

        before = await seen()
        for change in (
            "alter table memory.records add column note text default ''",
            "alter table memory.tombstones add column note text",
            "alter table memory.records alter column embedding_model type varchar(100)",
            "alter table memory.records alter column embedding_model type text",
        ):
            await owner.execute(change)
            assert await seen() == before
    await owner.close()
