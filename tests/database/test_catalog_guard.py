"""A new column, key or table fails here until somebody says how it is erased."""

from __future__ import annotations

import pytest

from memory.maintenance.scrubbing.overwrite import FILLED
from memory.maintenance.scrubbing.relations import KEPT
from rawsql import Connection
from servers import Database

# Columns that could hold a person's words, keys or vectors, and what an erasure does to them.
ROW = "goes with its record"
LINK = "goes with its record's links"
DEBT = "goes when the index has confirmed"
HASH = "stays: a keyed hash, checked by a pattern"
CODE = "stays: one of a list, checked by a pattern"
TENANT = "stays: names the tenant and no person"
DIGEST = "stays: a digest over rows without content"
RULES = {
    "records": {
        "tenant_key": ROW,
        "origin": ROW,
        "kind": ROW,
        "text": ROW,
        "metadata": ROW,
        "redacted": ROW,
        "embedding": ROW,
        "embedding_model": ROW,
        "record_key": ROW,
    },
    "record_subjects": {"tenant_key": LINK, "subject_key": LINK, "subject_hash": LINK},
    "provenance": {"tenant_key": ROW},
    "postings": {"tenant_key": ROW, "term": ROW},
    "artefacts": {"tenant_key": ROW, "adapter": ROW, "artefact_id": ROW},
    "purges": {
        "tenant_key": DEBT,
        "adapter": DEBT,
        "artefact_id": DEBT,
        "subject_hashes": DEBT,
        "last_error": DEBT,
    },
    "purge_receipts": {"tenant_key": TENANT, "adapter": CODE},
    "subjects": {"tenant_key": TENANT, "subject_hash": HASH},
    "decisions": {
        "tenant_key": TENANT,
        "subject_hash": HASH,
        "action": CODE,
        "reason": CODE,
        "scope": CODE,
        "kinds": CODE,
    },
    "pending_evidence": {
        "tenant_key": TENANT,
        "xid": "stays until commit: the number of a transaction",
        "subject_hash": HASH,
        "reason": CODE,
        "scope": CODE,
    },
    "tombstones": {
        "tenant_key": TENANT,
        "subject_hash": HASH,
        "reason": CODE,
        "scope": CODE,
        "previous": DIGEST,
        "digest": DIGEST,
    },
    "chain_heads": {"tenant_key": TENANT, "digest": DIGEST},
    "tenants": {"tenant_key": TENANT},
    "tenant_counts": {"tenant_key": TENANT},
    "artefact_claims": {"artefact_hash": HASH, "claim_hash": HASH},
    "installation": {"pepper_check": DIGEST},
    "alembic_version": {"version_num": "stays: the schema's revision"},
}
# Types that cannot hold content: everything else must be named above.
PLAIN = "bool int2 int4 int8 uuid timestamptz"


async def content_columns(inspector: Connection) -> dict[str, set[str]]:
    rows = await inspector.fetch(
        "select c.relname, a.attname from pg_attribute as a"
        " join pg_class as c on c.oid = a.attrelid join pg_type as t on t.oid = a.atttypid"
        " where c.relnamespace = 'memory'::regnamespace and c.relkind in ('r', 'p', 'm', 'v', 'f')"
        " and a.attnum > 0 and not a.attisdropped and t.typname <> all ($1)",
        PLAIN.split(),
    )
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    return found


async def test_every_content_column_has_an_erasure_rule(inspector: Connection) -> None:
    assert await content_columns(inspector) == {
        table: set(columns) for table, columns in RULES.items()
    }


def test_what_is_erased_is_overwritten_by_a_scrub_and_only_evidence_is_passed_by() -> None:
    erased = {
        table for table, rules in RULES.items() if {ROW, LINK, DEBT}.intersection(rules.values())
    }
    assert erased == FILLED
    assert RULES.keys() - FILLED >= KEPT


@pytest.mark.parametrize(
    "change",
    [
        "alter table memory.records add column note text",
        "alter table memory.tombstones add column note varchar(10)",
        "alter table memory.purges add column body jsonb",
        "alter table memory.records add column extra bytea",
        "alter table memory.records add column tags int[]",
        "create table memory.cache (tenant_key text, body json)",
        "create view memory.shown as select text from memory.records",
        "create materialized view memory.copied as select text from memory.records",
    ],
)
async def test_a_new_column_of_content_would_be_noticed(
    connect, inspector: Connection, change: str
) -> None:
    owner = await connect("owner")
    before = await content_columns(inspector)
    transaction = owner.transaction()
    await transaction.start()
    await owner.execute(change)
    assert await content_columns(owner) != before
    await transaction.rollback()


