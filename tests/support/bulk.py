"""Remembers many memories in one call and prints by how many MB the process grew for it."""

from __future__ import annotations

import asyncio
import random
import resource
import sys

from memory import Memory
from memory.stores.postgres import PostgresStore


def peak() -> float:
    """The largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def main(url: str, tenant: str, count: int, dimensions: int) -> None:
    memory = Memory(PostgresStore(url), redactor=None, subject_pepper="pepper")
    await memory.remember(tenant, text="warm", subject_keys="ann", embedding=[1.0] * dimensions)
    chance = random.Random(1)  # noqa: S311 - reproducible, not secret
    vectors = [[chance.random() for _ in range(dimensions)] for _ in range(100)]
    items = [
        {
            "text": f"memory {n} " + " ".join(f"word{chance.randrange(5_000)}" for _ in range(20)),
            "subject_keys": f"p{n % 500}",
            "embedding": vectors[n % 100],
        }
        for n in range(count)
    ]
    before = peak()
    await memory.remember_many(tenant, items=items)
    sys.stdout.write(f"{peak() - before:.0f}\n")
    await memory.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
