"""Statistics are a copy of the data that DELETE does not reach: none are kept of content."""

from __future__ import annotations

import pytest

from rawsql import (
    Connection,
    acting,
    derive,
    forget,
    hash_of,
    link,
    register,
    remember,
)
from servers import Database

CONTENT = {
    "records": {"tenant_key", "text", "metadata", "redacted", "embedding", "record_key"},
    "record_subjects": {"tenant_key", "subject_key", "subject_hash"},
    "subjects": {"tenant_key", "subject_hash"},
    "provenance": {"tenant_key"},
    "postings": {"tenant_key", "term"},
    "tenants": {"tenant_key"},
    "tenant_counts": {"tenant_key"},
    "pending_evidence": {"tenant_key", "subject_hash"},
    "tombstones": {"tenant_key", "subject_hash"},
    "chain_heads": {"tenant_key"},
    "decisions": {"tenant_key", "subject_hash"},
    "artefacts": {"tenant_key", "artefact_id"},
    "purges": {"tenant_key", "artefact_id", "subject_hashes"},
    "purge_receipts": {"tenant_key"},
}


async def fill(connection: Connection, tenant: str) -> None:
    """Rows enough for histograms and most common values, in each table with content."""
    async with acting(connection, tenant):
        gone = await remember(connection, tenant, "ann", "bob")
        await register(connection, tenant, "vector-gone", gone)
        await forget(connection, tenant, "ann")
        root = await remember(connection, tenant, "secret-person")
        await register(connection, tenant, "secret-artefact", root)
        await connection.execute(
            "insert into memory.records (tenant_key, record_id, text, metadata, redacted,"
            " embedding, record_key) select $1, gen_random_uuid(), 'secret-text-' || n / 2,"
            " jsonb_build_object('secret-name', n / 2), array['secret-path'],"
            " array[n / 2, 4711.25]::real[] , 'secret-key-' || n"
            " from generate_series(1, 500) as n",
            tenant,
        )
        await connection.execute(
            "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
            " select $1, r.record_id, 'secret-person', $2 from memory.records as r"
            " where r.tenant_key = $1 on conflict do nothing",
            tenant,
            hash_of(tenant, "secret-person"),
        )
        await connection.execute(
            "insert into memory.postings (tenant_key, term, record_id)"
            " select $1, 'secret-term-' || n, $2 from generate_series(1, 500) as n",
            tenant,
            root,
        )
        digest = await derive(connection, tenant, root)
        await link(connection, tenant, digest, "another")
        await connection.execute(
            "insert into memory.decisions (tenant_key, subject_hash, action)"
            " select $1, $2, 'hold' from generate_series(1, 20)",
            tenant,
            hash_of(tenant, "secret-person"),
        )
        await connection.execute(
            "insert into memory.purge_receipts (tenant_key, adapter, erasure_id, artefacts)"
            " select $1, 'index', gen_random_uuid(), 1 from generate_series(1, 20)",
            tenant,
        )


async def test_analyze_keeps_nothing_of_a_content_column(
    database: Database, superuser: Connection
) -> None:
    await fill(superuser, "secret-tenant")
    await superuser.execute("analyze")
    rows = await superuser.fetch(
        "select c.relname, a.attname from pg_statistic as s"
        " join pg_class as c on c.oid = s.starelid"
        " join pg_attribute as a on a.attrelid = s.starelid and a.attnum = s.staattnum"
        " where c.relnamespace = 'memory'::regnamespace"
    )
    kept = {tuple(row) for row in rows}
    assert kept.isdisjoint((table, name) for table, names in CONTENT.items() for name in names)
    # The neighbour: statistics are gathered at all, of columns that hold no content.
    assert {("records", "occurred_at"), ("records", "kind"), ("postings", "record_id")} <= kept
    whole = await superuser.fetchval(
        "select string_agg(s::text, ' ') from pg_statistic as s"
        " join pg_class as c on c.oid = s.starelid where c.relnamespace = 'memory'::regnamespace"
    )
    assert "secret" not in whole
    assert "4711.25" not in whole
    assert hash_of("secret-tenant", "secret-person") not in whole


async def test_statistics_would_show_it_without_the_target(
    database: Database, superuser: Connection
) -> None:
    """The control: what the test above looks for is found where the target is not 0."""
    await fill(superuser, "secret-tenant")
    await superuser.execute("alter table memory.records alter column text set statistics -1")
    await superuser.execute("analyze memory.records")
    shown = await superuser.fetchval(
        "select string_agg(s::text, ' ') from pg_statistic as s"
        " where s.starelid = 'memory.records'::regclass"
    )
    assert "secret-text" in shown
    assert "secret-key" not in shown


@pytest.mark.parametrize("table", CONTENT)
async def test_the_target_of_each_content_column_is_nought(
    inspector: Connection, table: str
) -> None:
    rows = await inspector.fetch(
        "select attname from pg_attribute where attrelid = $1::text::regclass and attnum > 0"
        " and attstattarget = 0",
        f"memory.{table}",
    )
    assert {row["attname"] for row in rows} == CONTENT[table]


async def test_no_index_expression_and_no_extended_statistics_touch_content(
    inspector: Connection,
) -> None:
    assert (
        await inspector.fetch(
            "select i.indexrelid from pg_index as i join pg_class as c on c.oid = i.indrelid"
            " where c.relnamespace = 'memory'::regnamespace and i.indexprs is not null"
        )
        == []
    )
    assert (
        await inspector.fetch(
            "select stxname from pg_statistic_ext as s join pg_class as c on c.oid = s.stxrelid"
            " where c.relnamespace = 'memory'::regnamespace"
        )
        == []
    )
