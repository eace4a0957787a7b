"""Forks a process per line of its input, which works for a tenant and dies at a given point.

A line is: verb (``forget`` or ``resume``), tenant, folder of the index files, point. A point is
passed before and after each statement and each thing an index does; at the given one the process
kills itself, which is as sudden as being killed. Reports ``killed`` or ``done`` and the points.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import create_async_engine

from memory import Memory
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url


class Points:
    """Counts what is passed, and ends the process at the last."""

    def __init__(self, last: int) -> None:
        self.last, self.passed = last, 0

    def __call__(self) -> None:
        self.passed += 1
        if self.passed == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


class FileIndex:
    """An index that keeps each artefact in a file; what is unlinked stays so after a kill."""

    def __init__(self, name: str, folder: Path, point: Points) -> None:
        self.name, self._folder, self._point = name, folder / name, point

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        for artefact_id in artefact_ids:
            self._point()
            await asyncio.sleep(0)
            (self._folder / artefact_id).unlink(missing_ok=True)
        self._point()
        return len(artefact_ids)

    async def present(self, artefact_ids: Sequence[str]) -> list[str]:
        self._point()
        return [item for item in artefact_ids if (self._folder / item).exists()]


def counting(point: Points) -> type[asyncpg.Connection]:
    """A connection that passes a point before and after each statement."""

    class Counting(asyncpg.Connection):
        async def fetch(self, *arguments: Any, **options: Any) -> Any:
            point()
            rows = await super().fetch(*arguments, **options)
            point()
            return rows

        async def execute(self, *arguments: Any, **options: Any) -> Any:
            point()
            status = await super().execute(*arguments, **options)
            point()
            return status

        async def prepare(self, *arguments: Any, **options: Any) -> Any:
            point()
            prepared = await super().prepare(*arguments, **options)
            point()
            return prepared

    return Counting


async def work(url: str, verb: str, tenant: str, folder: Path, point: Points) -> None:
    engine = create_async_engine(
        normalize_url(url), connect_args={"connection_class": counting(point)}
    )
    indexes = [FileIndex(name, folder, point) for name in ("vectors", "cache")]
    memory = Memory(PostgresStore(engine), indexes=indexes, subject_pepper="pepper")
    if verb == "forget" or await memory.records(tenant, subject_keys="ann"):
        await memory.forget(tenant, subject_key="ann")
    for _ in range(200):
        # Until the server has noticed that the killed process has gone: then its lease is free.
        if not (await memory.purge_outstanding(tenant)).outstanding:
            break
        await asyncio.sleep(0.02)
    await engine.dispose()


def main() -> None:
    for line in sys.stdin:
        verb, tenant, folder, last = line.split()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            point = Points(int(last))
            asyncio.run(work(sys.argv[1], verb, tenant, Path(folder), point))
            os.write(writing, str(point.passed).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as result:
            passed = result.read()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write("killed\n" if os.WIFSIGNALED(status) else f"done {passed}\n")
        sys.stdout.flush()


main()
