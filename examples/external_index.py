"""Purge a vector store of another make, and prove it by reading its files.

The store is sqlite-vec, embedded in SQLite. Run it with the ``examples`` extra installed, with a
folder for the vector store if you want to look at its files afterwards; it starts a PostgreSQL of
its own. No key, no network.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import apsw
import sqlite_vec

from memory import HashingEmbedder, Memory, PostgresStore, Record, TenantMemory, embedded

T = TypeVar("T")

DIMENSIONS = 64
TENANT, ASHA, LI = "kettle-shop", "customer:asha", "customer:li"
TOLD = {
    ASHA: "Asha Kulkarni says that the blue kettle arrived cracked",
    LI: "Li would like her parcels after six in the evening",
}


class SqliteVecIndex:
    """An index for ``Memory(indexes=[...])``: texts and vectors in a file of sqlite-vec.

    A row that SQLite deletes stays in its file as free space, and in its write-ahead log. Three
    things make the bytes leave: ``secure_delete`` overwrites what is freed, ``purge`` empties the
    log into the file, and it raises where a reader keeps it from that, so that the debt stays.
    """

    name = "sqlite-vec"

    def __init__(self, file: Path) -> None:
        self._turn = threading.Lock()
        self._connection = apsw.Connection(str(file))
        self._connection.set_busy_timeout(500)
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._connection.enable_load_extension(False)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma secure_delete = on")
        # Small chunks, so that each vector lies on one page, where it can be looked for in whole.
        self._connection.execute(
            "create virtual table if not exists entries using vec0(artefact_id text primary key, "
            f"embedding float[{DIMENSIONS}], +body text, chunk_size=8)"
        )

    async def write(self, artefact_id: str, vector: Sequence[float], body: str) -> None:
        """Store an entry, which must have been registered before."""
        await self._in_thread(self._write, artefact_id, packed(vector), body)

    async def nearest(self, vector: Sequence[float], limit: int = 3) -> list[str]:
        """Return the texts nearest to the vector."""
        return await self._in_thread(self._nearest, packed(vector), limit)

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        """See :class:`memory.DerivedIndex`: what is not there is no error."""
        return await self._in_thread(self._purge, artefact_ids)

    async def present(self, artefact_ids: Sequence[str]) -> list[str]:
        """See :class:`memory.DerivedIndex`: which of these are there still."""
        return await self._in_thread(self._present, artefact_ids)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        def alone() -> T:
            with self._turn:
                return work(*arguments)

        return await asyncio.to_thread(alone)

    def _write(self, artefact_id: str, vector: bytes, body: str) -> None:
        with self._connection:
            self._connection.execute("delete from entries where artefact_id = ?", (artefact_id,))
            self._connection.execute(
                "insert into entries (artefact_id, embedding, body) values (?, ?, ?)",
                (artefact_id, vector, body),
            )

    def _nearest(self, vector: bytes, limit: int) -> list[str]:
        found = self._connection.execute(
            "select body from entries where embedding match ? and k = ? order by distance",
            (vector, limit),
        )
        return [str(body) for (body,) in found]

    def _purge(self, artefact_ids: Sequence[str]) -> int:
        there = self._present(artefact_ids)
        with self._connection:
            self._connection.executemany(
                "delete from entries where artefact_id = ?", [(item,) for item in there]
            )
        # Also when nothing was there: an earlier purge may have been stopped before this.
        [(busy, _, _)] = self._connection.execute("pragma wal_checkpoint(truncate)")
        if busy:
            raise apsw.BusyError
        return len(there)

    def _present(self, artefact_ids: Sequence[str]) -> list[str]:
        find = "select artefact_id from entries where artefact_id = ?"
        found = self._connection.executemany(find, [(item,) for item in artefact_ids])
        return [str(artefact_id) for (artefact_id,) in found]


def packed(vector: Sequence[float]) -> bytes:
    """Return the vector as sqlite-vec keeps it: 32-bit floats end to end."""
    return array("f", vector).tobytes()


async def index_summary(
    memory: TenantMemory, index: SqliteVecIndex, told: Record
) -> dict[str, bytes]:
    """Derive a summary and index it; return what then stands in the index's files."""
    artefact_id = str(uuid4())  # never a name: ids are registered, and kept until they are purged
    made = await memory.derive(
        kind="summary",
        text=f"Summary: {told.text}",
        sources=told,
        artefacts=[(index.name, artefact_id)],  # in the transaction that stores the summary
    )
    [vector] = await HashingEmbedder(DIMENSIONS).embed([made.record.text])
    await index.write(artefact_id, vector, made.record.text)
    # Raises if the person was erased in between; then this entry is ours to remove.
    await memory.register_artefact(adapter=index.name, artefact_id=artefact_id, sources=made.record)
    return {
        "artefact id": artefact_id.encode(),
        "text": made.record.text.encode(),
        "vector": packed(vector),
    }


def occurrences(folder: Path, needles: Mapping[str, bytes]) -> dict[str, int]:
    """Count the needles in every file of the folder, byte for byte."""
    files = [file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()]
    return {name: sum(data.count(needle) for data in files) for name, needle in needles.items()}


async def run(folder: Path) -> None:
    index = SqliteVecIndex(folder / "entries.db")
    async with (
        embedded.serve() as server,
        Memory(PostgresStore(server.url), indexes=[index], subject_pepper="a pepper") as service,
    ):
        memory = service.for_tenant(TENANT)
        needles = {}
        for person, text in TOLD.items():
            told = (await memory.remember(text=text, subject_keys=person)).record
            needles[person] = await index_summary(memory, index, told)
        before = {person: occurrences(folder, needles[person]) for person in TOLD}
        receipt = await memory.forget(subject_key=ASHA)
        print(
            f"erased {receipt.counts.records} records, {receipt.counts.artefacts} artefact of Asha"
        )
        print(f"complete {receipt.complete}, purged {', '.join(receipt.adapters)}\n")
        after = {person: occurrences(folder, needles[person]) for person in TOLD}
        [query] = await HashingEmbedder(DIMENSIONS).embed(["a cracked kettle"])
        print(f"nearest to 'a cracked kettle' now: {await index.nearest(query, 1)}\n")
    index.close()
    print(f"{'in the files of sqlite-vec':<30}{'before':>8}{'now':>6}")
    for person in TOLD:
        for what in needles[person]:
            counts = before[person][what], after[person][what]
            print(f"{person + ', ' + what:<30}{counts[0]:>8}{counts[1]:>6}")
            assert counts[0] > 0
            assert (counts[1] > 0) is (person == LI)


def main() -> None:
    if len(sys.argv) > 1:
        asyncio.run(run(Path(sys.argv[1])))
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


if __name__ == "__main__":
    main()
