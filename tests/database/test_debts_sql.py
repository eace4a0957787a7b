"""Whatever deletes a record, the index owes the same purge."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import asyncpg
import pytest

from memory import Memory, PartialErasureError
from memory.fingerprint import subject_hash
from memory.stores.postgres import PostgresStore
from rawsql import Connection, acting
from servers import Database

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"
ROLES = ("app", "owner", "superuser", "bypass", "operator")
VERBS = ("forget", "forget_record", "supersede, then forget", "expire")
LATER = datetime(2200, 1, 1, tzinfo=UTC)


class Clock:
    """Says what it is told."""

    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def furnish(memory: Memory, tenant: str) -> UUID:
    """A record and a derived one of Ann's and of Zoe's, an artefact of each; return Ann's."""
    told = {}
    for person in ("ann", "zoe"):
        expires_at = LATER if person == "ann" else None
        record = (
            await memory.remember(tenant, text="called", subject_keys=person, expires_at=expires_at)
        ).record
        await memory.register_artefact(
            tenant, adapter="vectors", artefact_id=f"{tenant}-{person}", sources=record
        )
        await memory.derive(
            tenant,
            kind="summary",
            text="calls",
            sources=record,
            artefacts=[("cache", f"{tenant}-{person}-s")],
        )
        told[person] = record.record_id
    return told["ann"]


async def assert_owed(inspector: Connection, tenant: str) -> None:
    """The purges of what was Ann's are owed, and Zoe's artefacts are registered still."""
    owed = await inspector.fetch(
        "select adapter, artefact_id, subject_hashes, attempts from memory.purges"
        " where tenant_key = $1 order by 1",
        tenant,
    )
    hashes = [subject_hash(tenant, "ann", b"pepper")]
    assert [tuple(row) for row in owed] == [
        ("cache", f"{tenant}-ann-s", hashes, 0),
        ("vectors", f"{tenant}-ann", hashes, 0),
    ]
    left = await inspector.fetch(
        "select artefact_id from memory.artefacts where tenant_key = $1 order by 1", tenant
    )
    assert [row["artefact_id"] for row in left] == [f"{tenant}-zoe", f"{tenant}-zoe-s"]


@pytest.mark.parametrize("role", ROLES)
async def test_a_delete_in_any_role_leaves_the_debts(
    connect, shared: Database, inspector: Connection, tenant: str, role: str
) -> None:
    async with Memory(PostgresStore(shared.app_url), subject_pepper="pepper") as memory:
        ann = await furnish(memory, tenant)
    connection = await connect(role)
    async with acting(connection, tenant):
        await connection.execute(DELETE, tenant, ann)
    await assert_owed(inspector, tenant)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_that_erases_leaves_the_debts(
    shared: Database, inspector: Connection, tenant: str, verb: str
) -> None:
    clock = Clock()
    store = PostgresStore(shared.app_url)
    async with Memory(store, subject_pepper="pepper", clock=clock) as memory:
        ann = await furnish(memory, tenant)
        if verb == "supersede, then forget":
            await memory.supersede(tenant, record_id=ann, text="moved on")
        erase = {
            "forget_record": partial(memory.forget_record, record_id=ann),
            "expire": memory.expire,
        }.get(verb, partial(memory.forget, subject_key="ann"))
        clock.now = LATER
        with pytest.raises(PartialErasureError):
            await erase(tenant)
    await assert_owed(inspector, tenant)


async def test_a_cascade_from_a_hosts_table_leaves_the_debts(
    database: Database, superuser: Connection
) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        ann = await furnish(memory, "acme")
    await superuser.execute(
        "create table public.customers (customer_id int primary key);"
        " grant select, delete on public.customers to public;"
        " insert into public.customers values (1), (2);"
        " alter table memory.records add column customer_id int default 2"
        " references public.customers on delete cascade"
    )
    await superuser.execute("update memory.records set customer_id = 1 where record_id = $1", ann)
    host = await asyncpg.connect(database.host_url)
    await host.execute("delete from public.customers where customer_id = 1")
    await host.close()
    await assert_owed(superuser, "acme")
