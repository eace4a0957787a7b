"""The HNSW index is used, and its settings left nowhere, whoever's connection it is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

import clusters
from memory import Memory, Recall
from memory.maintenance.indexes import build_index, drop_index
from memory.stores.postgres import PostgresStore, base, meaning
from memory.urls import normalize_url
from plans import MODES, SWITCHES, explained, nodes
from rawsql import Connection
from servers import Database, Postgres
from stores import record_statements

DIMENSIONS = 8
ROWS = 6_000
FEW = 100
SETTINGS = (
    "hnsw.ef_search",
    "hnsw.iterative_scan",
    "hnsw.max_scan_tuples",
    "hnsw.scan_mem_multiplier",
    "enable_indexscan",
    "enable_seqscan",
    "enable_bitmapscan",
    "enable_sort",
    "jit",
    "jit_above_cost",
    "app.current_tenant",
)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is asked for more than a hundred candidates, so that a small table will do."""
    monkeypatch.setattr(meaning, "FEW", FEW)


@pytest.fixture
async def place(server: Postgres) -> AsyncIterator[Database]:
    """Two tenants in one index, one of 98 % and one of 2 %, which is more than a few."""
    with server.migrated() as database:
        connection = await asyncpg.connect(database.superuser_url)
        await clusters.prepare(connection, DIMENSIONS, centres=40)
        await clusters.fill(connection, {"acme": 0.98, "other": 0.02}, ROWS, centres=40)
        await connection.close()
        await build_index(database.owner_url, dimensions=DIMENSIONS)
        yield database


@pytest.fixture
async def inspector(place: Database) -> AsyncIterator[Connection]:
    connection: Connection = await asyncpg.connect(place.superuser_url)
    yield connection
    await connection.close()


@pytest.fixture
async def asked(inspector: Connection) -> list[float]:
    return list(
        await inspector.fetchval(
            "select embedding from memory.records where tenant_key = 'acme' limit 1"
        )
    )


def opened(store: PostgresStore) -> Memory:
    return Memory(store, redactor=None, subject_pepper="pepper")


def ids(answer: Recall) -> list[Any]:
    return [hit.record.record_id for hit in answer.hits]


async def exact(place: Database, tenant: str, asked: list[float]) -> Recall:
    """The answer of a store that compares all."""
    async with opened(PostgresStore(place.app_url)) as memory:
        return await memory.recall(tenant, embedding=asked, limit=1_000)


def check(answer: Recall, expected: Recall) -> None:
    """It came through the index, and nine of ten are right with the right scores."""
    assert "through an HNSW index" in answer.note
    assert not answer.exact
    scores = {hit.record.record_id: hit.score for hit in expected.hits}
    assert len(answer.hits) == 10
    assert len(set(ids(answer)) & set(ids(expected)[:10])) >= 9
    for hit in answer.hits:
        assert hit.score == pytest.approx(scores[hit.record.record_id], abs=1e-6)


@pytest.fixture
async def expected(
    place: Database, asked: list[float], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Recall]:
    with monkeypatch.context() as patched:
        patched.setattr(meaning, "FEW", ROWS)
        found = {tenant: await exact(place, tenant, asked) for tenant in ("acme", "other")}
    assert all(answer.exact for answer in found.values())
    return found


async def test_a_hosts_engine_with_the_servers_own_settings_uses_the_index(
    place: Database, asked: list[float], expected: dict[str, Recall]
) -> None:
    engine = create_async_engine(normalize_url(place.app_url), pool_size=1, max_overflow=0)
    memory = opened(PostgresStore(engine))
    before = await settings(engine)
    for tenant in ("acme", "other", "acme"):
        check(await memory.recall(tenant, embedding=asked, limit=10), expected[tenant])
        assert await settings(engine) == before
    await engine.dispose()


async def settings(engine: AsyncEngine) -> dict[str, str]:
    async with engine.connect() as connection:
        return await shown(connection)


async def shown(connection: Any) -> dict[str, str]:
    # With the library loaded its settings are there.
    await connection.execute(text("select '[1]'::vector"))
    found = {}
    for name in SETTINGS:
        row = await connection.execute(text(f"select current_setting('{name}', true)"))
        found[name] = row.scalar() or ""
    return found


async def test_a_joined_recall_puts_every_setting_of_the_hosts_back(
    place: Database, asked: list[float], expected: dict[str, Recall]
) -> None:
    engine = create_async_engine(normalize_url(place.app_url))
    async with engine.begin() as connection:
        await shown(connection)
        await connection.execute(text("set local hnsw.ef_search = 7"))
        await connection.execute(text("set local enable_sort = on"))
        await connection.execute(text("select set_config('app.current_tenant', 'other', true)"))
        before = await shown(connection)
        memory = opened(PostgresStore.joined(connection))
        told = await memory.remember("acme", text="x", subject_keys="ann", embedding=asked)
        answer = await memory.recall("acme", embedding=asked, limit=10)
        assert told.record.record_id in ids(answer)  # what the transaction wrote is seen
        assert "through an HNSW index" in answer.note
        check(await memory.recall("other", embedding=asked, limit=10), expected["other"])
        assert await shown(connection) == before
        await connection.rollback()
    await engine.dispose()


