"""Deployments as they happen: online, offline, several at once, by a role with few rights."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from servers import Database, run_alembic

Read = Callable[[Database], str]
Psql = Callable[[str, str], None]


def one(url: str, sql: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(sql).fetchone()
    return row[0] if row else None


def schema_exists(url: str) -> bool:
    return bool(one(url, "select to_regnamespace('memory') is not null"))


def deploy_at_once(count: int, url: str, folder: Path) -> None:
    """Run so many deployers, each a process, and see all succeed."""
    with ThreadPoolExecutor(count) as pool:
        deployers = [
            pool.submit(run_alembic, "upgrade", "head", url=url, cwd=folder) for _ in range(count)
        ]
    for deployer in deployers:
        deployer.result()


@pytest.fixture
def config(root: Path) -> Config:
    return Config(str(root / "alembic.ini"))


def test_eight_deployers_at_once_all_succeed(
    empty: Database, database: Database, root: Path, read_catalog: Read, psql: Psql
) -> None:
    deploy_at_once(8, empty.owner_url, root)
    granted = empty.alembic("current")
    assert "(head)" in granted
    grant(empty, psql)
    assert read_catalog(empty) == read_catalog(database)


def test_deployers_do_not_deadlock_with_an_index_built_concurrently(
    empty: Database, root: Path, tmp_path: Path
) -> None:
    shutil.copytree(root / "alembic", tmp_path / "alembic")
    shutil.copy(root / "alembic.ini", tmp_path)
    heads = empty.alembic("heads").split()
    (tmp_path / "alembic" / "versions" / "memory_9999_index.py").write_text(
        "from alembic import op\n"
        f"revision, down_revision = 'memory_9999', '{heads[0]}'\n"
        "def upgrade():\n"
        "    with op.get_context().autocommit_block():\n"
        "        op.execute('create index concurrently late on memory.records (created_at)')\n"
    )
    deploy_at_once(4, empty.owner_url, tmp_path)
    assert one(empty.owner_url, "select to_regclass('memory.late') is not null")


def test_the_offline_script_builds_the_same_database(
    empty: Database, database: Database, read_catalog: Read, psql: Psql
) -> None:
    script = empty.alembic("upgrade", "head", "--sql")
    psql(empty.owner_url, script)
    grant(empty, psql)
    assert read_catalog(empty) == read_catalog(database)
    assert "(head)" in empty.alembic("current")


def test_the_offline_script_needs_no_database(root: Path, clean_environment: None) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head", "--sql"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "CREATE TABLE memory.records" in done.stdout


def test_psycopg_builds_the_same_database_as_asyncpg(
    empty: Database,
    database: Database,
    read_catalog: Read,
    psql: Psql,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = empty.owner_url.replace("postgresql://", "postgresql+psycopg://", 1)
    monkeypatch.setattr(type(empty), "url", lambda self, role: url)
    empty.alembic("upgrade", "head")
    monkeypatch.undo()
    grant(empty, psql)
    assert read_catalog(empty) == read_catalog(database)


def grant(database: Database, psql: Psql) -> None:
    """The grants that a clone of the template has."""
    app, bypass, operator = (database.role(kind) for kind in ("app", "bypass", "operator"))
    psql(
        database.owner_url,
        f"select memory.grant_app('{app}'), memory.grant_app('{bypass}'),"
        f" memory.grant_app('{operator}'), memory.grant_operator('{operator}');",
    )


def test_up_down_up_builds_the_same_database(
    database: Database, read_catalog: Read, psql: Psql
) -> None:
    before = read_catalog(database)
    database.alembic("downgrade", "base")
    assert one(database.owner_url, "select to_regclass('memory.records')") is None
    functions = "select array_agg(proname) from pg_proc where pronamespace = 'memory'::regnamespace"
    assert one(database.owner_url, functions) is None
    database.alembic("upgrade", "head")
    psql(database.superuser_url, f"revoke all on schema memory from {database.role('app')};")
    grant(database, psql)
    assert read_catalog(database) == before


def test_an_owner_without_rights_on_the_database_migrates_a_schema_made_for_it(
    empty: Database, psql: Psql
) -> None:
    host = empty.role("host")
    psql(empty.superuser_url, f"create schema memory authorization {host};")
    assert not one(empty.host_url, "select has_database_privilege(current_database(), 'create')")
    empty.alembic("upgrade", "head", role="host")
    assert "(head)" in empty.alembic("current", role="host")


def test_a_role_that_may_not_create_the_schema_is_refused(empty: Database) -> None:
    with pytest.raises(AssertionError, match="permission denied for database"):
        empty.alembic("upgrade", "head", role="host")
    assert not schema_exists(empty.owner_url)


def test_asking_for_the_current_revision_writes_nothing(
    empty: Database, database: Database
) -> None:
    assert empty.alembic("current", role="host") == ""
    assert not schema_exists(empty.owner_url)
    assert "(head)" in database.alembic("current", "--check-heads", role="owner")


def test_everything_is_in_the_schema_the_version_table_too(database: Database) -> None:
    elsewhere = """
        select count(*) from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        where c.relowner = current_user::regrole and c.relkind in ('r', 'p', 'v', 'S')
            and n.nspname <> 'memory' and n.nspname !~ '^pg_'
    """
    assert one(database.owner_url, elsewhere) == 0
    assert one(database.owner_url, "select count(*) from memory.alembic_version") == 1


def test_check_overlooks_an_operator_made_index_and_no_other(database: Database) -> None:
    with psycopg.connect(database.owner_url, autocommit=True) as owner:
        owner.execute(
            "create index records_hnsw_3 on memory.records"
            " using hnsw ((embedding::vector(3)) vector_cosine_ops) where embedding_dims = 3"
        )
        assert "No new upgrade operations" in database.alembic("check")
        owner.execute("create index records_stray on memory.records (created_at)")
        with pytest.raises(AssertionError, match="records_stray"):
            database.alembic("check")


def test_check_leaves_the_tables_of_the_host_alone(database: Database) -> None:
    with psycopg.connect(database.owner_url, autocommit=True) as owner:
        owner.execute("create schema host")
        owner.execute("create table host.tickets (id int primary key)")
    assert "No new upgrade operations" in database.alembic("check")


async def test_the_alembic_command_works_inside_an_event_loop(
    empty: Database, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_DATABASE_URL", empty.owner_url)
    command.upgrade(config, "head")
    assert schema_exists(empty.owner_url)


def test_the_url_in_the_ini_file_comes_first(
    empty: Database, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_DATABASE_URL", "postgresql://nowhere.invalid/none")
    config.set_main_option("sqlalchemy.url", empty.owner_url.replace("%", "%%"))
    command.upgrade(config, "head")
    assert schema_exists(empty.owner_url)


def test_without_a_url_the_error_says_what_to_set(config: Config, clean_environment: None) -> None:
    with pytest.raises(CommandError, match="MEMORY_DATABASE_URL"):
        command.current(config)


def test_a_connection_in_a_transaction_is_left_to_its_owner(
    empty: Database, config: Config
) -> None:
    url = empty.owner_url.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        with connection.begin() as transaction:
            command.upgrade(config, "head")
            transaction.rollback()
        assert not schema_exists(empty.owner_url)
        command.upgrade(config, "head")
        assert not connection.in_transaction()
    assert schema_exists(empty.owner_url)


def test_an_async_engine_is_run_outside_a_loop_and_refused_inside(
    empty: Database, config: Config
) -> None:
    url = empty.owner_url.replace("postgresql://", "postgresql+asyncpg://", 1)
    config.attributes["connection"] = create_async_engine(url)

    async def inside() -> None:
        command.upgrade(config, "head")

    with pytest.raises(CommandError, match="run_sync"):
        asyncio.run(inside())
    assert not schema_exists(empty.owner_url)
    command.upgrade(config, "head")
    assert schema_exists(empty.owner_url)


def test_what_is_no_connection_is_refused(config: Config) -> None:
    config.attributes["connection"] = "postgresql://localhost/none"
    with pytest.raises(CommandError, match="must be a Connection"):
        command.current(config)
