"""What the host has set for its transaction survives every verb and every refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from joining import Joined, order
from memory import (
    ConflictError,
    InstallError,
    LegalHoldError,
    Memory,
    MemoryServiceError,
    UnknownRecordError,
    UnknownSourceError,
)
from memory.ids import uuid7
from rawsql import Connection
from stores import broken_rules, leaks, rows_of

STATE = (
    "select coalesce(current_setting('app.current_tenant', true), ''),"
    " coalesce(current_setting('memory.erasure', true), '')"
)


async def every_verb(memory: Memory, tenant: str) -> AsyncIterator[str]:
    """Call each verb, then each once more so that it is refused; yield its name after it."""
    told = (
        await memory.remember(tenant, text="tea", subject_keys="ann", record_key="drink")
    ).record
    yield "remember"
    await memory.remember_many(tenant, items=[{"text": "milk", "subject_keys": "ann"}])
    yield "remember_many"
    made = (await memory.derive(tenant, kind="summary", text="drinks", sources=told)).record
    yield "derive"
    await memory.register_artefact(tenant, adapter="index", artefact_id="one", sources=made)
    yield "register_artefact"
    await memory.relate(tenant, record_id=told, subject_keys="bob")
    yield "relate"
    newer = (await memory.supersede(tenant, record_id=told, text="coffee")).record
    yield "supersede"
    assert (await memory.recall(tenant, text="coffee", subject_keys="ann")).hits
    yield "recall"
    assert (await memory.recall(tenant, embedding=[1.0, 2.0])).hits == ()
    yield "recall by vector"
    assert await memory.get(tenant, record_id=newer)
    assert len(await memory.history(tenant, record_key="drink")) == 2
    assert len(await memory.records(tenant)) == 3
    await memory.erasure_history(tenant)
    assert (await memory.ready()).ready
    await memory.capabilities()
    yield "reads"
    nobody = uuid7()
    refusals: list[tuple[type[MemoryServiceError], Awaitable[Any]]] = [
        (ConflictError, memory.remember(tenant, text="x", subject_keys="ann", record_id=told)),
        (
            UnknownSourceError,
            memory.derive(tenant, kind="summary", text="x", sources=nobody),
        ),
        (UnknownRecordError, memory.relate(tenant, record_id=nobody, subject_keys="bob")),
        (ConflictError, memory.supersede(tenant, record_id=told, text="late")),
        (
            UnknownSourceError,
            memory.register_artefact(tenant, adapter="a", artefact_id="b", sources=nobody),
        ),
        (UnknownRecordError, memory.forget_record(tenant, record_id=nobody)),
        (ConflictError, memory.forget(tenant, subject_key="ann", expect="0" * 64)),
    ]
    for expected, call in refusals:
        with pytest.raises(expected) as caught:
            await call
        assert leaks(caught.value, []) == []
        yield f"{expected.__name__} refused"
    await memory.forget(tenant, subject_key="ann", dry_run=True)
    yield "dry run"
    await memory.purge_outstanding(tenant)
    yield "purge_outstanding"
    await memory.forget(tenant, subject_key="ann")
    yield "forget"
    await memory.hold(tenant, subject_key="zoe")
    yield "hold"
    with pytest.raises(LegalHoldError):
        await memory.forget(tenant, subject_key="zoe", block_future=True)
    yield "forget deferred"
    for lifting in (memory.release, memory.readmit):
        with pytest.raises(InstallError) as caught:
            await lifting(tenant, subject_key="zoe")
        assert leaks(caught.value, []) == []
        yield f"{lifting.__name__} refused"
    assert len(await memory.decisions(tenant)) == 3
    yield "decisions"
    await memory.expire(tenant)
    yield "expire"
    await memory.forget_tenant(tenant, confirm=tenant)
    yield "forget_tenant"


@pytest.mark.parametrize("set_by_host", ["the hosts own", ""])
async def test_the_tenant_and_the_label_of_the_host_survive_every_verb_and_every_refusal(
    engine: AsyncEngine,
    joined: Joined,
    superuser: Connection,
    tenant: str,
    set_by_host: str,
) -> None:
    async with engine.connect() as connection:
        if set_by_host:
            for setting in ("app.current_tenant", "memory.erasure"):
                await connection.execute(
                    text("select set_config(:setting, :value, true)"),
                    {"setting": setting, "value": set_by_host},
                )
        async for verb in every_verb(joined(connection), tenant):
            state = (await connection.execute(text(STATE))).one()
            assert tuple(state) == (set_by_host, set_by_host), verb
        await order(connection, tenant)
        await connection.commit()
    assert await broken_rules(superuser, tenant) == {}
    assert set(await rows_of(superuser, tenant)) == {
        "subjects",
        "tenants",
        "tenant_counts",
        "tombstones",
        "chain_heads",
        "purges",
        "decisions",
    }
