"""Recall by meaning: by person, across tenants of any share, after churn; and what an index costs.

    python tests/benchmarks/meaning.py [--database SUPERUSER_URL] [--quick] [--json FILE]
        [--records N] [--vectors N] [--dimensions N]

Recall@10 is against comparing every vector. Beside it stands raw asyncpg, as the same role, with
the same settings, fetch depth and way (index or all) as recall chose; ours and raw take turns, and
a ratio is the median of the turns' ratios. The server is an embedded one unless a superuser's URL
is given; databases and roles are made there and dropped again. Prints a table, then JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import create_async_engine

from crowds import QUICK, SHARES, Place, Plan
from harness import options, show, superuser
from memory import Memory, PostgresStore
from memory.maintenance.indexes import build_index, list_indexes, maintain
from memory.urls import normalize_url
from report import Times

# Otherwise only pytest knows this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
import clusters
from plans import explained
from servers import Postgres
from stores import record_statements


async def by_person(places: dict[str, Place], plan: Plan) -> dict[str, Any]:
    """Measure recall within 40 records of one person beside few and many of others."""
    times, found = Times(), {}
    chance = random.Random(4)  # noqa: S311 - the same in every run
    vectors = [[chance.gauss(0, 1) for _ in range(plan.dimensions)] for _ in range(40)]
    for place in places.values():
        items = [
            {"text": "of the reader", "subject_keys": "reader", "embedding": v} for v in vectors
        ]
        await place.memory.remember_many("t90", items=items)
    for number in range(plan.calls):
        for name, place in places.items():
            call = place.memory.recall("t90", embedding=vectors[number % 40], subject_keys="reader")
            await times.take(name, call)
    for name, place in places.items():
        found[f"{name}_ms"] = times.median(name) * 1e3
        found[f"{name}_buffers"] = await buffers(place, vectors[0])
    return found | {
        "growth_ms": times.ratio("many", "few"),
        "growth_buffers": found["many_buffers"] / found["few_buffers"],
        "at_most": 1.5,
    }


async def buffers(place: Place, vector: list[float]) -> int:
    """Count the pages that a recall by person reads, as the application's role."""
    engine = create_async_engine(normalize_url(place.database.app_url))
    sent = record_statements(engine)
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="bench")
    await memory.recall("t90", embedding=vector, subject_keys="reader")
    await engine.dispose()
    statement, values = next(item for item in sent if "memory.each" in item[0])
    plan = await explained(place.app, statement, values, "force_generic_plan")
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


async def churn(place: Place, plan: Plan) -> dict[str, Any]:
    """Replace a tenth of a table of its own ten times over, then maintain it."""
    vectors = await place.questions("t90", plan.questions)
    found: dict[str, Any] = {"before": await sized(place, vectors)}
    share = plan.churned // 10
    for number in range(plan.rounds):
        await place.superuser.execute("set session_replication_role = replica")
        await place.superuser.execute(
            "delete from memory.records where ctid in (select ctid from memory.records"
            f" order by md5(record_id::text || {number}) limit {share})"
        )
        await clusters.fill(
            place.superuser,
            SHARES,
            share,
            centres=plan.centres,
            model=None,
            first=plan.churned * (number + 2),
        )
    found["after"] = await sized(place, vectors)
    done = await maintain(place.database.owner_url, memory="1GB")
    found["reindex_s"], found["vacuum_s"] = done.reindex_seconds, done.vacuum_seconds
    found["maintained"] = await sized(place, vectors)
    return found


async def sized(place: Place, vectors: list[array[float]]) -> dict[str, Any]:
    (index,) = await list_indexes(place.database.owner_url)
    figures = await place.recalled("t90", vectors)
    return {"index_mb": index.bytes / 1e6, **figures}


async def inserts(place: Place, plan: Plan) -> dict[str, Any]:
    """Write vectors of the index's length and of one value more, which no index holds, in turn."""
    times, chance = Times(), random.Random(5)  # noqa: S311 - the same in every run
    for number in range(plan.inserts + 1):
        for name, size in (("indexed", plan.dimensions), ("plain", plan.dimensions + 1)):
            vector = [chance.gauss(0, 1) for _ in range(size)]
            call = place.memory.remember("t90", text="one", subject_keys="w", embedding=vector)
            await times.take(name, call)
        if not number:
            times.by_name.clear()
    return {
        "indexed_ms": times.median("indexed") * 1e3,
        "plain_ms": times.median("plain") * 1e3,
        "ratio": times.ratio("indexed", "plain"),
    }


