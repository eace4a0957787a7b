"""What SQLAlchemy and the driver write into a log, and hang onto an error, of what is kept."""

from __future__ import annotations

import asyncio
import logging
import traceback
from functools import partial
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memory import InvalidInputError, Memory
from memory.database import OwnAccess, fetch
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from refusing import PERSON, PRIVATE, TEXT
from servers import Database

LOGGERS = ("asyncio", "asyncpg", "memory", "sqlalchemy.engine", "sqlalchemy.pool")


async def test_no_logger_at_debug_shows_what_is_kept(
    shared: Database, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Before the engine is made, which asks how much is logged once.
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, name)
    tenant = f"{tenant}-{PRIVATE[2]}"
    async with Memory(PostgresStore(shared.app_url), subject_pepper="pepper") as memory:
        acme = memory.for_tenant(tenant)
        told = await acme.remember(
            text=TEXT, subject_keys=PERSON, record_key=PRIVATE[3], metadata={"at": PRIVATE[4]}
        )
        newer = await acme.supersede(record_id=told.record, text=f"{TEXT} again")
        await acme.derive(
            kind="summary", text=TEXT, sources=newer, artefacts=[(PRIVATE[3], PRIVATE[4])]
        )
        await acme.relate(record_id=newer.record, subject_keys=f"{PERSON} too")
        assert (await acme.recall(text=TEXT)).hits
        assert [entry async for entry in acme.export(subject_key=PERSON)]
        plan = await acme.forget(subject_key=PERSON, dry_run=True)
        assert plan.bystander_keys
        await acme.hold(subject_key=PERSON)
        await acme.timeline(subject_key=PERSON)
        await acme.expire()
    assert "sqlalchemy.pool.impl.AsyncAdaptedQueuePool" in {one.name for one in caplog.records}
    written = caplog.text + "".join(repr(record.__dict__) for record in caplog.records)
    assert [word for word in PRIVATE if word in written] == []


@pytest.mark.parametrize("way", ["single", "several"])
async def test_a_cancellation_carries_no_error_of_the_driver(shared: Database, way: str) -> None:
    """Cancelled at each turn of a call whose value the driver refuses, and quotes."""
    engine = create_async_engine(normalize_url(shared.app_url), pool_size=1, max_overflow=0)
    access = OwnAccess(engine)
    run = getattr(access, way)
    ended: list[type[BaseException]] = []

    async def work(connection: Any, value: Any) -> Any:
        return await fetch(
            connection, "select $1::integer, pg_current_xact_id_if_assigned()", value
        )

    # Until it has ended before that a few times.
    while ended.count(InvalidInputError) < 10:
        assert [tuple(row) for row in await run(partial(work, value=1))] == [(1, None)]
        call = asyncio.ensure_future(run(partial(work, value=TEXT)))
        for _ in ended:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises((asyncio.CancelledError, InvalidInputError)) as caught:
            await call
        assert TEXT not in "".join(traceback.format_exception(caught.value))
        ended.append(caught.type)
    assert asyncio.CancelledError in ended
    await access.ended()
    await engine.dispose()
