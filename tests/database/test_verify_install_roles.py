"""verify_install for each kind of role and on each server, and its Python face."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

import memory
from memory.engines import open_engine
from memory.errors import InstallError, InvalidInputError, StoreUnavailableError
from servers import Database, Postgres

VERIFY = "select property, ok from memory.verify_install()"
# What only a superuser may read.
UNREADABLE = {"no_statistics_of_content"}


@contextlib.contextmanager
def sound(server: Postgres) -> Iterator[Database]:
    """An installation with nothing wrong: the role that bypasses policies may not use it."""
    with server.migrated() as database:
        with psycopg.connect(database.superuser_url) as superuser:
            superuser.execute(f"drop owned by {database.role('bypass')}")
        yield database


@pytest.fixture
def install(server: Postgres) -> Iterator[Database]:
    with sound(server) as database:
        yield database


def verified(url: str) -> dict[str, bool | None]:
    with psycopg.connect(url) as connection:
        connection.execute("set transaction read only")
        rows: list[tuple[Any, ...]] = connection.execute(VERIFY).fetchall()
    return dict(rows)


def value(connection: psycopg.Connection[Any], query: str) -> str:
    row = connection.execute(query).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize("version", ["18", "16", "15"])
def test_a_fresh_installation_is_sound_on_every_server(
    request: pytest.FixtureRequest, version: str
) -> None:
    fixture = {"18": "server", "16": "postgres16", "15": "postgres15"}[version]
    with sound(request.getfixturevalue(fixture)) as database:
        by_superuser = verified(database.superuser_url)
        by_owner = verified(database.owner_url)
    assert len(by_superuser) >= 40
    assert {name for name, ok in by_superuser.items() if ok is not True} == set()
    assert {name for name, ok in by_owner.items() if ok is None} == UNREADABLE
    assert {name for name, ok in by_owner.items() if ok is False} == set()


def test_the_owner_sees_damage_too(install: Database) -> None:
    with psycopg.connect(install.owner_url) as owner:
        owner.execute("alter table memory.records disable trigger erase")
        owner.execute("create policy open on memory.records using (true)")
    found = verified(install.owner_url)
    assert {name for name, ok in found.items() if ok is False} == {
        "triggers_enabled",
        "no_unknown_policies",
    }


def test_the_application_may_not_ask(install: Database) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        verified(install.app_url)


def test_an_auditor_may_ask_and_read_nothing_else(install: Database) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        verified(install.host_url)
    with psycopg.connect(install.owner_url) as owner:
        owner.execute("select memory.grant_auditor(%s)", [install.role("host")])
    found = verified(install.host_url)
    assert {name for name, ok in found.items() if ok is None} == {
        *UNREADABLE,
        "installation_recorded",
        "revision",
    }
    assert False not in found.values()
    with (
        psycopg.connect(install.host_url) as auditor,
        pytest.raises(errors.InsufficientPrivilege),
    ):
        auditor.execute("select from memory.records")


def test_the_answer_does_not_depend_on_settings_of_the_session(install: Database) -> None:
    with psycopg.connect(install.superuser_url) as superuser:
        superuser.execute("create schema shadow")
        superuser.execute("create view shadow.pg_class as select from pg_catalog.pg_proc")
        superuser.execute("set search_path = shadow, pg_catalog")
        superuser.execute("set quote_all_identifiers = on")
        superuser.execute("set row_security = off")
        found = dict(superuser.execute(VERIFY).fetchall())
    assert {name for name, ok in found.items() if ok is not True} == set()


def test_a_pepper_once_recorded_is_told_and_not_shown(install: Database) -> None:
    detail = "select detail from memory.verify_install() where property = 'installation_recorded'"
    with psycopg.connect(install.owner_url) as owner:
        assert value(owner, detail) == "no pepper recorded yet"
        owner.execute("select memory.claim_installation(repeat('a', 64))")
        assert value(owner, detail) == "a pepper is recorded"


async def test_python_returns_the_same_rows_and_compares_the_source(install: Database) -> None:
    by_sql = verified(install.superuser_url)
    checks = await memory.verify_install(install.superuser_url)
    assert [check.property for check in checks] == sorted(check.property for check in checks)
    found = {check.property: check.ok for check in checks}
    assert found == {**by_sql, "functions_as_packaged": True}


async def test_python_takes_an_engine_and_leaves_it_open(install: Database) -> None:
    engine = open_engine(install.owner_url)
    try:
        first = await memory.verify_install(engine)
        assert await memory.verify_install(engine) == first
    finally:
        await engine.dispose()
    assert {check.property for check in first if check.ok is None} == UNREADABLE


async def test_a_rule_and_the_manifest_replaced_together_are_noticed(install: Database) -> None:
    with psycopg.connect(install.owner_url) as owner:
        owner.execute(
            "create or replace function memory.check_tenant(tenant text) returns void"
            " language plpgsql stable set search_path = pg_catalog, pg_temp as 'begin end'"
        )
        listed = (
            "select definition from memory.{}() where kind = 'function' and name = 'check_tenant'"
        )
        forged = value(owner, listed.format("catalogue"))
        real = value(owner, listed.format("manifest"))
        source = value(owner, "select pg_get_functiondef('memory.manifest'::regproc)")
        owner.execute(source.replace(real, forged))
    assert False not in verified(install.owner_url).values()

    checks = await memory.verify_install(install.owner_url)
    assert {(check.property, check.detail) for check in checks if check.ok is False} == {
        ("functions_as_packaged", "check_tenant, manifest")
    }


async def test_errors_are_the_librarys_and_say_nothing_of_the_server(
    install: Database, server: Postgres
) -> None:
    with pytest.raises(InstallError) as refused:
        await memory.verify_install(install.app_url)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    with server.empty() as bare, pytest.raises(InstallError):
        await memory.verify_install(bare.owner_url)
    with pytest.raises(StoreUnavailableError):
        await memory.verify_install("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(InvalidInputError):
        await memory.verify_install("mysql://nobody@127.0.0.1/none")
