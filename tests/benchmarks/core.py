"""What the guarantee costs: our verbs beside raw asyncpg, on one server in one run.

    python tests/benchmarks/core.py [--database SUPERUSER_URL] [--quick] [--json FILE]

Ours and raw take turns within each round; a figure is the median of the rounds, a ratio the median
of the rounds' ratios. The server is an embedded one with its usual durability unless a superuser's
URL is given; databases and roles are made there and dropped again. Prints a table, then JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from baseline import Baseline, create
from harness import options, show, superuser
from loads import Load, people, row
from memory import Memory, PostgresStore, TenantMemory
from report import Times, large, small, table

# Otherwise only pytest knows this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from servers import Database, Postgres

TENANT = "acme"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything; the times of a quick run mean nothing."""

    few: int = 10_000
    many: int = 200_000
    rounds: int = 25
    calls: int = 20
    bulk: int = 10_000
    bulk_rounds: int = 5
    large: int = 5_000
    large_rounds: int = 3


QUICK = Plan(
    few=100, many=200, rounds=2, calls=2, bulk=200, bulk_rounds=1, large=40, large_rounds=1
)


@dataclass(kw_only=True)
class Place:
    """One database with so many records of other people, ours and raw."""

    memory: TenantMemory
    raw: Baseline
    url: str
    superuser_url: str


class Benchmark:
    """Runs each measurement; ``few`` and ``many`` are the two places."""

    def __init__(self, plan: Plan, places: dict[str, Place]) -> None:
        self.plan = plan
        self.places = places
        self.load = Load()
        self.times = Times()

    async def populate(self) -> None:
        """Put other people's records into both places, then let the server settle."""
        for name, place in self.places.items():
            left = getattr(self.plan, name)
            while left > 0:
                items = self.load.items(min(left, 10_000), people("other", 5_000))
                await place.memory.remember_many(items=items)
                await place.raw.copy(row(TENANT, item) for item in items)
                left -= len(items)
            await settle(place)

    def turns(self, number: int) -> Iterator[tuple[str, Place]]:
        """Yield the places, in the other order every second round."""
        order = list(self.places.items())
        yield from order if number % 2 else reversed(order)

    async def remember(self) -> None:
        for number in range(-1, self.plan.rounds):
            for name, place in self.turns(number):
                items = self.load.items(self.plan.calls, people("writer", 1_000))
                rows = [row(TENANT, item) for item in items]
                ours, raw, alike = Times(), Times(), Times()
                for item, plain in zip(items, rows, strict=True):
                    call = place.memory.remember(
                        text=item.text, subject_keys=item.subject_keys, embedding=item.embedding
                    )
                    await ours.take("", call)
                    await raw.take("", place.raw.insert(plain))
                    await alike.take("", place.raw.insert_alike(plain))
                self.keep(number, f"remember {name}", ours, raw)
                self.keep(number, f"remember {name}, tables alike", ours, alike)

    async def recall(self) -> None:
        subject = "reader"
        for place in self.places.values():
            items = self.load.items(40, [subject])
            await place.memory.remember_many(items=items)
            await place.raw.copy(row(TENANT, item) for item in items)
        for number in range(-1, self.plan.rounds):
            for name, place in self.turns(number):
                ours, raw = Times(), Times()
                for _ in range(self.plan.calls):
                    vector = self.load.vector()
                    call = place.memory.recall(embedding=vector, subject_keys=subject, limit=8)
                    found = await ours.take("", call)
                    rows = await raw.take("", place.raw.search(TENANT, subject, vector))
                    # Not the texts: records of one vector are ties, and raw does not break them.
                    assert [hit.score for hit in found.hits] == [r["score"] for r in rows]
                self.keep(number, f"recall {name}", ours, raw)

    async def forget(self) -> None:
        for number in range(-1, self.plan.rounds):
            for name, place in self.turns(number):
                subject = f"leaver:{number}"
                await self.tell(place, subject, count=40, terms=5)
                rows = [row(TENANT, item) for item in self.load.items(40, [subject])]
                ids = await place.raw.tell_alike(TENANT, subject, rows)
                ours, raw, alike = Times(), Times(), Times()
                receipt = await ours.take("", place.memory.forget(subject_key=subject))
                await raw.take("", place.raw.delete(TENANT, subject))
                await alike.take("", place.raw.delete_alike(TENANT, ids))
                assert (receipt.counts.memories, receipt.counts.derived) == (40, 10)
                self.keep(number, f"forget {name}", ours, raw)
                self.keep(number, f"forget {name}, tables alike", ours, alike)

    async def tell(self, place: Place, subject: str, *, count: int, terms: int) -> None:
        """Remember ``count`` records of one person and derive a quarter as many from them."""
        items = self.load.items(count, [subject], terms)
        told = await place.memory.remember_many(items=items)
        await place.raw.copy(row(TENANT, item) for item in items)
        for at in range(0, count, 4):
            await place.memory.derive(
                kind="summary",
                text=self.load.text(terms),
                sources=[one.record for one in told[at : at + 4]],
                embedding=self.load.vector(),
            )

    async def bulk(self, terms: int) -> None:
        place = self.places["few"]
        for number in range(self.plan.bulk_rounds):
            await settle(place)
            items = self.load.items(self.plan.bulk, people(f"bulk{number}", 1_000), terms)
            rows = [row(TENANT, item) for item in items]
            name = f"remember_many {terms} terms"
            await self.times.take(name, place.memory.remember_many(items=items))
            await self.times.take(f"{name}: raw", place.raw.copy(rows))

    async def large(self, terms: int) -> None:
        place = self.places["few"]
        for number in range(self.plan.large_rounds):
            subject = f"large:{terms}:{number}"
            await self.tell(place, subject, count=self.plan.large, terms=terms)
            await settle(place)
            name = f"forget {terms} terms"
            receipt = await self.times.take(name, place.memory.forget(subject_key=subject))
            assert receipt.counts.records == self.plan.large * 5 // 4
            await self.times.take(f"{name}: raw", place.raw.delete(TENANT, subject))

    def keep(self, number: int, name: str, ours: Times, raw: Times) -> None:
        """Keep the medians of a round; the first one only warms up."""
        if number >= 0:
            self.times.by_name.setdefault(name, []).append(ours.median(""))
            self.times.by_name.setdefault(f"{name}: raw", []).append(raw.median(""))


