"""The permissions page: its blocks make the roles, which can do their work and nothing else.

After a deliberate change: MEMORY_REGENERATE_GOLDEN=1 python -m pytest tests/docs
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg
import pytest
from sqlalchemy import make_url

import inventory
import memory
from memory import InstallError, LegalHoldError, Memory, PostgresStore
from pages import ROOT, Page
from servers import embedded_postgres

PAGE = Page(ROOT / "docs" / "permissions.md")
ROLES = ("memory_owner", "memory_app", "memory_operator", "memory_auditor", "memory_backup")


@dataclass(frozen=True, kw_only=True)
class Site:
    """A server whose roles were made by the blocks of the page."""

    superuser_url: str

    def url(self, role: str, database: str = "agents") -> str:
        return make_url(self.superuser_url).set(username=role, database=database).render_as_string()

    def connect(self, role: str, database: str = "agents") -> psycopg.Connection:
        return psycopg.connect(self.url(role, database), autocommit=True)


def run(session: psycopg.Connection, *words: str) -> None:
    for statement in PAGE.sql(*words):
        session.execute(statement)


@pytest.fixture(scope="module")
def empty() -> Iterator[Site]:
    """A server with the roles and the database of the page and nothing in it."""
    with embedded_postgres(18) as server:
        site = Site(superuser_url=server.url("superuser", "postgres"))
        with site.connect("postgres", "postgres") as superuser:
            # The embedded server brings roles of these names along.
            for name in ("memory_owner", "memory_app", "memory_operator"):
                superuser.execute(f"alter role {name} rename to embedded_{name}")
            run(superuser, "create database agents")
            run(superuser, "revoke connect")
            run(superuser, "create role memory_backup")
        with site.connect("postgres") as superuser:
            run(superuser, "create extension")
        yield site


@pytest.fixture(scope="module")
def locks(empty: Site) -> str:
    """What the revisions lock, measured by applying them one by one."""
    return inventory.locks(empty.url("memory_owner"))


@pytest.fixture(scope="module")
def site(empty: Site, locks: str) -> Site:
    """The migrated database, with the grants of the page made."""
    with empty.connect("memory_owner") as owner:
        run(owner, "grant_app", "grant_operator", "grant_auditor")
    return empty


def service(site: Site, role: str) -> Memory:
    return Memory(PostgresStore(site.url(role)), subject_pepper="pepper")


def test_what_the_page_lists_is_what_is_installed(site: Site, locks: str) -> None:
    kinds = {
        "the application, the operator": "memory_app",
        "the operator": "memory_operator",
        "the auditor": "memory_auditor",
    }
    with site.connect("postgres") as superuser:
        generated = {
            "grants": inventory.grants(superuser, "memory_app", "memory_app"),
            "locks": locks,
            "tables": inventory.tables(superuser, "memory_app"),
            "functions": inventory.functions(superuser, kinds),
            "rest": inventory.rest(superuser),
        }
    written = PAGE.text
    expected = written
    for name, content in generated.items():
        begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
        place = re.compile(f"{begin}.*?{end}", re.DOTALL)
        assert len(place.findall(written)) == 1, name
        filled = f"{begin}{content}\n{end}"
        expected = place.sub(lambda _, filled=filled: filled, expected)
    if "MEMORY_REGENERATE_GOLDEN" in os.environ:
        PAGE.path.write_text(expected, encoding="utf-8")
    assert written == expected, "MEMORY_REGENERATE_GOLDEN=1 writes the page anew"


def test_the_grants_of_the_page_are_those_of_the_function(site: Site) -> None:
    script = PAGE.sql("grant execute on function", "memory.forget")
    with site.connect("postgres") as superuser, site.connect("memory_owner") as owner:
        superuser.execute("create role memory_twin")
        for statement in script:
            owner.execute(statement.replace("memory_app", "memory_twin"))
        assert inventory.grants(owner, "memory_twin", "x") == inventory.grants(
            owner, "memory_app", "x"
        )
        superuser.execute("drop owned by memory_twin")
        superuser.execute("drop role memory_twin")


async def test_a_role_that_may_not_connect_is_told_which_grant_lacks(site: Site) -> None:
    with site.connect("postgres") as superuser:
        superuser.execute("create role memory_stranger login")
        async with service(site, "memory_stranger") as stranger:
            [problem] = (await stranger.ready()).problems
        superuser.execute("drop role memory_stranger")
    assert "grant connect on the database" in problem
    async with service(site, "memory_app") as known:
        assert (await known.ready()).ready


async def test_the_application_that_checks_is_told_whose_url_it_takes(site: Site) -> None:
    with pytest.raises(memory.InstallError, match="owner's URL"):
        await memory.check(site.url("memory_app"))
    assert (await memory.check(site.url("memory_owner"))).ok


class Index:
    """An external index that purges whatever it is asked to."""

    name = "vectors"

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        return len(artefact_ids)


@pytest.mark.parametrize("role", ["memory_app", "memory_operator"])
async def test_application_and_operator_live_a_whole_life(site: Site, role: str) -> None:
    store = PostgresStore(site.url(role))
    async with Memory(store, subject_pepper="pepper", indexes=[Index()]) as acting:
        assert (await acting.ready()).problems == ()
        await acting.remember("shop", text="Li likes tea", subject_keys="li")
        told = await acting.remember("shop", text="Dana moved", subject_keys="dana")
        new = await acting.supersede(
            "shop", record_id=told.record.record_id, text="Dana moved to Pune"
        )
        await acting.relate("shop", record_id=new.record.record_id, subject_keys="company:acme")
        await acting.derive("shop", kind="summary", text="Dana has moved", sources=new.record)
        await acting.register_artefact(
            "shop", adapter="vectors", artefact_id=f"{role}-1", sources=new.record
        )
        assert len((await acting.recall("shop", text="moved", subject_keys="dana")).hits) == 2
        assert [entry async for entry in acting.export("shop", subject_key="dana")]
        planned = await acting.forget("shop", subject_key="dana", dry_run=True)
        done = await acting.forget("shop", subject_key="dana", expect=planned.closure)
        assert (done.counts.memories, done.counts.derived, done.complete) == (2, 1, True)
        assert (await acting.erasure_history("shop"))[0].erasure_id == done.erasure_id
        assert (await acting.recall("shop", text="tea")).hits
        await acting.forget("shop", subject_key="li")


async def test_the_operator_lifts_the_hold_that_the_application_set(site: Site) -> None:
    async with service(site, "memory_app") as app, service(site, "memory_operator") as operator:
        await app.remember("held", text="Dana moved", subject_keys="dana")
        await app.hold("held", subject_key="dana")
        with pytest.raises(LegalHoldError):
            await app.forget("held", subject_key="dana", block_future=True)
        for lifting in (app.release, app.readmit):
            with pytest.raises(InstallError):
                await lifting("held", subject_key="dana")
        [receipt] = (await operator.release("held", subject_key="dana")).receipts
        assert (receipt.counts.memories, receipt.complete) == (1, True)
        await operator.readmit("held", subject_key="dana")
        await app.remember("held", text="Dana is back", subject_keys="dana")
        assert (await app.forget_tenant("held", confirm="held")).counts.memories == 1


async def test_the_owner_checks_and_exports_and_the_auditor_verifies(site: Site) -> None:
    async with service(site, "memory_app") as app:
        await app.forget("audited", subject_key="dana")
    report = await memory.check(site.url("memory_owner"), subject_pepper="pepper")
    assert (report.ok, report.tenants >= 1) == (True, True)
    lines = [line async for line in memory.export_tombstones(site.url("memory_owner"))]
    assert any("audited" in line for line in lines)
    unread = {}
    for role in ("memory_owner", "memory_auditor"):
        checks = await memory.verify_install(site.url(role))
        assert [check.property for check in checks if check.ok is False] == []
        unread[role] = {check.property for check in checks if check.ok is None}
    assert unread == {
        "memory_owner": {"no_statistics_of_content"},
        "memory_auditor": {"no_statistics_of_content", "installation_recorded", "revision"},
    }


FORBIDDEN = {
    "memory_app": (
        "select from memory.subjects",
        "select from memory.tenants",
        "update memory.records set held = false",
        "delete from memory.record_subjects",
        "delete from memory.tombstones",
        "insert into memory.purge_receipts (tenant_key) values ('shop')",
        "truncate memory.records",
        "alter table memory.records disable trigger all",
        "create table memory.copies ()",
        "select memory.grant_app('memory_auditor')",
        "select memory.delete_records('shop', '{}')",
        "select * from memory.release('shop', 'dana')",
        "select * from memory.readmit('shop', 'dana')",
        "select * from memory.verify_install()",
        "set role memory_owner",
        "set session_replication_role = replica",
    ),
    "memory_operator": (
        "update memory.subjects set held = false",
        "alter table memory.records no force row level security",
        "select * from memory.verify_install()",
        "set role memory_owner",
    ),
    "memory_auditor": (
        "select from memory.records",
        "select from memory.tombstones",
        "select * from memory.forget(tenant => 'shop', person => 'dana')",
        "select memory.revision()",
    ),
}


@pytest.mark.parametrize("role", FORBIDDEN)
def test_no_role_has_what_it_must_not_have(site: Site, role: str) -> None:
    with site.connect(role) as session:
        session.execute("select set_config('app.current_tenant', 'shop', false)")
        for statement in FORBIDDEN[role]:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(statement)


def test_no_role_of_the_page_is_more_than_it_says(site: Site) -> None:
    query = """
        select rolname, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls
        from pg_roles where rolname = any(%s)
    """
    members = """
        select m.member::regrole::text, m.roleid::regrole::text from pg_auth_members as m
        where m.member::regrole::text = any(%s) or m.roleid::regrole::text = any(%s)
    """
    with site.connect("postgres") as superuser:
        attributes = {row[0]: row[1:] for row in superuser.execute(query, [list(ROLES)])}
        memberships = superuser.execute(members, [list(ROLES), list(ROLES)]).fetchall()
    nothing = (False, False, False, False, False)
    expected = dict.fromkeys(ROLES, nothing) | {"memory_backup": (*nothing[:4], True)}
    assert attributes == expected
    assert memberships == [("memory_backup", "pg_read_all_data")]
