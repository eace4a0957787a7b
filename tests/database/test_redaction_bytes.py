"""What was masked is stored nowhere: not in a row, not in a file of the server.

The files are read as they lie on disk: tables, what is stored out of line, indexes, the write-ahead
log, the server's log with every statement and parameter in it. A harmless word planted in the same
texts is found in all of these, so a search that finds nothing is not one that cannot find.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from identifiers import conversation, needles
from memory import HashingEmbedder, Memory, Record, embedded
from memory.stores.postgres import PostgresStore
from rawsql import TABLES, Connection
from servers import Database

MARKER = "tulipwood"
# A number is known by the key it stands under.
KEYS = {
    "aadhaar": "aadhaar",
    "bank_account": "account",
    "card": "card",
    "phone_in": "phone",
    "ssn": "ssn",
    "virtual_id": "vid",
}
SETTINGS = {
    "autovacuum": "off",
    "fsync": "off",
    "log_statement": "all",
    "log_error_verbosity": "default",
    "log_parameter_max_length": "-1",
    "max_wal_size": "8GB",
}


@dataclass(frozen=True)
class Replayed:
    """A server after a conversation, with what was planted and what came back."""

    data: Path
    superuser: Connection
    planted: tuple[str, ...]
    records: tuple[Record, ...]


@asynccontextmanager
async def superuser_of(server: embedded.Server) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(server.superuser_url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def replayed() -> AsyncIterator[Replayed]:
    """Every verb that writes, and recall, fed with identifiers of every kind in every place."""
    turns = conversation(seed=7)
    async with (
        embedded.serve(settings=SETTINGS) as server,
        superuser_of(server) as superuser,
    ):
        # Compressed values could hide what is searched for.
        await superuser.execute(
            "alter table memory.records alter text set storage external,"
            " alter metadata set storage external"
        )
        memory = Memory(
            PostgresStore(server.url), embedder=HashingEmbedder(32), subject_pepper="pepper"
        )
        try:
            records = await replay(memory, turns)
        finally:
            await memory.close()
        await superuser.execute("checkpoint")
        yield Replayed(
            data=Path(server.data_directory),
            superuser=superuser,
            planted=tuple(needle for _, value, _ in turns for needle in needles(value)),
            records=tuple(records),
        )


async def replay(memory: Memory, turns: list[tuple[str, str, str]]) -> list[Record]:
    acme = memory.for_tenant("acme")
    long = "A word that is repeated until the value is stored out of line. " * 60
    items: list[dict[str, Any]] = []
    for kind, value, text in turns:
        said = f"{MARKER}: {text}"
        metadata: dict[str, Any] = {"said": [said], said: "as a key"}
        if kind in KEYS:
            metadata |= {KEYS[kind]: int(value), "copy": {KEYS[kind]: value}}
        items.append({"text": said, "subject_keys": "customer:ann", "metadata": metadata})
    told = [await acme.remember(**item) for item in items[::2]]
    told += await acme.remember_many(items=items[1::2])
    made = []
    for (_, _, text), one in zip(turns, told, strict=True):
        made.append(
            await acme.derive(
                kind="summary",
                text=f"{long}\n{MARKER} asked: {text}",
                sources=one.record,
                metadata={"asked": text},
            )
        )
    newer = [
        await acme.supersede(
            record_id=one.record.record_id, text=f"{text} ({MARKER})", metadata={"again": [text]}
        )
        for (_, _, text), one in zip(turns[:30], told[:30], strict=True)
    ]
    for strategy in ("lexical", "vector"):
        for _, _, text in turns:
            await acme.recall(text=f"{MARKER} {text}", strategy=strategy)
    return [one.record for one in (*told, *made, *newer)]


@pytest.mark.asyncio(loop_scope="module")
async def test_no_planted_identifier_is_in_any_row_of_any_table(replayed: Replayed) -> None:
    marked = {}
    for table in TABLES:
        rows = await replayed.superuser.fetch(f"select lower(t::text) as row from memory.{table} t")
        text = "\n".join(row["row"] for row in rows)
        assert [needle for needle in replayed.planted if needle in text] == [], table
        marked[table] = text.count(MARKER)
    assert marked["records"] > len(replayed.records)
    assert marked["postings"] >= len(replayed.records)


@pytest.mark.asyncio(loop_scope="module")
async def test_no_planted_identifier_is_in_any_file_of_the_server(replayed: Replayed) -> None:
    found: set[str] = set()
    marked: set[str] = set()
    for path in sorted(replayed.data.rglob("*")):
        if not path.is_file() or path.is_socket():
            continue
        name = str(path.relative_to(replayed.data))
        # A segment of the write-ahead log is mostly zeros.
        content = path.read_bytes().rstrip(b"\0").lower()
        found |= {name for needle in replayed.planted if needle.encode() in content}
        if MARKER.encode() in content:
            marked.add(name)
    assert found == set()
    assert await relations(replayed.superuser) <= marked
    assert any(name.startswith("pg_wal/") for name in marked)
    assert "log" in marked


async def relations(superuser: Connection) -> set[str]:
    """The files of the records, of what of them is stored out of line, of postings and an index."""
    rows = await superuser.fetch(
        "select pg_relation_filepath(c.oid) as path from pg_class as c where c.oid in ("
        " 'memory.records'::regclass, 'memory.postings'::regclass,"
        " (select reltoastrelid from pg_class where oid = 'memory.records'::regclass),"
        " (select i.indexrelid from pg_index as i"
        "  join pg_attribute as a on a.attrelid = i.indexrelid"
        "  where i.indrelid = 'memory.postings'::regclass and a.attname = 'term' limit 1))"
    )
    assert len(rows) == 4
    return {row["path"] for row in rows}


@pytest.mark.asyncio(loop_scope="module")
async def test_every_record_says_where_it_was_masked(replayed: Replayed) -> None:
    for record in replayed.records:
        assert "text" in record.redacted
        assert any(path.startswith("metadata.") for path in record.redacted)
        assert MARKER in record.text
        for path in record.redacted:
            assert not any(needle in path.lower() for needle in replayed.planted)
    paths = {path for record in replayed.records for path in record.redacted}
    assert {"metadata.said.0", "metadata.asked", "metadata.again.0"} <= paths
    assert {f"metadata.{key}" for key in KEYS.values()} <= paths
    assert {f"metadata.copy.{key}" for key in KEYS.values()} <= paths


async def test_an_engine_that_echoes_parameters_logs_no_planted_identifier(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    turns = conversation(seed=8)[:25]
    url = make_url(database.app_url).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(url, echo="debug")
    # In the host's transaction, since others show SQLAlchemy nothing.
    async with engine.begin() as connection:
        store = PostgresStore.joined(connection)
        await replay(Memory(store, embedder=HashingEmbedder(8), subject_pepper="pepper"), turns)
    await engine.dispose()
    logged = caplog.text.lower()
    assert [n for _, value, _ in turns for n in needles(value) if n in logged] == []
    assert logged.count(MARKER) > len(turns)
    assert "sqlalchemy.engine.Engine" in {record.name for record in caplog.records}
