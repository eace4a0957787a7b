"""The large tables in partitions by hash of the tenant: what holds there, and what is closed."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

import memory
from memory import Memory, PostgresStore
from partitions import PARTITIONED, migrate_partitioned
from servers import Database, Postgres

PARTS = 2
TENANTS = ("shop", "clinic", "school", "bank")


@pytest.fixture(scope="module")
def partitioned(server: Postgres) -> Iterator[Database]:
    with server.empty() as database:
        migrate_partitioned(database.owner_url, PARTS)
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute("select memory.grant_app(%s)", [database.role("app")])
        yield database


async def told(database: Database) -> dict[str, UUID]:
    """Dana with a summary, and Bob, in tenants of several partitions; return Dana's records."""
    ids = {}
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        for tenant in TENANTS:
            dana = await service.remember(tenant, text="Dana moved", subject_keys="dana")
            await service.derive(tenant, kind="summary", text="Dana", sources=dana.record)
            await service.remember(tenant, text="Bob stays", subject_keys="bob")
            ids[tenant] = dana.record.record_id
    return ids


def rows(database: Database) -> list[tuple[str, str]]:
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        query = "select tenant_key, text from memory.records order by 1, 2"
        return superuser.execute(query).fetchall()


async def test_verify_install_says_of_closed_partitions_only_that_they_are_there(
    partitioned: Database,
) -> None:
    found = await memory.verify_install(partitioned.superuser_url)
    [wrong] = [row for row in found if row.ok is not True]
    assert wrong.property == "no_children"
    for name in PARTITIONED:
        assert wrong.detail.count(f"memory.{name}_p") == PARTS


async def test_a_forget_cascades_in_its_partition_and_leaves_the_others(
    partitioned: Database,
) -> None:
    await told(partitioned)
    with psycopg.connect(partitioned.superuser_url, autocommit=True) as superuser:
        query = "select count(distinct tableoid) from memory.records"
        assert superuser.execute(query).fetchone() != (1,)
    before = rows(partitioned)
    async with Memory(PostgresStore(partitioned.app_url), subject_pepper="pepper") as service:
        receipt = await service.forget("shop", subject_key="dana")
    assert (receipt.counts.memories, receipt.counts.derived) == (1, 1)
    gone = [("shop", "Dana"), ("shop", "Dana moved")]
    assert rows(partitioned) == [row for row in before if row not in gone]
    assert (await memory.check(partitioned.owner_url, subject_pepper="pepper")).faults == ()


async def test_a_raw_delete_over_partitions_cascades_and_leaves_tombstones(
    partitioned: Database,
) -> None:
    await told(partitioned)
    with psycopg.connect(partitioned.superuser_url, autocommit=True) as superuser:
        stones = superuser.execute("select count(*) from memory.tombstones").fetchone()
        superuser.execute("delete from memory.records where text = 'Dana moved'")
        assert {text for _, text in rows(partitioned)} == {"Bob stays"}
        left = superuser.execute("select count(*) from memory.tombstones").fetchone()
    assert stones is not None
    assert left == (stones[0] + len(TENANTS),)
    assert (await memory.check(partitioned.owner_url, subject_pepper="pepper")).faults == ()


async def test_a_partition_by_name_shows_and_changes_nothing(partitioned: Database) -> None:
    await told(partitioned)
    before = rows(partitioned)
    with psycopg.connect(partitioned.app_url, autocommit=True) as app:
        app.execute("select set_config('app.current_tenant', 'shop', false)")
        assert app.execute("select count(*) > 0 from memory.records").fetchone() == (True,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("select from memory.records_p0")
    with psycopg.connect(partitioned.owner_url, autocommit=True) as owner:
        owner.execute("select set_config('app.current_tenant', 'shop', false)")
        for part in range(PARTS):
            query = f"select count(*) from memory.records_p{part}"
            assert owner.execute(query).fetchone() == (0,)
    with psycopg.connect(partitioned.superuser_url, autocommit=True) as superuser:
        for part in [f"memory.{name}_p{n}" for name in PARTITIONED for n in range(PARTS)]:
            changes = (
                f"delete from {part}",
                f"update {part} set tenant_key = 'x'",
                f"truncate {part} cascade",
            )
            for change in changes:
                with pytest.raises(psycopg.DatabaseError) as refused:
                    superuser.execute(change)
                assert refused.value.sqlstate in ("ME007", "ME010")
    assert rows(partitioned) == before


async def test_provenance_is_demanded_in_a_partition(partitioned: Database) -> None:
    await told(partitioned)
    before = rows(partitioned)
    with psycopg.connect(partitioned.app_url, autocommit=True) as app:
        app.execute("select set_config('app.current_tenant', 'shop', false)")
        with pytest.raises(psycopg.DatabaseError) as refused:
            app.execute(
                "insert into memory.records (tenant_key, record_id, origin, text)"
                " values ('shop', gen_random_uuid(), 'derived', 'from nowhere')"
            )
        assert refused.value.sqlstate == "ME001"
    assert rows(partitioned) == before
