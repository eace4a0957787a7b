# ruff: noqa: T201 - a report is printed
"""Peak memory of one ``remember_many``, in a process of its own: prints it as JSON.

python tests/benchmarks/peak.py URL COUNT rss|tracemalloc
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from loads import Load, people
from memory import Memory, PostgresStore


@contextmanager
def resident(most: list[int]) -> Iterator[None]:
    """Sample the resident memory every 5 ms; append by how much it rose above the start.

    Not ``ru_maxrss``: on Linux a new process inherits its parent's.
    """
    process, stop = psutil.Process(), threading.Event()
    start = process.memory_info().rss
    peak = [start]

    def sample() -> None:
        while not stop.wait(0.005):
            peak[0] = max(peak[0], process.memory_info().rss)

    thread = threading.Thread(target=sample)
    thread.start()
    yield
    stop.set()
    thread.join()
    most.append(peak[0] - start)


async def main(url: str, count: int, how: str) -> int:
    """Return by how much the peak rises above holding the items."""
    load = Load()
    most: list[int] = []
    async with Memory(PostgresStore(url), subject_pepper="bench") as memory:
        await memory.remember_many("warm", items=load.items(10, people("warm", 1)))
        items = load.items(count, people(how, 1_000))
        if how == "rss":
            with resident(most):
                await memory.remember_many("peak", items=items)
            return most[0]
        tracemalloc.start()
        await memory.remember_many("peak", items=items)
        return tracemalloc.get_traced_memory()[1]


if __name__ == "__main__":
    print(json.dumps({sys.argv[3]: asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))}))