async def test_columns_that_stay_after_an_erasure_are_checked_by_a_pattern(
    inspector: Connection,
) -> None:
    rows = await inspector.fetch(
        "select c.relname, a.attname from pg_constraint as k"
        " join pg_class as c on c.oid = k.conrelid"
        " join pg_attribute as a on a.attrelid = k.conrelid and a.attnum = any (k.conkey)"
        " where c.relnamespace = 'memory'::regnamespace and k.contype = 'c' and k.convalidated"
    )
    checked = {tuple(row) for row in rows}
    must = {
        (table, column)
        for table, columns in RULES.items()
        for column, rule in columns.items()
        if rule in (HASH, CODE, TENANT)
    }
    assert must - checked == set()


async def unindexed(inspector: Connection) -> list[str]:
    rows = await inspector.fetch(
        "select k.conname from pg_constraint as k join pg_class as c on c.oid = k.conrelid"
        " where c.relnamespace = 'memory'::regnamespace and k.contype = 'f' and not exists ("
        "  select from pg_index as i where i.indrelid = k.conrelid and i.indisvalid"
        "  and (i.indkey::int2[])[0:cardinality(k.conkey) - 1] = k.conkey)"
    )
    return [row["conname"] for row in rows]


async def test_every_foreign_key_has_a_leading_index(
    database: Database, superuser: Connection
) -> None:
    assert await unindexed(superuser) == []
    await superuser.execute("drop index memory.provenance_sources")
    assert await unindexed(superuser) == ["provenance_source"]


async def test_every_key_begins_with_the_tenant(inspector: Connection) -> None:
    rows = await inspector.fetch(
        "select c.relname, k.contype::text, a.attname from pg_constraint as k"
        " join pg_class as c on c.oid = k.conrelid"
        " join pg_attribute as a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]"
        " where c.relnamespace = 'memory'::regnamespace and k.contype in ('p', 'f', 'u')"
    )
    others = {row["relname"] for row in rows if row["attname"] != "tenant_key"}
    assert others == {"artefact_claims", "installation", "alembic_version"}


async def test_foreign_keys_are_deferred_and_delete_nothing(inspector: Connection) -> None:
    rows = await inspector.fetch(
        "select k.conname, k.condeferrable and k.condeferred and k.convalidated"
        " and k.confdeltype = 'a' and k.confupdtype = 'a' as sound from pg_constraint as k"
        " join pg_class as c on c.oid = k.conrelid"
        " where c.relnamespace = 'memory'::regnamespace and k.contype = 'f'"
    )
    assert {row["conname"]: row["sound"] for row in rows} == {
        "link_record": True,
        "provenance_derived": True,
        "provenance_source": True,
    }


async def test_keys_compare_by_bytes(inspector: Connection) -> None:
    """A libc upgrade that changes an order must not make an index, and so an erasure, miss rows."""
    rows = await inspector.fetch(
        "select distinct c.relname, a.attname from pg_index as i"
        " join pg_class as c on c.oid = i.indrelid, unnest(i.indkey::int2[]) as k (attnum)"
        " join pg_attribute as a on a.attnum = k.attnum"
        " join pg_collation as o on o.oid = a.attcollation"
        " where a.attrelid = i.indrelid and c.relnamespace = 'memory'::regnamespace"
        " and o.collname <> 'C'"
    )
    assert {tuple(row) for row in rows} <= {
        ("alembic_version", "version_num"),
        ("pending_evidence", "xid"),
        ("pending_evidence", "reason"),
        ("pending_evidence", "scope"),
    }


async def test_what_refuses_or_erases_fires_whatever_the_session_says(
    inspector: Connection,
) -> None:
    """What completes an insert does not: a replica is sent its rows."""
    rows = await inspector.fetch(
        "select c.relname, t.tgname from pg_trigger as t join pg_class as c on c.oid = t.tgrelid"
        " where c.relnamespace = 'memory'::regnamespace and not t.tgisinternal"
        " and t.tgenabled = 'A' and t.tgname <> 'no_truncate'"
    )
    assert {tuple(row) for row in rows} == {
        ("records", "erase"),
        ("records", "identity_fixed"),
        ("records", "hold_kept"),
        ("record_subjects", "link_fixed"),
        ("record_subjects", "link_kept"),
        ("provenance", "edge_fixed"),
        ("provenance", "edge_kept"),
        ("artefacts", "artefact_fixed"),
        ("artefacts", "unclaim"),
        ("subjects", "decision_kept"),
        ("subjects", "decision_stays"),
        ("subjects", "subject_fixed"),
        ("pending_evidence", "seal"),
        ("pending_evidence", "immutable"),
        ("tombstones", "immutable"),
        ("decisions", "immutable"),
        ("purge_receipts", "immutable"),
    }
    rows = await inspector.fetch(
        "select tgrelid::regclass::text as name from pg_trigger"
        " where tgname = 'no_truncate' and tgenabled = 'A'"
    )
    assert {row["name"].removeprefix("memory.") for row in rows} == set(RULES) - {"alembic_version"}