async def test_through_pgbouncer_the_index_serves_both_tenants_in_turn(
    place: Database,
    pgbouncer: Callable[[str], str],
    asked: list[float],
    expected: dict[str, Recall],
) -> None:
    async with opened(PostgresStore(pgbouncer(place.app_url), pooler=True)) as memory:
        for _ in range(4):
            for tenant in ("acme", "other"):
                check(await memory.recall(tenant, embedding=asked, limit=10), expected[tenant])


async def test_a_halfvec_index_is_ranked_by_full_precision(
    place: Database, asked: list[float], expected: dict[str, Recall]
) -> None:
    await drop_index(place.owner_url, dimensions=DIMENSIONS)
    await build_index(place.owner_url, dimensions=DIMENSIONS, halfvec=True)
    async with opened(PostgresStore(place.app_url)) as memory:
        check(await memory.recall("acme", embedding=asked, limit=10), expected["acme"])


@pytest.mark.parametrize("length", [1e14, 1e6, 1e-9, 1e-14])
async def test_half_precision_has_room_for_every_length_of_a_vector(
    place: Database, asked: list[float], expected: dict[str, Recall], length: float
) -> None:
    await drop_index(place.owner_url, dimensions=DIMENSIONS)
    scaled = [value * length for value in asked]
    async with opened(PostgresStore(place.app_url)) as memory:
        for built in (False, True):
            told = await memory.remember(
                "acme", text="as near as can be", subject_keys="dana", embedding=scaled
            )
            await build_index(place.owner_url, dimensions=DIMENSIONS, halfvec=True)
            found = await memory.recall("acme", embedding=scaled, limit=20, metadata={})
            assert "through an HNSW index" in found.note
            assert told.record.record_id in ids(found)[:3], built
            await memory.forget_record("acme", record_id=told.record.record_id)
        await memory.remember("acme", text="beside it", subject_keys="li", embedding=scaled)
        check(await memory.recall("other", embedding=scaled, limit=10), expected["other"])


