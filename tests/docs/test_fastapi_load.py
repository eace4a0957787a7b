"""Two tenants ask a real server through a pool of two; some leave, some are cancelled.

``MEMORY_WEB_REQUESTS=10000`` makes it the long run.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest
from fastapi import Request

import memory
from memory import InMemoryStore, Memory, PostgresStore, TenantMemory
from processes import eventually, free_port, supervised
from samples import load
from servers import ROOT, Database
from stores import broken_rules
from webhost import KEYS, hosted
from webload import ANN, Load

REQUESTS = int(os.environ.get("MEMORY_WEB_REQUESTS", "240"))


@pytest.fixture
def served(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[tuple[str, int], Path]]:
    """The service on a port, and its log."""
    address = ("127.0.0.1", free_port())
    paths = [ROOT, ROOT / "tests" / "support", *sys.path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    monkeypatch.setenv("MEMORY_DATABASE_URL", database.app_url)
    command = [sys.executable, "-m", "uvicorn", "webserved:service", "--factory"]
    command += ["--port", str(address[1]), "--log-level", "debug"]
    # Longer than the client keeps an idle connection, else it may use one that is being closed.
    command += ["--timeout-keep-alive", "60"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with supervised(command, user=None, log=log):
            eventually(
                lambda: socket.create_connection(address).close(),
                refused=ConnectionRefusedError,
                log=log,
            )
            yield address, log


async def fill(database: Database) -> None:
    """Let both tenants know something of Ann already."""
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        for tenant in KEYS:
            texts = [f"{tenant} likes tea, cup {number}" for number in range(105)]
            items = [{"text": text, "subject_keys": ANN} for text in texts]
            await service.remember_many(tenant, items=items)


async def test_two_tenants_never_meet_whoever_leaves_or_is_cancelled(
    served: tuple[tuple[str, int], Path],
    database: Database,
    superuser: asyncpg.Connection,
) -> None:
    address, log = served
    await fill(database)
    url = f"http://{address[0]}:{address[1]}"
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        load = Load(client, address)
        await load.run(REQUESTS)
        assert load.mixed == []
        sys.stdout.write(f"read {load.read}\nleft {load.left}\nanswers {load.statuses}\n")
        codes = {code for _, code in load.statuses}
        assert codes <= {200, 201, 504}
        assert min(load.read[path] for path in ("/recall", "/export", "/remember")) > 0
        assert sum(load.left.values()) > REQUESTS / 40
        # The pool is whole: both connections come back and serve either tenant.
        for _ in range(200):
            if (await client.get("/pool")).json() == {"checked_out": 0}:
                break
            await asyncio.sleep(0.05)
        assert (await client.get("/pool")).json() == {"checked_out": 0}
        assert (await client.get("/ready")).json() == {"ready": True}
        after = Load(client, None)
        await after.run(40)
        assert after.mixed == []
    sessions = await superuser.fetch(
        "select state from pg_stat_activity where datname = current_database() and usename = $1",
        database.role("app"),
    )
    assert [row["state"] for row in sessions] == ["idle"] * len(sessions)
    assert 1 <= len(sessions) <= 2
    await every_row_is_in_its_tenant(superuser, load, after)
    assert await broken_rules(superuser) == {}
    assert (await memory.check(database.owner_url, subject_pepper="pepper")).ok
    quoted = log.read_text()
    assert "POST /recall" in quoted
    for value in ("likes tea", ANN, *KEYS.values()):
        assert value not in quoted


async def every_row_is_in_its_tenant(superuser: asyncpg.Connection, *loads: Load) -> None:
    strays = "select count(*) from memory.records where not starts_with(text, tenant_key)"
    assert await superuser.fetchval(strays) == 0
    for tenant in KEYS:
        rows = await superuser.fetch(
            "select record_id::text as id from memory.records where tenant_key = $1", tenant
        )
        stored = {item for load in loads for item in load.stored[tenant]}
        assert stored
        assert stored <= {row["id"] for row in rows}


async def test_a_host_that_keeps_the_tenant_beside_the_request_is_found_out() -> None:
    """Else the run above would prove nothing."""

    async def shared(request: Request) -> TenantMemory:
        state = request.app.state
        key = request.headers["authorization"].removeprefix("Bearer ")
        state.last = load("fastapi_app").tenant_of(key, state.tenants)
        await asyncio.sleep(0)  # as a query for the key would
        bound: TenantMemory = state.memory.for_tenant(state.last)
        return bound

    async with hosted(Memory(InMemoryStore(), subject_pepper="pepper")) as host:
        host.app.dependency_overrides[load("fastapi_app").tenant_memory] = shared
        asked = Load(host.client, None)
        await asked.run(100)
        assert asked.mixed
