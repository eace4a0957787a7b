"""What observing a call costs: ``python tests/benchmarks/telemetry.py``.

One verb of the store in this process that finds nothing, so that there is little beside it: as it
is written, observed without OpenTelemetry, with its API alone, and with an SDK that samples all.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from time import process_time
from uuid import UUID

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from memory import Memory, telemetry
from memory.service.reading import Reading

CALLS, ROUNDS = 5_000, 7
NOBODY = UUID(int=0)


async def microseconds(call: Callable[[], Awaitable[object]]) -> float:
    """The processor's time per call: the least of several rounds."""
    found = []
    for _ in range(ROUNDS):
        start = process_time()
        for _ in range(CALLS):
            await call()
        found.append((process_time() - start) / CALLS * 1e6)
    return min(found)


def with_sdk() -> telemetry.Instruments:
    meters = MeterProvider(metric_readers=[InMemoryMetricReader()])
    return telemetry.Instruments(TracerProvider().get_tracer("x"), meters.get_meter("x"))


async def main() -> None:
    memory = Memory()
    bare = await microseconds(lambda: Reading.get(memory, "acme", record_id=NOBODY))
    forms = {
        "without OpenTelemetry": None,
        "API alone": telemetry.Instruments(trace.get_tracer("x"), metrics.get_meter("x")),
        "SDK, nothing exported": with_sdk(),
    }
    sys.stdout.write(f"the verb itself: {bare:.1f} us\n")
    for name, instruments in forms.items():
        telemetry._instruments = instruments
        taken = await microseconds(lambda: memory.get("acme", record_id=NOBODY))
        sys.stdout.write(f"{name}: {taken - bare:+.1f} us\n")


if __name__ == "__main__":
    asyncio.run(main())