async def measured(places: dict[str, Place], plan: Plan) -> dict[str, Any]:
    load = os.getloadavg()
    many = places["many"]
    await places["few"].fill(plan.few, plan.few)
    await many.fill(plan.records, plan.vectors)
    sized_places = {name: places[name] for name in ("few", "many")}
    found: dict[str, Any] = {"by_person": await by_person(sized_places, plan)}
    start = time.perf_counter()
    url = many.database.owner_url
    index = await build_index(url, dimensions=plan.dimensions, memory="1GB")
    found["build"] = {"seconds": time.perf_counter() - start, "mb": index.bytes / 1e6}
    many.memory = Memory(
        PostgresStore(many.database.app_url), redactor=None, subject_pepper="bench"
    )
    found["across"] = {
        tenant: await many.recalled(tenant, await many.questions(tenant, plan.questions))
        for tenant in SHARES
    }
    found["insert"] = await inserts(many, plan)
    churned = places["churned"]
    await churned.fill(plan.churned, plan.churned)
    await build_index(churned.database.owner_url, dimensions=plan.dimensions, memory="1GB")
    found["churn"] = await churn(churned, plan)
    return found | {
        "plan": vars(plan),
        "machine": {
            "cpus": os.cpu_count(),
            "load_before": load,
            "load_after": os.getloadavg(),
            "python": sys.version.split()[0],
            "server": (await many.memory.capabilities()).server_version,
        },
    }


def table(found: dict[str, Any]) -> Iterator[str]:
    it = found["by_person"]
    yield (
        f"by person: {it['few_ms']:.2f} ms, {it['few_buffers']} buffers beside"
        f" {found['plan']['few']:,}; {it['many_ms']:.2f} ms, {it['many_buffers']} beside"
        f" {found['plan']['records']:,}: {it['growth_ms']:.2f} and {it['growth_buffers']:.2f} times"
        f" (<= {it['at_most']})"
    )
    yield "index of {:.0f} MB built in {:.0f} s".format(
        found["build"]["mb"], found["build"]["seconds"]
    )
    yield f"{'across':<12}{'recall@10':>10}{'index':>8}{'ours ms':>10}{'raw ms':>10}{'ratio':>8}"
    churned = {f"churn {k}": v for k, v in found["churn"].items() if isinstance(v, dict)}
    for name, row in {**found["across"], **churned}.items():
        size = f"{row['index_mb']:>8.0f} MB" if "index_mb" in row else ""
        yield (
            f"{name:<18}{row['recall']:>6.3f}{row['through_index']:>7.0%}{row['ours_ms']:>10.2f}"
            f"{row['raw_ms']:>10.2f}{row['ratio']:>8.2f}{size}"
        )
    it = found["churn"]
    yield f"maintenance: reindex {it['reindex_s']:.1f} s, then vacuum {it['vacuum_s']:.1f} s"
    it = found["insert"]
    yield (
        f"remember: {it['indexed_ms']:.2f} ms with one HNSW index, {it['plain_ms']:.2f} without:"
        f" {it['ratio']:.2f} times"
    )


async def run(superuser_url: str, plan: Plan) -> dict[str, Any]:
    async with contextlib.AsyncExitStack() as stack:
        server = stack.enter_context(contextlib.closing(Postgres(superuser_url)))
        places = {}
        for name in ("few", "many", "churned"):
            place = Place(stack.enter_context(server.migrated()), plan)
            places[name] = await stack.enter_async_context(place)
        return await measured(places, plan)


async def main() -> None:
    parser = options("Measure recall by meaning.")
    for name in ("records", "vectors", "dimensions", "churned", "rounds"):
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args()
    given = {k: v for k, v in vars(arguments).items() if k in vars(QUICK) and v is not None}
    plan = Plan(**{**vars(QUICK if arguments.quick else Plan()), **given})
    async with superuser(arguments.database) as url:
        found = await run(url, plan)
    show(found, table(found), arguments.json)


if __name__ == "__main__":
    asyncio.run(main())
