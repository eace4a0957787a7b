"""The threat model: the tests that it names exist, and its limits are as it says."""

from __future__ import annotations

import re

import psycopg
import pytest

import memory
from memory import Memory, PostgresStore
from pages import ROOT, Page
from servers import Database

PAGE = Page(ROOT / "docs" / "threat-model.md")


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.text)
    assert len(named) > 30
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE)
    ]
    assert missing == []


@pytest.fixture
async def told(database: Database) -> Database:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        for tenant in ("shop", "bank"):
            told = await service.remember(tenant, text=f"of {tenant}", subject_keys="dana")
            await service.register_artefact(
                tenant, adapter="vectors", artefact_id=tenant, sources=told
            )
    return database


def test_who_may_run_any_sql_reads_every_tenant_they_name(told: Database) -> None:
    texts = "select text from memory.records"
    with psycopg.connect(told.app_url, autocommit=True) as injected:
        assert injected.execute(texts).fetchall() == []
        for tenant in ("shop", "bank"):
            injected.execute("select set_config('app.current_tenant', %s, false)", [tenant])
            assert injected.execute(texts).fetchall() == [(f"of {tenant}",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            injected.execute("select from memory.tenants")


async def test_a_debt_can_be_settled_by_who_may_run_any_sql(told: Database) -> None:
    async with Memory(PostgresStore(told.app_url), subject_pepper="pepper") as service:
        with pytest.raises(memory.PartialErasureError) as stopped:
            await service.forget("shop", subject_key="dana")
        with psycopg.connect(told.app_url, autocommit=True) as injected:
            injected.execute("select set_config('app.current_tenant', 'shop', false)")
            injected.execute(
                "select memory.settle_purges('shop', 'vectors', array['shop'], array[%s])",
                [stopped.value.receipt.erasure_id],
            )
        # It can do that; it cannot hide that somebody did.
        assert (await service.purge_outstanding("shop")).outstanding == ()
        with psycopg.connect(told.superuser_url) as superuser:
            receipts = "select tenant_key, artefacts from memory.purge_receipts"
            assert superuser.execute(receipts).fetchall() == [("shop", 1)]


async def test_the_owner_can_switch_a_rule_off_and_verification_sees_it(told: Database) -> None:
    async def broken() -> set[str]:
        return {c.property for c in await memory.verify_install(told.owner_url) if c.ok is False}

    before = await broken()
    with psycopg.connect(told.owner_url, autocommit=True) as owner:
        with pytest.raises(psycopg.DatabaseError, match="never changed"):
            owner.execute("delete from memory.tombstones")
        owner.execute("alter table memory.records disable trigger erase")
        assert await broken() > before
        owner.execute("alter table memory.records enable always trigger erase")
    assert await broken() == before
