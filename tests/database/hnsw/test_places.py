"""The HNSW index is used, and its settings left nowhere, whoever's connection it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import Recall
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from nearest import check, ids, opened
from plans import MODES, SWITCHES, explained, nodes
from rawsql import Connection
from servers import Database
from stores import record_statements

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
