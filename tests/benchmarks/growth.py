"""How the cost of each verb grows with the records of a tenant: fitted exponents and a plot.

    python tests/benchmarks/growth.py [--up-to 1000000] [--quick] [--database SUPERUSER_URL]
        [--json FILE] [--plot FILE.svg]

A tenant is filled to a thousand records, ten thousand and so on: about 20 distinct words, a vector
of 384 values, 50 records a person, and a tombstone for each hundred records. At each decade every
verb is called and timed; the processor's time of this process and of the server stands beside it,
which other work on the machine hardly changes. An exponent is the slope of log time over log
records: 0 where size does not matter, 1 where it is proportional; over all sizes, and between the
last two. Then people of up to a tenth of all records are erased: a record costs the same however
many there are.

The HNSW index is built from a hundred thousand on, for its measurement, and dropped again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from charts import curves
from harness import options, show, superuser
from memory import Memory, PostgresStore

# Otherwise only pytest knows this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from growing import Plan, Study, exponent
from servers import Postgres

SETTINGS: Final = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
QUICK: Final = Plan(
    sizes=(100, 500),
    calls=2,
    people=(10, 50),
    build_memory="64MB",
    index_from=500,
    exact_up_to=100,
)


async def run(superuser_url: str, plan: Plan) -> dict[str, Any]:
    before = os.getloadavg()
    with contextlib.closing(Postgres(superuser_url)) as server, server.migrated() as database:
        store = PostgresStore(database.app_url)
        async with Memory(store, redactor=None, subject_pepper="bench") as service:
            study = Study(plan=plan, service=service.for_tenant("acme"), database=database)
            await study.run()
    return {
        "exponents": {
            name: {
                "time": exponent(_curve(points, "us")),
                "last": exponent(_curve(points, "us")[-2:]),
                "server_cpu": exponent(_curve(points, "server_cpu_us")),
                "server_cpu_last": exponent(_curve(points, "server_cpu_us")[-2:]),
            }
            for name, points in study.verbs.items()
        },
        "verbs": study.verbs,
        "sizes": study.sizes,
        "machine": {
            "cpus": os.cpu_count(),
            "load": before,
            "load_after": os.getloadavg(),
            "python": sys.version.split()[0],
            "server": server.version,
        },
    }


def _curve(points: Mapping[int, Mapping[str, float]], what: str) -> list[tuple[float, float]]:
    return [(size, it[what]) for size, it in points.items()]


def table(found: Mapping[str, Any]) -> Iterator[str]:
    sizes = sorted({size for points in found["verbs"].values() for size in points})
    yield (
        f"{'us, and of these the server at work':<44}"
        + "".join(f"{size:>22,}" for size in sizes)
        + f"{'exponent':>10}"
    )
    for name, points in found["verbs"].items():
        cells = "".join(f"{_cell(points.get(size)):>22}" for size in sizes)
        slope, last = (found["exponents"][name][which] for which in ("time", "last"))
        fitted = "" if slope is None else f"{slope:>10.2f}{last:>7.2f}"
        yield f"{name:<44}{cells}{fitted}"
    for size, it in found["sizes"].items():
        built = f", HNSW {it['index_build_us']:,.0f} us a record" if "index_build_us" in it else ""
        each = it["bytes"] / size
        yield f"{size:,}: {each:,.0f} bytes a record, {it['wal']:,.0f} of WAL{built}"
    machine = found["machine"]
    yield f"PostgreSQL {machine['server']}, {machine['cpus']} CPUs, load {machine['load'][0]:.2f}"


def _cell(it: Mapping[str, float] | None) -> str:
    return "" if it is None else f"{it['us']:,.0f} ({it['server_cpu_us']:,.0f})"


def chart(found: Mapping[str, Any]) -> str:
    lines = {
        f"{name} {'' if slope is None else f'{slope:.2f}'}": [
            (size, it["us"]) for size, it in found["verbs"][name].items()
        ]
        for name, slope in ((n, e["time"]) for n, e in found["exponents"].items())
    }
    return curves("Time a call, and its exponent", "records", "microseconds", lines)


async def main() -> None:
    parser = options("Measure how each verb's cost grows with the records.")
    parser.add_argument("--up-to", type=int, default=1_000_000, help="records, at least 1,000")
    parser.add_argument("--plot", type=Path, help="draw it here, as SVG")
    arguments = parser.parse_args()
    decades = (10**power for power in range(3, 10))
    sizes = tuple(size for size in decades if size <= arguments.up_to)
    people = tuple(rows for rows in Plan(sizes=sizes).people if rows * 10 <= arguments.up_to)
    plan = QUICK if arguments.quick else Plan(sizes=sizes, people=people)
    async with superuser(arguments.database, SETTINGS) as url:
        found = await run(url, plan)
    if arguments.plot:
        arguments.plot.write_text(chart(found))
    show(found, table(found), arguments.json)


if __name__ == "__main__":
    asyncio.run(main())
