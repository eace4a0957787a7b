"""What memory costs and what deletion leaves: this library, raw asyncpg, LangGraph and mem0.

    python tests/benchmarks/all.py [--quick] [--only speed|erasure] [--database SUPERUSER_URL]
        [--without NAME] [--others N] [--flat] [--json FILE] [--plot FILE.svg]

Wants the extras ``dev`` and ``benchmarks``; a library that is not installed is named and left out.

Speed: all on one server with its usual durability, each in a database of its own that holds the
same memories, with an HNSW index (with ``--flat`` nobody has one), taking turns. A figure is the
median of the rounds, a ratio the median of the rounds' ratios. Erasure: see ``erosion.py``; each on
an embedded server of its own, whose files are read. Nothing leaves the machine: a guard refuses
every other connection.

Prints tables, then JSON; what begins goes to the error output. ``--quick`` only shows that it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loopback import Guard

# Before anything else is imported, as an import may connect too.
GUARD = Guard()
# Otherwise only pytest knows this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import erosion  # noqa: E402 - behind the guard
import speed  # noqa: E402 - behind the guard
from charts import Bar, bars  # noqa: E402 - behind the guard
from contenders import absent, opened, present  # noqa: E402 - behind the guard
from harness import options, show, superuser  # noqa: E402 - behind the guard
from servers import Postgres  # noqa: E402 - behind the guard
from telling import Vectors  # noqa: E402 - behind the guard


async def measured(
    names: Sequence[str], database: str | None, plan: speed.Plan, *, hnsw: bool
) -> dict[str, Any]:
    vectors = Vectors()
    settings = {"fsync": "off"} if plan is speed.QUICK else None
    async with superuser(database, settings) as url, contextlib.AsyncExitStack() as stack:
        server = stack.enter_context(contextlib.closing(Postgres(url)))
        places = {
            name: await stack.enter_async_context(opened(server, name, vectors, hnsw=hnsw))
            for name in names
        }
        quiet = plan is speed.QUICK
        run = speed.Speed(
            plan=plan, places=places, vectors=vectors, say=str if quiet else _progress
        )
        figures = await run.run()
        GUARD.check()
        return {
            "others": plan.others,
            "hnsw": hnsw,
            "versions": {name: contender.version for name, (contender, _) in places.items()},
            "server": server.version,
            "verbs": figures,
        }


async def eroded(names: Sequence[str], amount: erosion.Amount) -> dict[str, Any]:
    # One table's DELETE promises nothing that could be compared.
    found = {name: await erosion.erode(name, amount) for name in names if name != "raw"}
    GUARD.check()
    return found


def _progress(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")


def tables(found: Mapping[str, Any]) -> Iterator[str]:
    if "speed" in found:
        has = "all with" if found["speed"]["hnsw"] else "nobody with"
        yield f"beside {found['speed']['others']:,} records of others, {has} an HNSW index"
        yield from speed.table(found["speed"]["verbs"])
        yield ", ".join(f"{name} {version}" for name, version in found["speed"]["versions"].items())
    if "erasure" in found:
        yield ""
        yield from erosion.table(found["erasure"])
    if found["absent"]:
        yield f"not installed: {', '.join(found['absent'])}"
    machine = found["machine"]
    yield f"Python {machine['python']}, {machine['cpus']} CPUs, load {machine['load'][0]:.2f}"


def chart(verbs: Mapping[str, Any]) -> str:
    groups = {
        verb: {
            name: Bar(value=it["median_us"], low=it["quartiles_us"][0], high=it["quartiles_us"][1])
            for name, it in by_name.items()
        }
        for verb, by_name in verbs.items()
    }
    return bars("One call: median and quartiles of the rounds", "microseconds", groups)


async def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("speed", "erasure"))
    parser.add_argument("--without", action="append", default=[], metavar="NAME")
    parser.add_argument("--others", type=int, help="records of other people beside the measured")
    parser.add_argument("--flat", action="store_true", help="without HNSW indexes")
    parser.add_argument("--plot", type=Path, help="draw the times here, as SVG")
    arguments = parser.parse_args()
    names = [name for name in present() if name not in arguments.without]
    plan = speed.QUICK if arguments.quick else speed.Plan()
    if arguments.others:
        plan = speed.Plan(others=arguments.others, people=max(arguments.others // 10, 1))
    before = os.getloadavg()
    found: dict[str, Any] = {"absent": absent()}
    if arguments.only != "erasure":
        found["speed"] = await measured(names, arguments.database, plan, hnsw=not arguments.flat)
    if arguments.only != "speed":
        amount = erosion.QUICK if arguments.quick else erosion.Amount()
        found["erasure"] = await eroded(names, amount)
    found["machine"] = {
        "cpus": os.cpu_count(),
        "load": before,
        "load_after": os.getloadavg(),
        "python": sys.version.split()[0],
    }
    if arguments.plot and "speed" in found:
        arguments.plot.write_text(chart(found["speed"]["verbs"]))
    show(found, tables(found), arguments.json)


if __name__ == "__main__":
    asyncio.run(main())
