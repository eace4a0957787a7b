"""Every verb beside more and more records: a database that is filled decade by decade."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import asyncpg
import psutil

import memory
from corpus import Corpus
from memory import Item, TenantMemory
from memory.maintenance import indexes, scrub
from servers import Database

__all__ = ["Plan", "Study", "exponent"]

DIMENSIONS: Final = 384
EACH: Final = 50
"""Records of one person."""
EXACT_UP_TO: Final = 100_000
INDEX_FROM: Final = 100_000
_BATCH: Final = 2_000
Call = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """At how many records to stop, and how many calls of each verb to make there."""

    sizes: Sequence[int]
    calls: int = 40
    people: Sequence[int] = (10, 100, 1_000, 10_000)
    build_memory: str = "4GB"
    index_from: int = INDEX_FROM
    exact_up_to: int = EXACT_UP_TO


@dataclass(kw_only=True)
class Measured:
    """Seconds by call, and the processor's time of this process and of the server by call."""

    seconds: list[float] = field(default_factory=list)
    client: float = 0.0
    server: float = 0.0
    per: int = 1
    """What a figure is divided by: the rows of one call, where a row is the unit."""

    def figures(self) -> dict[str, float]:
        calls = len(self.seconds) * self.per
        return {
            "us": statistics.median(self.seconds) / self.per * 1e6,
            "client_cpu_us": self.client / calls * 1e6,
            "server_cpu_us": self.server / calls * 1e6,
            "calls": len(self.seconds),
        }