async def test_an_index_that_went_is_missed_by_nobody(
    place: Database,
    inspector: Connection,
    asked: list[float],
    expected: dict[str, Recall],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(PostgresStore(place.app_url)) as memory:
        check(await memory.recall("acme", embedding=asked, limit=10), expected["acme"])
        await inspector.execute("drop index memory.records_hnsw_8")
        for note in ("did not suffice", "with pgvector"):
            answer = await memory.recall("acme", embedding=asked, limit=10)
            assert answer.exact
            assert ids(answer) == ids(expected["acme"])[:10]
            assert note in answer.note
            monkeypatch.setattr(base, "_LATELY", -1.0)  # a minute later
        await build_index(place.owner_url, dimensions=DIMENSIONS)
        check(await memory.recall("acme", embedding=asked, limit=10), expected["acme"])


async def test_an_index_that_is_not_valid_is_not_asked(
    place: Database, inspector: Connection, asked: list[float]
) -> None:
    await inspector.execute(
        "update pg_index set indisvalid = false"
        " where indexrelid = 'memory.records_hnsw_8'::regclass"
    )
    async with opened(PostgresStore(place.app_url)) as memory:
        answer = await memory.recall("acme", embedding=asked, limit=10)
        assert answer.exact
        assert answer.note.endswith("with pgvector")
        assert (await memory.capabilities()).hnsw_dimensions == ()


async def test_pgvector_that_is_created_later_is_used_without_a_restart(
    database: Database, superuser: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await superuser.execute("drop extension vector")
    async with opened(PostgresStore(database.app_url)) as memory:
        await memory.remember("acme", text="x", subject_keys="ann", embedding=[1.0, 2.0])
        assert "in this process" in (await memory.recall("acme", embedding=[1.0, 2.0])).note
        await superuser.execute("create extension vector")
        assert "in this process" in (await memory.recall("acme", embedding=[1.0, 2.0])).note
        monkeypatch.setattr(base, "_LATELY", -1.0)  # a minute later
        assert "with pgvector" in (await memory.recall("acme", embedding=[1.0, 2.0])).note


async def test_rows_of_another_model_are_neither_compared_nor_missed(
    place: Database, inspector: Connection, asked: list[float]
) -> None:
    class Asking:
        model = "clusters"

        async def embed(self, texts: Any) -> Any:
            return [asked for _ in texts]

    await inspector.execute("set session_replication_role = replica")
    await inspector.execute(
        "update memory.records set embedding_model = 'another'"
        " where tenant_key = 'acme' and metadata @> '{\"n\": 1}'"
    )
    others = await inspector.fetchval(
        "select count(*) from memory.records where embedding_model = 'another'"
    )
    store = PostgresStore(place.app_url)
    async with Memory(store, embedder=Asking(), subject_pepper="pepper") as memory:
        answer = await memory.recall("acme", text="x", limit=10)
        assert "through an HNSW index" in answer.note
        assert f"; {others} skipped because embedded by another model" in answer.note
        assert {hit.record.embedding_model for hit in answer.hits} == {"clusters"}
        unnamed = await memory.recall("acme", embedding=asked, limit=200)
        assert {hit.record.embedding_model for hit in unnamed.hits} == {"clusters", "another"}
        assert "skipped" not in unnamed.note


async def test_what_is_forgotten_is_gone_from_the_index_and_its_neighbour_is_not(
    place: Database, inspector: Connection, asked: list[float]
) -> None:
    async with opened(PostgresStore(place.app_url)) as memory:
        items = [
            {"text": person, "subject_keys": person, "embedding": asked}
            for person in ("ann", "bob", "ann", "bob")
        ]
        told = [one.record for one in await memory.remember_many("acme", items=items)]
        gone, kept = {told[0].record_id, told[2].record_id}, {told[1].record_id, told[3].record_id}
        before = await memory.recall("acme", embedding=asked, limit=10)
        assert set(ids(before)) >= gone | kept
        row = "select r::text from memory.records as r where record_id = $1"
        images = [await inspector.fetchval(row, record_id) for record_id in sorted(kept)]
        await memory.forget("acme", subject_key="ann")
        after = await memory.recall("acme", embedding=asked, limit=10)
        assert "through an HNSW index" in after.note
        assert not gone & set(ids(after))
        assert kept <= set(ids(after))
        assert len(after.hits) == 10
        assert [await inspector.fetchval(row, record_id) for record_id in sorted(kept)] == images
        left = await inspector.fetchval(
            "select count(*) from memory.records where record_id = any ($1)", list(gone)
        )
        assert left == 0


@pytest.mark.parametrize("mode", MODES)
async def test_the_plan_is_the_indexs_and_asks_for_the_tenant_once(
    place: Database, asked: list[float], mode: str
) -> None:
    engine = create_async_engine(normalize_url(place.app_url), pool_size=1, max_overflow=0)
    sent = record_statements(engine)
    memory = opened(PostgresStore(engine))
    await memory.capabilities()
    sent.clear()
    answer = await memory.recall("acme", embedding=asked, limit=10)
    assert "through an HNSW index" in answer.note
    await engine.dispose()
    steering = next(sql for sql, _ in sent if "enable_sort" in sql)
    statement, values = next(item for item in sent if "hnsw.ef_search" in item[0])
    connection: Connection = await asyncpg.connect(place.app_url)
    plan = await explained(connection, statement, values, mode, before=steering)
    await connection.close()
    used = {node.get("Index Name"): node for node in nodes(plan) if node.get("Actual Loops")}
    assert used["records_hnsw_8"]["Actual Rows"] >= 40
    assert "Filter" in used["records_hnsw_8"]
    assert used["records_embedded"]["Node Type"] == "Index Only Scan"
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 1_000
    for node in nodes(plan):
        # A relaxed order is not an order.
        assert "Presorted Key" not in node
        conditions = {k: v for k, v in node.items() if "Cond" in k or "Filter" in k}
        assert "current_setting" not in json.dumps(conditions)
        if "current_setting" in json.dumps(node.get("Output", [])):
            assert node["Actual Loops"] <= 1


async def test_it_is_right_under_every_plan_whatever_tenant_was_left(
    place: Database, asked: list[float], expected: dict[str, Recall]
) -> None:
    engine = create_async_engine(normalize_url(place.app_url), pool_size=1, max_overflow=0)
    memory = opened(PostgresStore(engine))
    for mode in MODES:
        for switch in (None, *SWITCHES):
            for left in ("", "other"):
                async with engine.begin() as connection:
                    for name in SWITCHES:
                        value = "off" if name == switch else "on"
                        await connection.execute(text(f"set enable_{name} = {value}"))
                    await connection.execute(text(f"set plan_cache_mode = {mode}"))
                    await connection.execute(text("discard plans"))
                    await connection.execute(text(f"set app.current_tenant = '{left}'"))
                answer = await memory.recall("acme", embedding=asked, limit=10)
                check(answer, expected["acme"])
                assert {hit.record.tenant_key for hit in answer.hits} == {"acme"}
    await engine.dispose()
