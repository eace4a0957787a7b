"""After a scrub nothing of an erased person is in any file of the server; a neighbour's is.

Every file of a cluster is read as it lies on disk, the write-ahead log included, for sixteen bytes
of any erased text, key, word, vector or metadata, as they are and in other encodings. Two controls:
before, all of it is found; afterwards, all of a neighbour's still is.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio

from memory import Memory, PostgresStore, embedded
from memory.maintenance import scrub
from memory.maintenance.indexes import build_index
from memory.maintenance.scrubbing import Scrubbed
from rawsql import Connection
from remains import DIMENSIONS, Found, Person, make_person, remember, search
from servers import debian_postgres_15

pytestmark = pytest.mark.timeout(900)

SETTINGS = {"autovacuum": "off", "fsync": "off", "max_wal_size": "8GB"}
ALL = dict.fromkeys(("texts", "keys", "words", "vectors", "metadata", "compressed", "encoded"), 1.0)
NONE = dict.fromkeys(ALL, 0.0)


@dataclass(frozen=True)
class Cluster:
    version: int
    app_url: str
    owner_url: str
    superuser_url: str
    data: Path


@asynccontextmanager
async def cluster(version: int) -> AsyncIterator[Cluster]:
    if version != 15:
        async with embedded.serve(postgres_version=version, settings=SETTINGS) as server:
            yield Cluster(
                version=version,
                app_url=server.url,
                owner_url=server.owner_url,
                superuser_url=server.superuser_url,
                data=Path(server.data_directory),
            )
        return
    with (
        tempfile.TemporaryDirectory(prefix="pg15-") as folder,
        debian_postgres_15(Path(folder)) as postgres,
        postgres.migrated() as database,
    ):
        yield Cluster(
            version=version,
            app_url=database.app_url,
            owner_url=database.owner_url,
            superuser_url=database.superuser_url,
            data=Path(folder) / "data",
        )


@dataclass(frozen=True)
class Stages:
    """What was found of the person at each stage, and of the neighbour at the end."""

    version: int
    before: Found
    scrubbed: Found
    neighbour: Found
    report: Scrubbed
    tombstones: int


@asynccontextmanager
async def two_people(
    server: Cluster, *, records: int
) -> AsyncIterator[tuple[Memory, Person, Person]]:
    """So many records of the one, sixty of the other, with everything that may hold a copy."""
    if server.version == 15:
        async with admin(server) as connection:
            await connection.execute("alter table memory.records alter text set compression lz4")
    else:
        await build_index(server.owner_url, dimensions=DIMENSIONS)
        await build_index(server.owner_url, dimensions=DIMENSIONS, halfvec=True)
    dana, bobby = make_person("d", records=records, seed=0), make_person("b", records=60, seed=1)
    async with Memory(PostgresStore(server.app_url), subject_pepper="pepper") as memory:
        await remember(memory, dana, bobby)
        yield memory, dana, bobby


@asynccontextmanager
async def admin(server: Cluster) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(server.superuser_url)
    try:
        yield connection
    finally:
        await connection.close()


async def look(server: Cluster, *people: Person, first: str = "") -> list[Found]:
    """Search the files once they hold what the server's buffers do."""
    async with admin(server) as connection:
        if first:
            await connection.execute(first)
        await connection.execute("checkpoint")
    return search(server.data, *people)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[18, 16, 15])
async def stages(request: pytest.FixtureRequest) -> AsyncIterator[Stages]:
    records = 120 if request.param == 18 else 60
    async with (
        cluster(request.param) as server,
        two_people(server, records=records) as (memory, dana, bobby),
    ):
        [before] = await look(server, dana)
        await memory.forget("shop", subject_key=dana.key)
        report = await scrub(server.superuser_url)
        scrubbed, neighbour = search(server.data, dana, bobby)
        yield Stages(
            version=server.version,
            before=before,
            scrubbed=scrubbed,
            neighbour=neighbour,
            report=report,
            tombstones=len(await memory.erasure_history("shop")),
        )


def test_everything_is_found_before(stages: Stages) -> None:
    assert stages.before.shares == ALL
    assert {trace.file.split("/")[0] for trace in stages.before.traces} == {"base", "pg_wal"}


def test_every_encoding_and_compression_was_searched_and_found(stages: Stages) -> None:
    traces = [trace for trace in stages.before.traces if trace.file.startswith("base/")]
    wanted = {"text", "json", "hex", "base64", "float32"}
    if stages.version != 15:  # an index of half precision
        wanted.add("float16")
    assert {trace.encoding for trace in traces} == wanted
    assert any(trace.compressed for trace in traces)


def test_nothing_is_left_in_any_file_after_a_scrub(stages: Stages) -> None:
    assert stages.scrubbed.traces == ()
    assert stages.scrubbed.shares == NONE


def test_the_neighbour_is_still_there_to_the_byte(stages: Stages) -> None:
    assert stages.neighbour.shares == ALL
    assert stages.tombstones == 1


def test_nobody_was_shut_out(stages: Stages) -> None:
    assert "ACCESS EXCLUSIVE" not in {step.lock for step in stages.report.steps}
    assert [step for step in stages.report.steps if not step.done] == []
    # Gaps too small for a row are the one thing that may be left, and then it is said.
    assert stages.report.codes <= {"free_space"}


async def test_a_vacuum_leaves_it_an_owners_rewrite_the_log_a_superusers_nothing() -> None:
    async with (
        cluster(18) as server,
        two_people(server, records=60) as (memory, dana, bobby),
    ):
        await memory.forget("shop", subject_key=dana.key)
        [deleted] = await look(server, dana)
        assert deleted.shares == ALL
        [vacuumed] = await look(server, dana, first="vacuum")
        assert vacuumed.shares == ALL
        report = await scrub(server.owner_url, exclusive=True)
        assert report.codes == {"wal", "checkpoint"}
        rewritten, neighbour = await look(server, dana, bobby)
        assert {trace.file.split("/")[0] for trace in rewritten.traces} == {"pg_wal"}
        assert neighbour.shares == ALL
        await scrub(server.superuser_url, exclusive=True)
        nothing, neighbour = await look(server, dana, bobby)
        assert nothing.traces == ()
        assert neighbour.shares == ALL
