"""A person about whom everything is: no page of theirs may read all that is theirs for each row."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import pytest

from memory.maintenance.checks.rows import _TABLES
from memory.maintenance.debts import _OF_ERASURE
from memory.maintenance.due import _WALK
from memory.repositories.exports import _DEBTS, _PURGES, _RECORDS
from memory.repositories.graphs import _NODES
from memory.repositories.purges import _OWING
from plans import MODES, explained
from rawsql import Connection
from servers import Database, Postgres

MANY = 20_000
PAGE = 100
# A row of a page costs some probes of three or four pages each; all that is Ann's takes thousands.
MOST_A_ROW = 45

ROWS = f"""
    create temporary table told as
    select gen_random_uuid() as told, gen_random_uuid() as made, n
    from generate_series(1, {MANY}) as n;
    insert into memory.records (tenant_key, record_id, origin, text, term_count)
    select 'acme', told, 'remembered', 'tea', 1 from told
    union all select 'acme', made, 'derived', 'tea', 1 from told;
    insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash, inherited)
    select 'acme', told, 'ann', repeat('a', 64), false from told
    union all select 'acme', made, 'ann', repeat('a', 64), true from told;
    insert into memory.provenance (tenant_key, derived_id, source_id)
    select 'acme', made, told from told;
    insert into memory.artefacts (tenant_key, adapter, artefact_id, record_id)
    select 'acme', 'index', n::text, told from told;
    insert into memory.postings (tenant_key, term, record_id, term_count)
    select 'acme', 'tea', told, 1 from told union all select 'acme', 'tea', made, 1 from told;
    insert into memory.tenants (tenant_key) values ('acme');
    insert into memory.subjects (tenant_key, subject_hash) values ('acme', repeat('a', 64));
    insert into memory.purges (tenant_key, adapter, artefact_id, erasure_id, subject_hashes)
    select 'acme', 'index', 'gone' || n, gen_random_uuid(), array[repeat('a', 64)] from told;
"""


@pytest.fixture(scope="module")
def filled(server: Postgres) -> Iterator[Database]:
    with server.migrated() as database:
        with psycopg.connect(database.superuser_url) as superuser:
            superuser.execute("set session_replication_role = replica")
            superuser.execute(ROWS)
        yield database


@pytest.fixture
async def owner_role(filled: Database) -> AsyncIterator[Connection]:
    """As the maintenance runs, with the settings of an engine of our own."""
    connection = await asyncpg.connect(filled.owner_url)
    await connection.execute("set enable_seqscan = off; set enable_sort = off; set jit = off")
    yield connection
    await connection.close()


async def page(connection: Connection) -> list[UUID]:
    async with connection.transaction():
        await connection.execute("set local app.current_tenant = 'acme'")
        rows = await connection.fetch(f"select record_id from memory.records limit {PAGE}")
    return [row["record_id"] for row in rows]


def buffers(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.mark.parametrize("mode", MODES)
async def test_a_page_of_an_export_or_a_lineage_reads_its_own_rows_only(
    owner_role: Connection, mode: str
) -> None:
    ids = await page(owner_role)
    for statement, values in (
        (_RECORDS, ["acme", ids, PAGE, "ann", True]),
        (_NODES, ["acme", ids, PAGE]),
    ):
        assert buffers(await explained(owner_role, statement, values, mode)) < PAGE * MOST_A_ROW


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("table", _TABLES, ids=lambda table: table.name)
async def test_a_page_of_a_check_reads_its_own_rows_only(
    owner_role: Connection, table: Any, mode: str
) -> None:
    types = {"uuid": UUID(int=0), "text": "0"}
    after = [types[of] for of in table.key.values()]
    for statement, values in (
        (table.first, ["acme", PAGE]),
        (table.next, ["acme", PAGE, *after]),
    ):
        plan = await explained(
            owner_role, statement, values, mode, before="set local app.current_tenant = 'acme'"
        )
        assert buffers(plan) < PAGE * MOST_A_ROW


@pytest.mark.parametrize("mode", MODES)
async def test_a_person_of_many_records_is_one_step_of_the_walk(
    owner_role: Connection, mode: str
) -> None:
    plan = await explained(
        owner_role, _WALK, ["acme", "", 1_000], mode, before="set local app.current_tenant = 'acme'"
    )
    assert buffers(plan) < 200


@pytest.mark.parametrize("mode", MODES)
async def test_the_purges_of_a_timeline_read_those_of_its_erasures_only(
    owner_role: Connection, mode: str
) -> None:
    async with owner_role.transaction():
        await owner_role.execute("set local app.current_tenant = 'acme'")
        rows = await owner_role.fetch("select erasure_id from memory.purges limit 10")
    values = ["acme", [row["erasure_id"] for row in rows]]
    assert buffers(await explained(owner_role, _PURGES, values, mode)) < 10 * MOST_A_ROW


@pytest.mark.parametrize("mode", MODES)
async def test_who_owes_something_about_a_person_is_read_page_by_page(
    owner_role: Connection, mode: str
) -> None:
    tenant = "set local app.current_tenant = 'acme'"
    as_forget = f"{tenant}; set local enable_bitmapscan = off"
    for statement, values, before in (
        (_OWING, ["acme", ["a" * 64]], ""),
        (_DEBTS, ["acme", "a" * 64, []], ""),
        (_OF_ERASURE, ["acme", UUID(int=0), ["a" * 64]], tenant),
        ("select memory.owing($1, $2)", ["acme", ["a" * 64]], as_forget),
    ):
        plan = await explained(owner_role, statement, values, mode, before=before)
        assert buffers(plan) < MANY / 10
