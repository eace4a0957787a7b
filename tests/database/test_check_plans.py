"""What a page of the check reads does not depend on how much the tenant holds besides."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

from memory.maintenance.checks.rows import _TABLES
from servers import Database

PAGE = 200
FILL = """
    insert into memory.records (tenant_key, record_id, text, term_count)
    select 'acme', lpad(to_hex(n), 32, '0')::uuid, 'text', 2
    from generate_series({first}, {last}) as n;
    insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
    select 'acme', lpad(to_hex(n), 32, '0')::uuid, 'p:' || n, repeat('0', 64)
    from generate_series({first}, {last}) as n;
    insert into memory.postings (tenant_key, term, record_id)
    select 'acme', t.term, lpad(to_hex(n), 32, '0')::uuid
    from generate_series({first}, {last}) as n
    cross join lateral (values ('river'), ('t' || n)) as t (term);
"""


async def fill(database: Database, first: int, last: int) -> None:
    """Write records past the triggers, as only a superuser can."""
    superuser = await asyncpg.connect(database.superuser_url)
    await superuser.execute("set session_replication_role = replica")
    await superuser.execute(FILL.format(first=first, last=last))
    await superuser.execute("reset session_replication_role")
    await superuser.execute("vacuum memory.records, memory.record_subjects, memory.postings")
    await superuser.close()


async def pages_read(owner: asyncpg.Connection[Any]) -> dict[str, int]:
    """Return the buffers that the first page of each table reads."""
    read = {}
    for table in _TABLES:
        if table.name in ("records", "record_subjects", "postings"):
            statement = await owner.prepare(
                f"explain (analyze, buffers, format json) {table.first}"
            )
            plan = json.loads((await statement.fetch("acme", PAGE))[0][0])[0]["Plan"]
            read[table.name] = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return read


@pytest.mark.parametrize("mode", ["force_generic_plan", "auto"])
async def test_a_page_reads_as_much_of_a_large_tenant_as_of_a_small_one(
    database: Database, mode: str
) -> None:
    await fill(database, 1, 1_000)
    owner = await asyncpg.connect(database.owner_url)
    await owner.execute(f"set plan_cache_mode = {mode}")
    await owner.execute("set enable_seqscan = off; set enable_sort = off; set jit = off")
    await owner.execute("select set_config('app.current_tenant', 'acme', false)")
    small = await pages_read(owner)
    await fill(database, 1_001, 12_000)
    large = await pages_read(owner)
    await owner.close()
    for name, read in large.items():
        # An index of another level costs each of the page's probes one more.
        assert read <= small[name] + 8 * PAGE, name
