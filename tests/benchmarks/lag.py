"""How long an erased person stays visible on a replica, on one machine.

    python tests/benchmarks/lag.py [--quick] [--json FILE]

An embedded primary and a physical replica that streams from it. People of 50 records are erased,
half of them while somebody else writes as fast as the primary takes it; from the return of
``forget`` on, the replica is asked for the tombstone, which it has when the records are gone there.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import options, show
from loads import Load
from memory import Memory, PostgresStore, TenantMemory, embedded

# Otherwise only pytest knows this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from replicas import replica

RECORDS = 50


async def lags(primary: TenantMemory, reader: TenantMemory, name: str, count: int) -> list[float]:
    """Return the seconds until the replica shows each erasure."""
    load = Load()
    found = []
    for number in range(count):
        person = f"{name}:{number}"
        await primary.remember_many(items=load.items(RECORDS, [person]))
        receipt = await primary.forget(subject_key=person)
        start = time.perf_counter()
        while not await _arrived(reader, receipt.erasure_id):  # noqa: ASYNC110 - another server's
            await asyncio.sleep(0.0005)
        found.append(time.perf_counter() - start)
        assert not (await reader.recall(subject_keys=person)).hits
    return found


async def _arrived(reader: TenantMemory, erasure_id: Any) -> bool:
    [newest] = await reader.erasure_history(limit=1) or [None]
    return newest is not None and newest.erasure_id == erasure_id


async def busy(primary: TenantMemory) -> None:
    load = Load()
    while True:
        await primary.remember_many(items=load.items(200, ["writer"]))


async def measured(primary: TenantMemory, reader: TenantMemory, count: int) -> dict[str, Any]:
    idle = await lags(primary, reader, "idle", count)
    writing = asyncio.create_task(busy(primary))
    try:
        loaded = await lags(primary, reader, "busy", count)
    finally:
        writing.cancel()
        await asyncio.wait([writing])
    return {"idle": figures(idle), "writing": figures(loaded)}


def figures(times: Sequence[float]) -> dict[str, float]:
    milliseconds = sorted(time * 1e3 for time in times)
    return {"median_ms": statistics.median(milliseconds), "most_ms": milliseconds[-1]}


async def main() -> None:
    parser = options("Measure how long an erased person stays visible on a replica.")
    arguments = parser.parse_args()
    count = 2 if arguments.quick else 100
    async with embedded.serve() as server:
        with (
            tempfile.TemporaryDirectory(prefix="lag-") as folder,
            replica(server, Path(folder)) as pair,
        ):
            stores = PostgresStore(pair.url), PostgresStore(pair.replica_url)
            primary, reader = (Memory(store, subject_pepper="bench") for store in stores)
            async with primary, reader:
                found = await measured(primary.for_tenant("acme"), reader.for_tenant("acme"), count)
    lines = [f"{name}: {json.dumps(it)}" for name, it in found.items()]
    show(found, lines, arguments.json)


if __name__ == "__main__":
    asyncio.run(main())
