# ruff: noqa: T201 - a report is printed
"""What a record takes on disk and in the WAL: by table, TOAST and index.

    python tests/benchmarks/sizes.py [--records 20000] [--json FILE]

Each load goes into a server of its own: records of about 20 distinct words about one person each,
without words, with them, and with a vector of 384 values beside them; then an HNSW index on those,
the erasure of everybody, and summaries of a hundred records each for the size of an edge. Bytes
after VACUUM, divided by the number of records. Nothing here depends on how busy the machine is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any, Final

import asyncpg

from corpus import Corpus, fill
from memory import Memory, PostgresStore, embedded
from memory.maintenance import indexes

__all__ = ["LOADS", "measure"]

LOADS: Final = {
    "no words": {"dimensions": 0, "postings": False},
    "20 words": {"dimensions": 0, "postings": True},
    "20 words, 384 values": {"dimensions": 384, "postings": True},
}
TENANT: Final = "acme"
PEOPLE: Final = 1_000
SOURCES, SUMMARIES = 100, 100
# Only bytes are measured, so nothing has to reach the disk in time.
SETTINGS: Final = {"autovacuum": "off", "fsync": "off", "synchronous_commit": "off"}
_RELATIONS: Final = """
    select c.relname, pg_relation_size(c.oid) as heap,
        coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0) as toast
    from pg_class as c
    where c.relnamespace = 'memory'::regnamespace and c.relkind = 'r' order by c.relname
"""
_INDEXES: Final = """
    select c.relname, pg_relation_size(c.oid) as bytes from pg_class as c
    where c.relnamespace = 'memory'::regnamespace and c.relkind = 'i' order by c.relname
"""
_WAL: Final = "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


async def measure(
    records: int, *, dimensions: int, postings: bool, people: int = PEOPLE
) -> dict[str, float]:
    """Return bytes a record by relation, ``total``, ``wal``, and what erasing everybody costs."""
    async with embedded.serve(settings=SETTINGS) as server:
        owner = await asyncpg.connect(server.superuser_url)
        try:
            store = PostgresStore(server.url)
            options: dict[str, Any] = {"redactor": None, "subject_pepper": "bench"}
            async with Memory(store, postings=postings, **options) as memory:
                return await _measured(
                    memory,
                    owner,
                    server.owner_url,
                    Corpus(people=people, dimensions=dimensions),
                    records,
                )
        finally:
            await owner.close()


async def _measured(
    memory: Memory,
    owner: asyncpg.Connection[Any],
    owner_url: str,
    corpus: Corpus,
    records: int,
) -> dict[str, float]:
    found: dict[str, float] = {}
    start = await owner.fetchval(_WAL)
    await fill(memory, TENANT, corpus, records)
    found["wal"] = float(await owner.fetchval(_WAL) - start)
    await owner.execute("vacuum")
    sizes = await _sizes(owner)
    found |= sizes
    found["total"] = sum(sizes.values())
    if corpus.dimensions:
        built = await indexes.build_index(owner_url, dimensions=corpus.dimensions)
        found["hnsw"] = float(
            await owner.fetchval(
                "select pg_relation_size($1::text::regclass)", f"memory.{built.name}"
            )
        )
    start = await owner.fetchval(_WAL)
    for number in range(corpus.people):
        await memory.forget(TENANT, subject_key=f"p:{number}")
    found["wal of erasing"] = float(await owner.fetchval(_WAL) - start)
    each = {name: round(value / records, 1) for name, value in found.items()}
    await owner.execute("vacuum")
    left = sum((await _sizes(owner)).values())
    stones = await owner.fetchval(
        "select pg_relation_size('memory.tombstones') + pg_indexes_size('memory.tombstones')"
    )
    return each | {
        "left after vacuum": round(left / records, 1),
        "tombstone": round(stones / corpus.people, 1),
        "provenance edge": round(await _edge(memory, owner), 1),
    }


async def _edge(memory: Memory, owner: asyncpg.Connection[Any]) -> float:
    """Derive summaries of all records of a small tenant; return bytes an edge."""
    await fill(memory, "derived", Corpus(people=1), SOURCES)
    sources = await memory.records("derived", limit=SOURCES)
    for _ in range(SUMMARIES):
        await memory.derive("derived", kind="summary", text="a summary", sources=sources)
    await owner.execute("vacuum memory.provenance")
    size = "select pg_relation_size('memory.provenance') + pg_indexes_size('memory.provenance')"
    return float(await owner.fetchval(size)) / SUMMARIES / SOURCES


async def _sizes(owner: asyncpg.Connection[Any]) -> dict[str, float]:
    sizes: dict[str, float] = {}
    for row in await owner.fetch(_RELATIONS):
        sizes[row["relname"]] = float(row["heap"])
        if row["toast"] > 8192:
            sizes[f"{row['relname']}, TOAST"] = float(row["toast"])
    for row in await owner.fetch(_INDEXES):
        if not row["relname"].startswith("records_hnsw_"):
            sizes[row["relname"]] = float(row["bytes"])
    return sizes


async def main() -> None:
    parser = argparse.ArgumentParser(description="Measure bytes a record.")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {name: await measure(arguments.records, **load) for name, load in LOADS.items()}
    names = list(dict.fromkeys(name for sizes in found.values() for name in sizes))
    print(f"| bytes a record | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
    for name in names:
        cells = [sizes.get(name, 0.0) for sizes in found.values()]
        if max(cells) >= 1:
            print(f"| {name} | {' | '.join(f'{cell:,.0f}' for cell in cells)} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