@dataclass(kw_only=True)
class Study:
    """One tenant that grows, and what its verbs cost on the way."""

    plan: Plan
    service: TenantMemory
    database: Database
    verbs: dict[str, dict[int, dict[str, float]]] = field(default_factory=dict)
    sizes: dict[int, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._corpus = Corpus(dimensions=DIMENSIONS)
        self._written = 0
        self._next = 0

    async def run(self) -> None:
        for size in self.plan.sizes:
            await self._fill(size)
            await self._verbs_at(size)
            await self._whole(size)
        for rows in self.plan.people:
            await self._person(rows)

    def item(self, person: str, **more: Any) -> Item:
        return Item(
            text=self._corpus.text(),
            subject_keys=person,
            embedding=self._corpus.vector(),
            **more,
        )

    async def _fill(self, size: int) -> None:
        """Write up to this many; one person in a hundred expires, which leaves tombstones."""
        written = Measured(per=_BATCH)
        start, before = self._written, await self._wal()
        while self._written < size:
            count = min(_BATCH, size - self._written)
            people = [f"p:{(self._written + n) // EACH}" for n in range(count)]
            items = [self.item(person) for person in people]
            await self._take(written, [partial(self.service.remember_many, items=items)])
            self._written += count
        wal = (await self._wal() - before) / (self._written - start)
        written.per = max((self._written - start) // len(written.seconds), 1)
        self._keep("remember_many, a record", size, written)
        gone = datetime.now(UTC) - timedelta(days=1)
        passing = [
            self.item(f"gone:{size}:{n}", expires_at=gone, occurred_at=gone)
            for n in range(max(size // 100, 1))
        ]
        for at in range(0, len(passing), _BATCH):
            await self.service.remember_many(items=passing[at : at + _BATCH])
        expired = Measured(per=len(passing))
        await self._take(expired, [self.service.expire])
        self._keep("expire, a record", size, expired)
        await self._sql("vacuum (analyze)")
        await self._sql("checkpoint")
        self.sizes[size] = {"bytes": await self._bytes(), "wal": wal}

    async def _verbs_at(self, size: int) -> None:
        service, calls = self.service, self.plan.calls
        one = [self.item(f"p:{n}") for n in range(calls)]
        told = await service.remember_many(items=[self.item("deriver") for _ in range(EACH)])
        questions = self._corpus.natural(calls)
        people = [f"p:{(n * 7_919) % (size // EACH)}" for n in range(calls)]
        await self._verb(size, "remember", [partial(self._remember, i) for i in one])
        await self._verb(size, "derive from 4", [partial(self._derive, told)] * calls)
        await self._verb(
            size,
            "recall by person",
            [partial(self._recall, self._corpus.vector(), p) for p in people],
        )
        await self._verb(
            size,
            "recall across the tenant by words",
            [partial(service.recall, text=q) for q in questions],
        )
        await self._by_vector(size)
        await self._verb(
            size,
            "export a person of 50",
            [partial(self._export, p) for p in people],
        )
        await self._verb(
            size, "erasure_history", [partial(service.erasure_history, limit=100)] * calls
        )
        await self._forget(size)

    async def _by_vector(self, size: int) -> None:
        vectors = [self._corpus.vector() for _ in range(self.plan.calls)]
        calls: list[Call] = [partial(self._recall, v, None) for v in vectors]
        name = "recall across the tenant by vector"
        if size <= self.plan.exact_up_to:
            await self._verb(size, f"{name}, exact", calls)
        if size >= self.plan.index_from:
            start = time.perf_counter()
            await indexes.build_index(
                self.database.owner_url, dimensions=DIMENSIONS, memory=self.plan.build_memory
            )
            built = time.perf_counter() - start
            self.sizes[size]["index_build_us"] = built / self._written * 1e6
            await self._verb(size, f"{name}, HNSW", calls)
            # Inserts into it would make the next decade a measurement of HNSW.
            await indexes.drop_index(self.database.owner_url, dimensions=DIMENSIONS)

    async def _forget(self, size: int) -> None:
        people = [f"leaver:{size}:{n}" for n in range(max(self.plan.calls // 4, 2))]
        for person in people:
            await self.service.remember_many(items=[self.item(person) for _ in range(EACH)])
        await self._verb(size, "forget a person of 50", [partial(self._erase, p) for p in people])

    async def _whole(self, size: int) -> None:
        """Measure what looks at everything."""
        owner = self.database.owner_url
        await self._verb(size, "verify_install", [partial(memory.verify_install, owner)])
        await self._verb(size, "check", [partial(memory.check, owner)])
        await self._verb(size, "scrub", [partial(scrub, self.database.superuser_url)])

    async def _person(self, rows: int) -> None:
        """Erase people of more and more records."""
        measured = Measured(per=rows)
        for number in range(3):
            person = f"large:{rows}:{number}"
            left = rows
            while left > 0:
                items = [self.item(person) for _ in range(min(left, _BATCH))]
                await self.service.remember_many(items=items)
                left -= len(items)
            await self._take(measured, [partial(self._erase, person)])
        self._keep("forget, a record of a growing person", rows, measured)

    async def _remember(self, item: Item) -> None:
        await self.service.remember(
            text=item.text, subject_keys=item.subject_keys, embedding=item.embedding
        )

    async def _derive(self, told: Sequence[Any]) -> None:
        sources = [one.record for one in told[:4]]
        await self.service.derive(
            kind="summary",
            text=self._corpus.text(),
            sources=sources,
            embedding=self._corpus.vector(),
        )

    async def _recall(self, vector: Any, person: str | None) -> None:
        found = await self.service.recall(embedding=vector, subject_keys=person)
        assert found.hits

    async def _export(self, person: str) -> None:
        async for _ in self.service.export(subject_key=person):
            pass

    async def _erase(self, person: str) -> None:
        assert (await self.service.forget(subject_key=person)).complete

    async def _verb(self, size: int, name: str, calls: Iterable[Call]) -> None:
        measured = Measured()
        await self._take(measured, list(calls))
        self._keep(name, size, measured)

    def _keep(self, name: str, size: int, measured: Measured) -> None:
        self.verbs.setdefault(name, {})[size] = measured.figures()

    async def _take(self, measured: Measured, calls: Sequence[Call]) -> None:
        async with self._watched(measured):
            for call in calls:
                start = time.perf_counter()
                await call()
                measured.seconds.append(time.perf_counter() - start)

    @asynccontextmanager
    async def _watched(self, measured: Measured) -> AsyncIterator[None]:
        """Add the processor's time of this process and of the server."""
        connection = await asyncpg.connect(self.database.superuser_url)
        client, server = time.process_time(), await _processor(connection)
        yield
        measured.client += time.process_time() - client
        measured.server += await _processor(connection) - server
        await connection.close()

    async def _wal(self) -> float:
        return float(await self._value("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    async def _bytes(self) -> float:
        return float(
            await self._value(
                "select sum(pg_total_relation_size(c.oid)) from pg_class as c"
                " where c.relnamespace = 'memory'::regnamespace and c.relkind = 'r'"
            )
        )

    async def _value(self, query: str) -> Any:
        connection = await asyncpg.connect(self.database.superuser_url)
        value = await connection.fetchval(query)
        await connection.close()
        return value

    async def _sql(self, statement: str) -> None:
        connection = await asyncpg.connect(self.database.superuser_url)
        await connection.execute(statement)
        await connection.close()


async def _processor(connection: asyncpg.Connection[Any]) -> float:
    """Return the seconds that the server's processes have been on a processor; 0 from afar."""
    try:
        postmaster = psutil.Process(await connection.fetchval("select pg_backend_pid()")).parent()
        assert postmaster is not None
        ended = postmaster.cpu_times()
        children = postmaster.children()
    except (psutil.Error, AssertionError):
        return 0.0
    return ended.children_user + ended.children_system + sum(map(_spent, children))


def _spent(process: psutil.Process) -> float:
    """Return a live process's seconds, from where Linux keeps nanoseconds."""
    schedstat = Path(f"/proc/{process.pid}/schedstat")
    try:
        return int(schedstat.read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def exponent(points: Iterable[tuple[float, float]]) -> float | None:
    """Return the slope of a line through the logarithms, by least squares; None for one point."""
    logs = [(math.log(x), math.log(y)) for x, y in points if y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    return statistics.linear_regression(*zip(*logs, strict=True)).slope
