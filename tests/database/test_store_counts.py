"""Counts are exact while writers write and maintenance folds, and folding loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator

import asyncpg
import pytest

from memory import InstallError, Memory, fold_counts
from memory.stores.postgres import PostgresStore
from rawsql import Connection
from servers import Database
from stores import image

TENANTS = ("acme", "acme-corp")
# In one statement, so in one snapshot.
COUNTED = """
    select r.records, r.terms, c.counted, c.added, c.deltas
    from (
        select count(*) as records, coalesce(sum(x.term_count), 0) as terms
        from memory.records as x where x.tenant_key = $1
    ) as r
    cross join (
        select
            coalesce(sum(x.records), 0) as counted,
            coalesce(sum(x.terms), 0) as added,
            count(*) as deltas
        from memory.tenant_counts as x where x.tenant_key = $1
    ) as c
"""


@pytest.fixture
async def memory(database: Database) -> AsyncIterator[Memory]:
    async with Memory(
        PostgresStore(database.app_url), redactor=None, subject_pepper="pepper"
    ) as memory:
        yield memory


async def write(memory: Memory, tenant: str, seed: int) -> None:
    """Remember, update and forget, in an order of the seed's."""
    chance = random.Random(seed)  # noqa: S311
    ids = []
    told = [{"text": "tea for three", "subject_keys": f"p{seed}-1"}] * 3
    await memory.remember_many(tenant, items=told)
    for n in range(30):
        text = " ".join(["tea"] * chance.randint(1, 5))
        told = await memory.remember(tenant, text=text, subject_keys=f"p{seed}-{n % 3}")
        ids.append(told.record.record_id)
        if n % 4 == 0:
            await memory.supersede(tenant, record_id=ids.pop(), text="milk and tea")
        if n % 5 == 0:
            await memory.forget(tenant, subject_key=f"p{seed}-{n % 3}")
            ids.clear()


async def test_counts_are_never_wrong_while_writers_write_and_two_fold(
    memory: Memory, database: Database
) -> None:
    watcher = await asyncpg.connect(database.superuser_url)
    writing = asyncio.gather(*(write(memory, TENANTS[n % 2], n) for n in range(6)))
    seen, most = 0, 0

    async def fold() -> int:
        folded = 0
        while not writing.done():
            folded += await fold_counts(database.owner_url)
        return folded

    async def watch() -> None:
        nonlocal seen, most
        while not writing.done():
            for tenant in TENANTS:
                row = await watcher.fetchrow(COUNTED, tenant)
                assert (row["records"], row["terms"]) == (row["counted"], row["added"])
                seen += 1
                most = max(most, row["deltas"])
            await asyncio.sleep(0)

    watched = asyncio.gather(fold(), fold(), watch())
    await writing
    folded = await watched
    assert folded[0] + folded[1] > 0
    assert seen > 20
    assert most > 1
    await fold_counts(database.owner_url)
    for tenant in TENANTS:
        row = await watcher.fetchrow(COUNTED, tenant)
        assert (row["records"], row["terms"], row["deltas"]) == (row["counted"], row["added"], 1)
    await watcher.close()


async def test_folding_changes_nothing_but_the_deltas_and_no_answer(
    memory: Memory, database: Database, superuser: Connection
) -> None:
    for tenant in TENANTS:
        await write(memory, tenant, 3)
    asked = {"text": "tea milk", "strategy": "keyword", "limit": 50}
    before = {t: (await image(superuser, t), await memory.recall(t, **asked)) for t in TENANTS}
    steps: list[tuple[str, int]] = []
    folded = await fold_counts(database.owner_url, progress=lambda *step: steps.append(step))
    assert steps == [("tenants", 1), ("tenants", 2)]
    assert folded == sum(len(rows["tenant_counts"]) for rows, _ in before.values())
    for tenant, (rows, answer) in before.items():
        after = await image(superuser, tenant)
        assert len(after.pop("tenant_counts")) == 1 < len(rows.pop("tenant_counts"))
        assert after == rows
        assert await memory.recall(tenant, **asked) == answer
    once = {tenant: await image(superuser, tenant) for tenant in TENANTS}
    assert await fold_counts(database.owner_url) == 0
    assert {tenant: await image(superuser, tenant) for tenant in TENANTS} == once


async def test_only_the_owner_folds(memory: Memory, database: Database, app: Connection) -> None:
    await write(memory, "acme", 1)
    with pytest.raises(InstallError):
        await fold_counts(database.app_url)
    await app.execute("select set_config('app.current_tenant', 'acme', false)")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await app.execute("delete from memory.tenant_counts")
    assert await fold_counts(database.owner_url) > 0


async def test_the_command_folds(memory: Memory, database: Database, superuser: Connection) -> None:
    await write(memory, "acme", 2)
    command = [sys.executable, "-m", "memory.cli", "fold", "--json"]
    for url, code in ((database.owner_url, 0), (database.app_url, 3), (database.owner_url, 0)):
        deltas = await superuser.fetchval("select count(*) from memory.tenant_counts")
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            env={**os.environ, "MEMORY_DATABASE_URL": url},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == code, done.stderr
        if code == 0:
            assert json.loads(done.stdout) == {"folded": deltas if deltas > 1 else 0}
    assert await superuser.fetchval("select count(*) from memory.tenant_counts") == 1
