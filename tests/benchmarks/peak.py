# ruff: noqa: T201 - a report is printed
"""Peak memory of one ``remember_many``, in a process of its own: prints it as JSON.

python tests/benchmarks/peak.py URL COUNT rss|tracemalloc
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tracemalloc

from loads import Load, people
from memory import Memory, PostgresStore


def high_water() -> int:
    """Return the most memory this process has held so far, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


async def main(url: str, count: int, how: str) -> int:
    """Return by how much the peak rises above holding the items."""
    load = Load()
    async with Memory(PostgresStore(url), subject_pepper="bench") as memory:
        await memory.remember_many("warm", items=load.items(10, people("warm", 1)))
        items = load.items(count, people("peak", 1_000))
        if how == "rss":
            before = high_water()
            await memory.remember_many("peak", items=items)
            return high_water() - before
        tracemalloc.start()
        await memory.remember_many("peak", items=items)
        return tracemalloc.get_traced_memory()[1]


if __name__ == "__main__":
    peak = asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
    print(json.dumps({sys.argv[3]: peak}))
