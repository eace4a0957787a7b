"""Expires what is due in a tenant, in small batches: for a test that kills it meanwhile."""

from __future__ import annotations

import asyncio
import sys

from memory import Memory
from memory.stores.postgres import PostgresStore


async def main(url: str, tenant: str) -> None:
    memory = Memory(PostgresStore(url), redactor=None, subject_pepper="pepper")
    await memory.expire(tenant, batch=1)


asyncio.run(main(sys.argv[1], sys.argv[2]))