async def settle(place: Place) -> None:
    """Vacuum and checkpoint now, so that the server does not do it in the middle of a round."""
    connection = await asyncpg.connect(place.superuser_url)
    await connection.execute("vacuum (analyze)")
    await connection.execute("checkpoint")
    await connection.close()


def peak(url: str, count: int) -> dict[str, int]:
    """Return the peak memory of a bulk write, in bytes, by two ways of measuring."""
    found: dict[str, int] = {}
    for how in ("rss", "tracemalloc"):
        script = str(Path(__file__).with_name("peak.py"))
        command = [sys.executable, script, url, str(count), how]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found |= json.loads(done.stdout)
    return found


async def measured(plan: Plan, places: dict[str, Place]) -> dict[str, Any]:
    before = os.getloadavg()
    benchmark = Benchmark(plan, places)
    await benchmark.populate()
    await benchmark.remember()
    await benchmark.recall()
    await benchmark.forget()
    for terms in (5, 20):
        await benchmark.bulk(terms)
    for terms in (5, 20):
        await benchmark.large(terms)
    times = benchmark.times
    sizes = {"bulk": plan.bulk, "erased": plan.large}
    return {
        "remember": small(times, "remember", 2.5),
        "recall": small(times, "recall", 2.5),
        "forget": small(times, "forget", 9.0),
        **large(times, terms=5, least_rate=1 / 3, most_us=60.0, **sizes),
        **large(times, terms=20, least_rate=1 / 4, most_us=90.0, **sizes),
        "peak_bytes": await asyncio.to_thread(peak, places["few"].url, plan.bulk),
        "others": {"few": plan.few, "many": plan.many},
        "machine": {
            "cpus": os.cpu_count(),
            "load_before": before,
            "load_after": os.getloadavg(),
            "python": sys.version.split()[0],
            "server": (await places["few"].memory.memory.capabilities()).server_version,
        },
    }


@contextlib.asynccontextmanager
async def opened(database: Database) -> AsyncIterator[Place]:
    await create(database.superuser_url, database.role("app"))
    raw = await Baseline.connect(database.app_url)
    async with Memory(PostgresStore(database.app_url), subject_pepper="bench") as memory:
        yield Place(
            memory=memory.for_tenant(TENANT),
            raw=raw,
            url=database.app_url,
            superuser_url=database.superuser_url,
        )
    await raw.close()


async def run(superuser_url: str, plan: Plan) -> dict[str, Any]:
    async with contextlib.AsyncExitStack() as stack:
        server = stack.enter_context(contextlib.closing(Postgres(superuser_url)))
        places = {}
        for name in ("few", "many"):
            database = stack.enter_context(server.migrated())
            places[name] = await stack.enter_async_context(opened(database))
        return await measured(plan, places)


async def main() -> None:
    parser = options("Measure the verbs beside raw asyncpg.")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else Plan()
    async with superuser(arguments.database) as url:
        found = await run(url, plan)
    show(found, table(found), arguments.json)


if __name__ == "__main__":
    asyncio.run(main())
