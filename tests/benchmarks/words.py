"""What recall by words costs across tenants of several sizes, and what its postings cost to write.

    python tests/benchmarks/words.py [--records N] [--dialogues FILE] [--quick] [--json FILE]

One tenant holds 10,000 records, one 100,000, one the rest. Asked are eight consecutive words of a
text with the stop words left in, every second time with one that 28 % of the records hold, and
three words that 15 to 50 % hold. FILE (JSON lines with ``text``) gives real words by rank. The
server is an embedded one with 512 MB of shared buffers and no autovacuum, so that the first figures
are of postings that nothing has vacuumed; or a superuser's URL is given. Prints a table, then JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from corpus import Corpus, fill
from harness import options, show, superuser
from memory import Memory, PostgresStore, Strategy
from report import Times

# Otherwise only pytest knows this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from servers import Postgres

SETTINGS = {"shared_buffers": "512MB", "autovacuum": "off", "max_wal_size": "8GB"}
STRATEGIES: tuple[Strategy, ...] = ("lexical", "keyword")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything; the times of a quick run mean nothing."""

    small: int = 10_000
    middle: int = 100_000
    questions: int = 60
    writes: int = 300
    bulk: int = 5_000
    bulk_rounds: int = 3


QUICK = Plan(small=60, middle=90, questions=3, writes=4, bulk=40, bulk_rounds=1)


async def asked(
    memory: Memory, tenant: str, strategy: Strategy, questions: Sequence[str]
) -> dict[str, float]:
    """Return the median and the ninetieth percentile of the questions' times, in milliseconds."""
    for question in questions[:8]:
        await memory.recall(tenant, text=question, strategy=strategy)
    took = []
    for question in questions:
        start = time.perf_counter()
        found = await memory.recall(tenant, text=question, strategy=strategy)
        took.append((time.perf_counter() - start) * 1e3)
        assert found.exact
    took.sort()
    return {"median_ms": statistics.median(took), "p90_ms": took[int(len(took) * 0.9)]}


async def searched(
    memory: Memory, corpus: Corpus, tenants: Sequence[str], plan: Plan
) -> dict[str, Any]:
    """Ask every tenant every kind of question by every strategy."""
    kinds = {"natural": corpus.natural(plan.questions), "common": corpus.common(plan.questions)}
    return {
        f"{tenant} {kind} {strategy}": await asked(memory, tenant, strategy, questions)
        for tenant in tenants
        for kind, questions in kinds.items()
        for strategy in STRATEGIES
    }


async def written(url: str, corpus: Corpus, plan: Plan) -> dict[str, float]:
    """Return what the postings add to a write: ratios to the same writes without them."""
    times = Times()
    async with contextlib.AsyncExitStack() as stack:
        both = {}
        for name, postings in (("with", True), ("without", False)):
            store = PostgresStore(url)
            both[name] = await stack.enter_async_context(
                Memory(store, redactor=None, subject_pepper="bench", postings=postings)
            )
        for number in range(plan.writes):
            item = next(corpus.items(1))
            for name, memory in sorted(both.items(), reverse=bool(number % 2)):
                call = memory.remember(f"one {name}", text=item.text, subject_keys="p")
                await times.take(f"one {name}", call)
        for number in range(plan.bulk_rounds):
            items = list(corpus.items(plan.bulk))
            for name, memory in sorted(both.items(), reverse=bool(number % 2)):
                await times.take(f"bulk {name}", memory.remember_many(f"bulk {name}", items=items))
    return {
        "one_us": times.median("one with") * 1e6,
        "one_ratio": times.ratio("one with", "one without"),
        "bulk_us_a_record": times.median("bulk with") / plan.bulk * 1e6,
        "bulk_ratio": times.ratio("bulk with", "bulk without"),
    }


async def visible(superuser_url: str) -> dict[str, float]:
    """Return how large the postings are, and the share of their pages that a scan may trust."""
    connection = await asyncpg.connect(superuser_url)
    try:
        row = await connection.fetchrow(
            """
            select
                pg_total_relation_size('memory.postings')::float8
                    / greatest((select sum(records) from memory.tenant_counts), 1) as bytes,
                c.relallvisible::float8 / greatest(pg_relation_size(c.oid) / 8192, 1) as share
            from pg_class as c where c.oid = 'memory.postings'::regclass
            """
        )
    finally:
        await connection.close()
    assert row is not None
    return {"postings_bytes_a_record": row["bytes"], "all_visible": row["share"]}


async def vacuumed(superuser_url: str) -> float:
    connection = await asyncpg.connect(superuser_url)
    start = time.perf_counter()
    await connection.execute("vacuum (analyze)", timeout=3600)
    await connection.execute("checkpoint", timeout=3600)
    await connection.close()
    return time.perf_counter() - start


async def measured(url: str, superuser_url: str, plan: Plan, arguments: Any) -> dict[str, Any]:
    corpus = Corpus(dialogues=arguments.dialogues)
    sizes = {"small": plan.small, "middle": plan.middle}
    sizes["large"] = max(arguments.records - sum(sizes.values()), 0)
    load = os.getloadavg()
    async with Memory(PostgresStore(url), redactor=None, subject_pepper="bench") as memory:
        start = time.perf_counter()
        for tenant, count in sizes.items():
            await fill(memory, tenant, corpus, count)
        filled = time.perf_counter() - start
        found: dict[str, Any] = {"sizes": sizes, "filled_seconds": filled}
        tenants = [tenant for tenant, count in sizes.items() if count]
        found["before_vacuum"] = await visible(superuser_url) | await searched(
            memory, corpus, tenants, plan
        )
        found["vacuum_seconds"] = await vacuumed(superuser_url)
        found["after_vacuum"] = await visible(superuser_url) | await searched(
            memory, corpus, tenants, plan
        )
        found["writing"] = await written(url, corpus, plan)
        found["machine"] = {
            "cpus": os.cpu_count(),
            "load_before": load,
            "load_after": os.getloadavg(),
            "server": (await memory.capabilities()).server_version,
        }
    return found


def table(found: dict[str, Any]) -> list[str]:
    lines = [f"{'ms a question, vacuumed (before)':<40}{'median':>18}{'p90':>18}"]
    before, after = found["before_vacuum"], found["after_vacuum"]
    for name, it in after.items():
        if isinstance(it, dict):
            first = before[name]
            lines.append(
                f"{name:<40}{it['median_ms']:>9.1f} ({first['median_ms']:>6.1f})"
                f"{it['p90_ms']:>9.1f} ({first['p90_ms']:>6.1f})"
            )
    writing = found["writing"]
    lines += [
        f"{'postings, bytes a record':<40}{after['postings_bytes_a_record']:>9,.0f} <= 4,000",
        f"{'one write with postings, ratio':<40}{writing['one_ratio']:>9.2f} <= 2.0",
        f"{'bulk write with postings, ratio':<40}{writing['bulk_ratio']:>9.2f} <= 4.0",
    ]
    return lines


async def main() -> None:
    parser = options("Measure recall by words and what it costs.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--dialogues", type=Path, help="JSON lines with text")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.records = QUICK.small + QUICK.middle
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(superuser(arguments.database, SETTINGS))
        server = stack.enter_context(contextlib.closing(Postgres(url)))
        database = stack.enter_context(server.migrated())
        plan = QUICK if arguments.quick else Plan()
        found = await measured(database.app_url, database.superuser_url, plan, arguments)
    show(found, table(found), arguments.json)


if __name__ == "__main__":
    asyncio.run(main())
