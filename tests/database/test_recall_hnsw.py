"""Across a tenant: exact or through an HNSW index, and never fewer hits than there are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

import clusters
from memory import Memory, Recall
from memory.maintenance.indexes import build_index
from memory.stores.postgres import PostgresStore
from rawsql import Connection
from restores import backup
from servers import Database, Postgres

ROWS = 110_000
SHARES = {"t01": 0.001, "t1": 0.01, "t10": 0.1, "t90": 0.889}
DIMENSIONS = 16
# Some 50 vectors a centre: a graph has no way out of crowds larger than a node's candidates, and
# may miss one altogether.
CENTRES = 2_000
NOON = datetime(2024, 1, 1, tzinfo=UTC)
NEAR = "order by embedding::vector <=> (select $2::real[]::vector), record_id desc limit 10"


@pytest.fixture(scope="module")
def crowd(server: Postgres) -> Iterator[Database]:
    """Four tenants in one index of more than 100,000 entries."""
    with server.migrated() as database:
        asyncio.run(_crowd(database))
        yield database


async def _crowd(database: Database) -> None:
    connection = await asyncpg.connect(database.superuser_url)
    await clusters.prepare(connection, DIMENSIONS, centres=CENTRES)
    await clusters.fill(connection, SHARES, ROWS, centres=CENTRES)
    await connection.close()
    await build_index(database.owner_url, dimensions=DIMENSIONS)


@pytest.fixture
async def inspector(crowd: Database) -> AsyncIterator[Connection]:
    connection: Connection = await asyncpg.connect(crowd.superuser_url)
    yield connection
    await connection.close()


@pytest.fixture
async def memory(crowd: Database) -> AsyncIterator[Memory]:
    async with opened(crowd) as memory:
        yield memory


def opened(place: Database) -> Memory:
    return Memory(PostgresStore(place.app_url), redactor=None, subject_pepper="pepper")


async def questions(inspector: Connection, tenant: str, count: int) -> list[list[float]]:
    """Questions near vectors of the tenant."""
    chance = random.Random(3)  # noqa: S311
    rows = await inspector.fetch(
        "select embedding from memory.records where tenant_key = $1"
        " order by md5(record_id::text) limit $2",
        tenant,
        count,
    )
    return [clusters.shifted(row["embedding"], chance) for row in rows]


async def nearest(
    inspector: Connection, tenant: str, vector: list[float], where: str = "true"
) -> set[Any]:
    """The ids of the ten nearest, by comparing all."""
    async with inspector.transaction():
        await inspector.execute("set local enable_indexscan = off")
        rows = await inspector.fetch(
            f"select record_id from memory.records where tenant_key = $1 and {where} {NEAR}",
            tenant,
            vector,
        )
    return {row["record_id"] for row in rows}


def ids(answer: Recall) -> set[Any]:
    return {hit.record.record_id for hit in answer.hits}


def through_index(answer: Recall) -> bool:
    """What the answer says about itself, which has to agree with itself."""
    assert answer.exact == ("the nearest may be missing" not in answer.note)
    return not answer.exact


@pytest.mark.parametrize(
    ("tenant", "asked_of", "by_index"),
    [
        ("t01", "t01", False),
        ("t1", "t1", False),
        ("t10", "t10", True),
        ("t90", "t90", True),
        ("t01", "t90", False),
        ("t10", "t90", True),
    ],
)
async def test_the_ten_nearest_are_found_whatever_share_of_the_rows_is_the_tenants(
    inspector: Connection, memory: Memory, tenant: str, asked_of: str, by_index: bool
) -> None:
    right = 0
    asked = await questions(inspector, asked_of, 20)
    for vector in asked:
        answer = await memory.recall(tenant, embedding=vector, limit=10)
        assert through_index(answer) is by_index
        assert len(answer.hits) == 10
        assert {hit.record.tenant_key for hit in answer.hits} == {tenant}
        right += len(ids(answer) & await nearest(inspector, tenant, vector))
    assert right >= 0.95 * 10 * len(asked)


FILTERED: dict[str, tuple[dict[str, Any], str]] = {
    "a kind": ({"kinds": "profile"}, "kind = 'profile'"),
    "an origin": ({"origins": "remembered"}, "origin = 'remembered'"),
    "no such origin": ({"origins": "derived"}, "origin = 'derived'"),
    "a while": (
        {"since": NOON + timedelta(minutes=50), "until": NOON + timedelta(minutes=110)},
        "occurred_at >= '2024-01-01 00:50Z' and occurred_at < '2024-01-01 01:50Z'",
    ),
    "metadata": ({"metadata": {"n": 7}}, "metadata @> '{\"n\": 7}'"),
    "metadata and kind": (
        {"metadata": {"n": 10}, "kinds": "profile"},
        "metadata @> '{\"n\": 10}' and kind = 'profile'",
    ),
    "nobody's metadata": ({"metadata": {"n": -1}}, "metadata @> '{\"n\": -1}'"),
    "old versions too": ({"include_superseded": True}, "true"),
}


@pytest.mark.parametrize("name", FILTERED)
@pytest.mark.parametrize("tenant", ["t10", "t90"])
async def test_a_filter_never_makes_an_answer_shorter_than_what_is_visible(
    inspector: Connection, memory: Memory, tenant: str, name: str
) -> None:
    asked, where = FILTERED[name]
    visible = await inspector.fetchval(
        f"select count(*) from memory.records where tenant_key = $1 and {where}", tenant
    )
    for vector in await questions(inspector, "t90", 4):
        answer = await memory.recall(tenant, embedding=vector, limit=60, **asked)
        assert len(answer.hits) == min(60, visible)
        through_index(answer)
        ten = await memory.recall(tenant, embedding=vector, limit=10, **asked)
        right = len(ids(ten) & await nearest(inspector, tenant, vector, where))
        assert right >= min(9, visible)


async def test_a_least_score_is_met_by_every_record_that_meets_it(
    inspector: Connection, memory: Memory
) -> None:
    (vector,) = await questions(inspector, "t90", 1)
    scores = [
        row["score"]
        for row in await inspector.fetch(
            "select 1 - (embedding::vector <=> (select $1::real[]::vector)) as score"
            " from memory.records where tenant_key = 't90' order by score desc limit 100",
            vector,
        )
    ]
    few, many = (scores[3] + scores[4]) / 2, (scores[79] + scores[80]) / 2
    answer = await memory.recall("t90", embedding=vector, limit=10, min_score=few)
    assert answer.exact  # only comparing all shows that there are no more
    assert [hit.score for hit in answer.hits] == pytest.approx(scores[:4], abs=1e-6)
    assert "did not suffice" in answer.note
    answer = await memory.recall("t90", embedding=vector, limit=10, min_score=many)
    assert len(answer.hits) == 10
    assert through_index(answer)
    nothing = await memory.recall("t90", embedding=vector, limit=10, min_score=1.0)
    assert (nothing.hits, nothing.exact) == ((), True)


async def test_as_many_as_may_be_asked_for_come_back(inspector: Connection, memory: Memory) -> None:
    (vector,) = await questions(inspector, "t10", 1)
    for tenant in ("t10", "t90"):
        answer = await memory.recall(tenant, embedding=vector, limit=1_000)
        assert len(answer.hits) == 1_000
        scores = [hit.score for hit in answer.hits]
        assert scores == sorted(scores, reverse=True)
    assert len((await memory.recall("t01", embedding=vector, limit=1_000)).hits) == ROWS // 1_000
    one = await memory.recall("t90", embedding=vector, limit=1)
    assert ids(one) <= await nearest(inspector, "t90", vector)


async def test_no_model_and_no_index_of_that_length_are_exact(
    inspector: Connection, memory: Memory
) -> None:
    answer = await memory.recall("t90", embedding=[1.0] * 7)
    assert (answer.hits, answer.exact) == ((), True)
    assert "at least 1000 skipped because embedded by another model" in answer.note


@pytest.fixture
def place(crowd: Database) -> Iterator[Database]:
    """A copy of the crowd and its index, which the test may change."""
    with backup(crowd) as copied:
        yield copied


async def test_after_most_rows_are_deleted_and_nothing_vacuumed_none_is_missing(
    place: Database,
) -> None:
    inspector: Connection = await asyncpg.connect(place.superuser_url)
    asked = await questions(inspector, "t10", 5)
    asked += await questions(inspector, "t90", 5)
    await inspector.execute("set session_replication_role = replica")
    async with opened(place) as memory:
        for left, by_index in ((10, True), (20, False)):
            await inspector.execute(
                "delete from memory.records"
                f" where (hashtext(record_id::text)::bigint + 2147483648) % {left} > 1"
            )
            counts = {
                row["tenant_key"]: row["n"]
                for row in await inspector.fetch(
                    "select tenant_key, count(*) as n from memory.records group by 1"
                )
            }
            assert counts["t10"] > 1_000
            for vector in asked:
                for tenant, count in counts.items():
                    answer = await memory.recall(tenant, embedding=vector, limit=10)
                    assert len(answer.hits) == min(10, count)
                    assert through_index(answer) is (by_index and tenant == "t90")
                    found = len(ids(answer) & await nearest(inspector, tenant, vector))
                    assert found >= (8 if by_index else min(10, count))
        await inspector.execute(
            "delete from memory.records where tenant_key = 't10' and record_id not in"
            " (select record_id from memory.records where tenant_key = 't10' limit 3)"
        )
        for vector in asked:
            assert len((await memory.recall("t10", embedding=vector, limit=10)).hits) == 3
    await inspector.close()


async def test_a_tenant_that_lies_away_from_the_question_is_found(place: Database) -> None:
    inspector: Connection = await asyncpg.connect(place.superuser_url)
    await inspector.execute(
        "set session_replication_role = replica;"
        " insert into memory.records (tenant_key, record_id, text, embedding, embedding_model)"
        " select 'away', gen_random_uuid(), 'x',"
        f" array[1000, n % 7, n % 11, n % 13] || array_fill(1, array[{DIMENSIONS - 4}]), 'clusters'"
        " from generate_series(1, 10500) as n"
    )
    async with opened(place) as memory:
        vector = [-1000.0, 1.0, 2.0, 3.0] + [1.0] * (DIMENSIONS - 4)
        for limit in (1, 10, 100):
            answer = await memory.recall("away", embedding=vector, limit=limit)
            assert len(answer.hits) == limit
            assert answer.exact
            assert "did not suffice" in answer.note
        answer = await memory.recall("away", embedding=vector, limit=10, origins="remembered")
        assert len(answer.hits) == 10
    await inspector.close()
