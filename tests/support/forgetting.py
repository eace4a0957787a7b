"""Forks a process per line of its input (tenant, person) that forgets the person, and reports."""

from __future__ import annotations

import asyncio
import os
import sys

from memory import Memory
from memory.stores.postgres import PostgresStore


async def forget(url: str, tenant: str, person: str) -> None:
    memory = Memory(PostgresStore(url), redactor=None, subject_pepper="pepper")
    await memory.forget(tenant, subject_key=person)


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            asyncio.run(forget(sys.argv[1], *line.split()))
            os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write("killed\n" if os.WIFSIGNALED(status) else "done\n")
        sys.stdout.flush()


main()
