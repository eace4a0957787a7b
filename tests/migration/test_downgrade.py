"""Evidence of erasures outlives a downgrade that somebody runs in a hurry."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from servers import Database

ERASE = """
    begin;
    select set_config('app.current_tenant', 'acme', true);
    insert into memory.records (tenant_key, record_id, text)
        values ('acme', '00000000-0000-4000-8000-000000000001', 'likes window seats');
    insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
        values ('acme', '00000000-0000-4000-8000-000000000001', 'dana', repeat('a', 64));
    commit;
    begin;
    select set_config('app.current_tenant', 'acme', true);
    delete from memory.records;
    commit;
"""
COUNT = "select count(*) from memory.tombstones"


def count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(COUNT).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("target", ["base", "memory_0001"])
def test_a_downgrade_that_would_destroy_tombstones_changes_nothing(
    database: Database,
    target: str,
    psql: Callable[[str, str], None],
    read_catalog: Callable[[Database], str],
) -> None:
    psql(database.app_url, ERASE)
    before = read_catalog(database)
    assert count(database.superuser_url) == 1
    # Under FORCE row level security the owner does not even see it.
    assert count(database.owner_url) == 0

    with pytest.raises(AssertionError, match="tombstones"):
        database.alembic("downgrade", target)

    assert count(database.superuser_url) == 1
    assert read_catalog(database) == before
    assert "(head)" in database.alembic("current")


def test_without_tombstones_the_same_downgrade_is_allowed(database: Database) -> None:
    assert count(database.superuser_url) == 0
    database.alembic("downgrade", "base")
    assert database.alembic("current") == ""
