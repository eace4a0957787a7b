"""One contract for every store: each test here runs once per entry of ``STORES``.

An entry is a generator that takes pytest's request and yields a function that opens the store, as
the application's role or the one named; whatever the function opens sees the same data, as two
processes on one database do.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from memory import ErasureEvent, HashingEmbedder, InMemoryStore, Memory, Record, TenantMemory
from memory.ports import Store
from memory.stores.postgres import PostgresStore
from servers import Database, Postgres

OpenStore = Callable[..., Store]
MemoryFactory = Callable[..., Memory]


def _in_memory(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    store = InMemoryStore()
    yield lambda role="app": store


def _postgres(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    database: Database = request.getfixturevalue("database")
    yield lambda role="app": PostgresStore(database.url(role))


def _without_pgvector(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    server: Postgres = request.getfixturevalue("postgres15")
    with server.migrated() as database:
        yield lambda role="app": PostgresStore(database.url(role))


def _through_pgbouncer(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    database: Database = request.getfixturevalue("database")
    through: Callable[[str], str] = request.getfixturevalue("pgbouncer")
    yield lambda role="app": PostgresStore(through(database.url(role)), pooler=True)


def _postgres_16(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    server: Postgres = request.getfixturevalue("postgres16")
    with server.migrated() as database:
        yield lambda role="app": PostgresStore(database.url(role))


STORES: dict[str, Callable[[pytest.FixtureRequest], Iterator[OpenStore]]] = {
    "in_memory": _in_memory,
    "postgres": _postgres,
    "postgres_16": _postgres_16,
    "without_pgvector": _without_pgvector,
    "through_pgbouncer": _through_pgbouncer,
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep every fifth case on PostgreSQL 16, always the same ones; MEMORY_TEST_POSTGRES=16 has
    the whole suite run there.
    """
    left_out = [item for item in items if _on_16(item) and zlib.crc32(item.nodeid.encode()) % 5]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _on_16(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("open_store") == "postgres_16"


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    yield from STORES[request.param](request)


@pytest.fixture
async def memory_factory(open_store: OpenStore) -> AsyncIterator[MemoryFactory]:
    """Makes a ``Memory`` with any options; all of one test share their data."""
    opened = []

    def make(role: str = "app", **options: Any) -> Memory:
        memory = Memory(open_store(role), **{"subject_pepper": "pepper", **options})
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        await memory.close()


@pytest.fixture
def memory(memory_factory: MemoryFactory) -> Memory:
    return memory_factory()


@pytest.fixture
def acme(memory: Memory) -> TenantMemory:
    return memory.for_tenant("acme")


@pytest.fixture
def operator(memory_factory: MemoryFactory) -> TenantMemory:
    """The tenant's verbs as somebody who may release and readmit."""
    return memory_factory("operator").for_tenant("acme")


@pytest.fixture
async def bystander(memory: Memory) -> AsyncIterator[Record]:
    """Another person's records, and another tenant's of the same names: equal after the test."""
    acme, other = memory.for_tenant("acme"), memory.for_tenant("acme-corp")
    kept = []
    for tenant, person in ((acme, "customer:zoe"), (other, "customer:ann")):
        told = await tenant.remember(
            text="Zoe moved the delivery to Friday",
            subject_keys=person,
            metadata={"order": {"id": 7}},
            embedding=[1.0, 2.0],
        )
        made = await tenant.derive(kind="summary", text="Friday delivery", sources=told.record)
        kept += [(tenant, told.record), (tenant, made.record)]
    yield kept[0][1]
    for tenant, record in kept:
        assert await tenant.get(record_id=record.record_id) == record
        found = await tenant.recall(text="Friday", subject_keys=record.subject_keys)
        assert record in [hit.record for hit in found.hits]


class RecordingEmbedder(HashingEmbedder):
    """Keeps what it was shown, one list per call."""

    def __init__(self, dimensions: int = 16) -> None:
        super().__init__(dimensions)
        self.calls: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        return await super().embed(texts)


class AnsweringEmbedder:
    """Answers with whatever it was given, right or wrong."""

    def __init__(self, answer: Any, model: str | None = "answering") -> None:
        self.answer = answer
        self.model = model

    async def embed(self, texts: Sequence[str]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Index:
    """An external index in this process; ``broken`` makes it raise."""

    def __init__(self, name: str, *, broken: bool = False) -> None:
        self.name = name
        self.broken = broken
        self.asked: list[list[str]] = []

    @property
    def ids(self) -> list[str]:
        """Every id it was asked to purge, sorted."""
        return sorted(item for batch in self.asked for item in batch)

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        self.asked.append(list(artefact_ids))
        if self.broken:
            raise ConnectionError("secret-artefact")
        return len(artefact_ids)


class StubbornIndex(Index):
    """Says that it purged, and still has everything."""

    async def present(self, artefact_ids: Sequence[str]) -> Sequence[str]:
        return artefact_ids if self.broken else []

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        self.asked.append(list(artefact_ids))
        return len(artefact_ids)


class Sink:
    """Keeps the events; ``broken`` makes it raise."""

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.events: list[ErasureEvent] = []

    async def publish(self, event: ErasureEvent) -> None:
        self.events.append(event)
        if self.broken:
            raise RuntimeError("secret-sink")


@pytest.fixture
def plugs() -> SimpleNamespace:
    """What a host would plug in."""
    return SimpleNamespace(
        RecordingEmbedder=RecordingEmbedder,
        AnsweringEmbedder=AnsweringEmbedder,
        Index=Index,
        StubbornIndex=StubbornIndex,
        Sink=Sink,
    )


@pytest.fixture
def logs(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Everything that is logged, from DEBUG up."""
    caplog.set_level(logging.DEBUG)
    return caplog
