# ruff: noqa: T201 - a report is printed
"""Time and peak memory of ``verify_install`` and ``check`` on many records.

    python tests/benchmarks/checking.py [--records 1000000] [--quick] [--database URL] [--json FILE]

The records have about 20 distinct words each and are about a hundredth as many people, one percent
of whom are erased; one record in a hundred has something derived from it. Each call runs in a
process of its own, whose resident memory is sampled; ``rise`` is above what it had before the call.
The server is an embedded one, or that of a superuser's URL, where databases and roles are made and
dropped again. Prints a table, then JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import asyncpg
import psutil

import memory
from corpus import BATCH, Corpus
from harness import options, show, superuser
from memory import Memory, PostgresStore
from peak import resident

# Otherwise only pytest knows this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from servers import Postgres

TENANTS: Final = ("acme", "other")
PEPPER: Final = "bench"
CALLS: Final = ("verify_install", "check", "check with the pepper")


async def call(name: str, url: str) -> dict[str, Any]:
    """Run one call here; return its seconds, its memory in bytes and what it found."""
    before = psutil.Process().memory_info().rss
    most: list[int] = []
    start = time.perf_counter()
    with resident(most):
        if name == "verify_install":
            checks = await memory.verify_install(url)
            found = {"properties": len(checks)}
        else:
            pepper = PEPPER if name.endswith("pepper") else None
            report = await memory.check(url, subject_pepper=pepper)
            found = {"rows": report.rows, "faults": sum(fault.count for fault in report.faults)}
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "rise": most[0], "peak": before + most[0], **found}


async def fill(url: str, records: int) -> None:
    """Fill two tenants, nine tenths of it into the first."""
    people = max(records // 100, 10)
    corpus = Corpus(people=people)
    store = PostgresStore(url)
    async with Memory(store, redactor=None, subject_pepper=PEPPER) as service:
        for tenant, count in zip(TENANTS, (records * 9 // 10, records // 10), strict=True):
            items = corpus.items(count)
            for start in range(0, count, BATCH):
                batch = [next(items) for _ in range(min(BATCH, count - start))]
                told = await service.remember_many(tenant, items=batch)
                for one in told[55::100]:
                    text = corpus.text()
                    await service.derive(tenant, kind="summary", text=text, sources=one)
            for number in range(0, people, 100):
                await service.forget(tenant, subject_key=f"p:{number}")


async def measured(superuser_url: str, records: int) -> dict[str, Any]:
    with contextlib.closing(Postgres(superuser_url)) as server, server.migrated() as database:
        await fill(database.app_url, records)
        connection = await asyncpg.connect(database.superuser_url)
        # Both are to run where autovacuum has been.
        await connection.execute("vacuum (analyze)")
        stored = await connection.fetchrow(
            "select (select count(*) from memory.records) as records,"
            " pg_database_size(current_database()) as database_bytes"
        )
        await connection.close()
        calls = {
            name: await asyncio.to_thread(_in_a_process, name, database.owner_url) for name in CALLS
        }
    return {**dict(stored), "calls": calls}


def _in_a_process(name: str, url: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--call", name, "--database", url],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(found: dict[str, Any]) -> list[str]:
    size = found["database_bytes"] / 1e6
    lines = [
        f"{found['records']:,} records, {size:,.0f} MB",
        f"{'':<24}{'seconds':>9}{'rows':>14}{'us a row':>10}{'peak MB':>9}{'rise MB':>9}",
    ]
    for name, it in found["calls"].items():
        rows = it.get("rows", 0)
        each = f"{it['seconds'] / rows * 1e6:>10.2f}" if rows else f"{'':>10}"
        memory_ = f"{it['peak'] / 1e6:>9.0f}{it['rise'] / 1e6:>9.1f}"
        lines.append(f"{name:<24}{it['seconds']:>9.2f}{rows:>14,}{each}{memory_}")
    machine = found["machine"]
    lines.append(f"{machine['cpus']} CPUs, load {machine['load'][0]:.2f}")
    return lines


async def main() -> None:
    parser = options("Measure verify_install and check.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--call", choices=CALLS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.call:
        print(json.dumps(await call(arguments.call, arguments.database)))
        return
    async with superuser(arguments.database) as url:
        found = await measured(url, 1_000 if arguments.quick else arguments.records)
    found["machine"] = {
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "python": sys.version.split()[0],
    }
    show(found, table(found), arguments.json)


if __name__ == "__main__":
    asyncio.run(main())
