"""Every verb with values that no error may show, and what such an error is."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memory import Memory, MemoryServiceError
from memory.ids import uuid7
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from stores import leaks

PRIVATE = [f"private-{n}" for n in range(5)]
TEXT, PERSON, VALUE, KEY, MODEL = PRIVATE
NOBODY = uuid7()

Verb = Callable[[Memory, str], Awaitable[Any]]
VERBS: dict[str, Verb] = {
    "remember": lambda memory, tenant: memory.remember(
        tenant, text=TEXT, subject_keys=PERSON, metadata={"v": VALUE}, embedding=[0.25, 0.5]
    ),
    "remember by key": lambda memory, tenant: memory.remember(
        tenant, text=TEXT, subject_keys=PERSON, record_key=KEY
    ),
    "remember_many": lambda memory, tenant: memory.remember_many(
        tenant, items=[{"text": TEXT, "subject_keys": PERSON}] * 2
    ),
    "derive": lambda memory, tenant: memory.derive(
        tenant, kind="summary", text=TEXT, sources=NOBODY
    ),
    "relate": lambda memory, tenant: memory.relate(tenant, record_id=NOBODY, subject_keys=PERSON),
    "supersede": lambda memory, tenant: memory.supersede(tenant, record_id=NOBODY, text=TEXT),
    "register_artefact": lambda memory, tenant: memory.register_artefact(
        tenant, adapter="index", artefact_id=KEY, sources=NOBODY
    ),
    "recall by words": lambda memory, tenant: memory.recall(
        tenant, text=TEXT, subject_keys=PERSON, metadata={"v": VALUE}
    ),
    "recall by vector": lambda memory, tenant: memory.recall(tenant, embedding=[0.25, 0.5]),
    "recall by time": lambda memory, tenant: memory.recall(tenant, subject_keys=PERSON),
    "get": lambda memory, tenant: memory.get(tenant, record_id=NOBODY),
    "history": lambda memory, tenant: memory.history(tenant, record_key=KEY),
    "records": lambda memory, tenant: memory.records(tenant, subject_keys=PERSON),
    "forget": lambda memory, tenant: memory.forget(tenant, subject_key=PERSON),
    "dry run": lambda memory, tenant: memory.forget(tenant, subject_key=PERSON, dry_run=True),
    "forget_record": lambda memory, tenant: memory.forget_record(tenant, record_id=NOBODY),
    "block": lambda memory, tenant: memory.forget(tenant, subject_key=PERSON, block_future=True),
    "hold": lambda memory, tenant: memory.hold(tenant, subject_key=PERSON),
    "release": lambda memory, tenant: memory.release(tenant, subject_key=PERSON),
    "readmit": lambda memory, tenant: memory.readmit(tenant, subject_key=PERSON),
    "decisions": lambda memory, tenant: memory.decisions(tenant),
    "expire": lambda memory, tenant: memory.expire(tenant),
    "forget_tenant": lambda memory, tenant: memory.forget_tenant(tenant, confirm=tenant),
    "erasure_history": lambda memory, tenant: memory.erasure_history(tenant),
    "purge_outstanding": lambda memory, tenant: memory.purge_outstanding(tenant),
}
WRITES = {"remember", "remember by key", "remember_many", "forget", "hold"}


@contextlib.contextmanager
def raises(*expected: type[MemoryServiceError]) -> Iterator[None]:
    """One of these, without a trace of the driver, the statement or its values."""
    with pytest.raises(expected) as caught:
        yield
    assert leaks(caught.value, [*PRIVATE, "insert into", "$1"]) == []


@contextlib.asynccontextmanager
async def opened(url: str, *, settings: dict[str, str] | None = None, **pool: Any) -> Any:
    """A memory on an engine of the host's, with server settings of the test's."""
    engine = create_async_engine(
        normalize_url(url), connect_args={"server_settings": settings or {}}, **pool
    )
    try:
        yield Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    finally:
        await engine.dispose()
