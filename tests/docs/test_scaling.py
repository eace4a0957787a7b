"""The page on scaling: its figures are those of the script, its refusals were tried."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from types import ModuleType

import psycopg
import pytest

import memory
from memory import Memory, PostgresStore
from pages import ROOT, Page, names_for, run_page
from servers import Database

PAGE = Page(ROOT / "docs" / "scaling.md")
COLUMNS = ("no words", "20 words", "20 words, 384 values")


def figures() -> dict[str, dict[str, int]]:
    """Return the first table of the page: by load, by row."""
    rows = re.findall(r"^\| (.+?) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE.text, re.MULTILINE)
    return {
        load: {row[0]: int(row[n + 1].replace(",", "")) for row in rows}
        for n, load in enumerate(COLUMNS)
    }


@pytest.fixture(scope="module")
def sizes() -> ModuleType:
    """The script, which only pytest's own path would not find."""
    file = ROOT / "tests" / "benchmarks" / "sizes.py"
    spec = importlib.util.spec_from_file_location("sizes", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("load", COLUMNS)
async def test_the_bytes_of_the_page_are_measured(sizes: ModuleType, load: str) -> None:
    found = await sizes.measure(2_000, people=100, **sizes.LOADS[load])
    shown = figures()[load]
    for row in ("records", "record_subjects", "postings", "postings_pkey", "total", "hnsw"):
        # So few records share the pages that each table has at the least.
        spare = 250 if row == "total" else 5
        assert found.get(row, 0) == pytest.approx(shown[row], rel=0.25, abs=spare), row


def test_the_rule_of_thumb_gives_the_totals_of_the_table() -> None:
    base, word, _, value = (
        float(number)
        for number in re.findall(
            r"\*\*(\d+), and (\d+) for each distinct word, (\d+) for each further\s+person,"
            r" ([\d.]+) for",
            PAGE.text,
        )[0]
    )
    shown = figures()
    assert base == shown["no words"]["total"]
    assert base + 20 * word == pytest.approx(shown["20 words"]["total"], rel=0.02)
    with_vector = base + 20 * word + 384 * value
    assert with_vector == pytest.approx(shown["20 words, 384 values"]["total"], rel=0.02)


def test_the_settings_of_the_page_weaken_nothing(database: Database) -> None:
    before = asyncio.run(memory.verify_install(database.superuser_url))
    run_page(PAGE, database, names_for(database))
    assert asyncio.run(memory.verify_install(database.superuser_url)) == before


PARTITIONED = """
    create schema tried;
    create table tried.records (tenant_key text, id int, primary key (tenant_key, id))
    partition by hash (tenant_key);
    create table tried.gone (id int);
    create function tried.note() returns trigger language plpgsql as $$
    begin
        insert into tried.gone select old_rows.id from old_rows;
        return null;
    end $$;
    create trigger note after delete on tried.records referencing old table as old_rows
    for each statement execute function tried.note();
    create function tried.refuse() returns trigger language plpgsql as $$
    begin
        raise exception 'refused';
    end $$;
    create trigger no_truncate before truncate on tried.records
    for each statement execute function tried.refuse();
    alter table tried.records enable row level security;
    alter table tried.records force row level security;
    create policy tenant on tried.records
    using (tenant_key = current_setting('app.current_tenant', true));
    create table tried.part partition of tried.records for values with (modulus 1, remainder 0);
    grant usage on schema tried to {app};
    grant select, delete, truncate on tried.records, tried.part to {app};
    grant insert, select on tried.gone to {app};
    insert into tried.records select 'shop', n from generate_series(1, 3) as n;
"""


def test_a_partition_has_neither_the_policies_nor_the_triggers_of_its_parent(
    database: Database,
) -> None:
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        superuser.execute(PARTITIONED.format(app=database.role("app")))
    with psycopg.connect(database.app_url, autocommit=True) as app:
        assert app.execute("select count(*) from tried.records").fetchone() == (0,)
        assert app.execute("select count(*) from tried.part").fetchone() == (3,)
        app.execute("delete from tried.part where id = 1")
        assert app.execute("select count(*) from tried.gone").fetchone() == (0,)
        with pytest.raises(psycopg.errors.RaiseException):
            app.execute("truncate tried.records")
        app.execute("truncate tried.part")
        assert app.execute("select count(*) from tried.part").fetchone() == (0,)
        app.execute("select set_config('app.current_tenant', 'shop', false)")
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        superuser.execute("insert into tried.records values ('shop', 4)")
    with psycopg.connect(database.app_url, autocommit=True) as app:
        app.execute("select set_config('app.current_tenant', 'shop', false)")
        app.execute("delete from tried.records where id = 4")
        assert app.execute("select id from tried.gone").fetchall() == [(4,)]


async def test_reading_works_where_nothing_can_be_written(database: Database) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        await service.remember("shop", text="Dana moved", subject_keys="dana")
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        superuser.execute(f"alter database {database.name} set default_transaction_read_only = on")
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as replica:
        assert (await replica.recall("shop", text="moved")).hits
        assert (await replica.forget("shop", subject_key="dana", dry_run=True)).counts.records == 1
        with pytest.raises(memory.InstallError):
            await replica.forget("shop", subject_key="dana")
