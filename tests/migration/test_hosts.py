"""Deployments of hosts: a history beside ours, a script for a DBA from one revision to the next."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.config import Config

from memory import migrate
from memory.repositories.tenancy import HEAD
from pages import ROOT, Page
from servers import Database

PAGE = Page(ROOT / "docs" / "deploy.md")

ENV = """
import asyncio
import os
import sqlalchemy as sa
from alembic import context
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

tickets = sa.Table(
    "tickets", sa.MetaData(), sa.Column("ticket_id", sa.BigInteger(), primary_key=True)
)

def work(connection):
    context.configure(connection=connection, target_metadata=tickets.metadata)
    with context.begin_transaction():
        context.run_migrations()

async def run():
    engine = create_async_engine(os.environ["HOST_URL"], poolclass=NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(work)

asyncio.run(run())
"""
REVISION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{revision}", None

def upgrade():
    op.create_table("tickets", sa.Column("ticket_id", sa.BigInteger(), primary_key=True))

def downgrade():
    op.drop_table("tickets")
"""


def host(folder: Path, revision: str = "0001") -> Config:
    """A host's own history of one revision."""
    (folder / "versions").mkdir()
    (folder / "env.py").write_text(ENV)
    (folder / "versions" / "tickets.py").write_text(REVISION.format(revision=revision))
    config = Config()
    config.set_main_option("script_location", str(folder))
    return config


def recorded(url: str, table: str) -> list[str]:
    """The versions that a history has recorded in its table."""
    with psycopg.connect(url) as connection:
        there = connection.execute("select to_regclass(%s) is not null", [table]).fetchone()
        assert there is not None
        rows = connection.execute(f"select version_num from {table}") if there[0] else []
        return [row[0] for row in rows]


@pytest.mark.parametrize("first", ["host", "memory"])
def test_a_history_of_the_hosts_beside_ours_is_neither_seen_nor_moved(
    empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, first: str
) -> None:
    url = empty.owner_url
    with psycopg.connect(empty.superuser_url, autocommit=True) as superuser:
        superuser.execute(f"grant create on schema public to {empty.role('owner')}")
    monkeypatch.setenv("HOST_URL", url.replace("postgresql://", "postgresql+asyncpg://", 1))
    monkeypatch.setenv("MEMORY_DATABASE_URL", url)
    # An id of ours, in their history: the two do not meet.
    theirs, ours = host(tmp_path, revision="memory_0001"), Config(str(root / "alembic.ini"))
    both = {"host": theirs, "memory": ours}
    for name in sorted(both, reverse=first == "memory"):
        command.upgrade(both[name], "head")
    assert recorded(url, "public.alembic_version") == ["memory_0001"]
    assert recorded(url, "memory.alembic_version") == [HEAD]
    command.current(ours, check_heads=True)
    command.check(theirs)
    command.check(ours)
    command.downgrade(theirs, "base")
    assert recorded(url, "public.alembic_version") == []
    assert recorded(url, "memory.alembic_version") == [HEAD]
    with psycopg.connect(url) as owner:
        assert owner.execute("select count(*) from memory.records").fetchone() == (0,)


async def test_a_script_from_an_installed_revision_leads_to_the_same_catalogue(
    empty: Database,
    database: Database,
    root: Path,
    psql: Callable[[str, str], None],
    read_catalog: Callable[[Database], str],
) -> None:
    [revision] = re.findall(r"alembic upgrade (\w+):head --sql", PAGE.text)
    await migrate.upgrade(empty.owner_url, revision)
    script = io.StringIO()
    config = Config(str(root / "alembic.ini"), output_buffer=script)
    command.upgrade(config, f"{revision}:head", sql=True)
    psql(empty.owner_url, script.getvalue())
    roles = {kind: empty.role(kind) for kind in ("app", "bypass", "operator")}
    grants = [f"select memory.grant_app('{role}');" for role in roles.values()]
    psql(
        empty.owner_url, "".join([*grants, f"select memory.grant_operator('{roles['operator']}')"])
    )
    assert read_catalog(empty) == read_catalog(database)


def test_the_page_shows_the_ini_of_the_example_and_the_commands_that_are_tested(
    root: Path,
) -> None:
    [ini] = PAGE.blocks("ini")
    shown = (root / "examples" / "host_alembic" / "alembic.ini").read_text()
    without_comments = [line for line in shown.splitlines() if not line.startswith("#")]
    assert ini.code.splitlines() == without_comments
    wheel, dba = (block.code.splitlines() for block in PAGE.blocks("sh"))
    # tests/migration/test_packaging.py runs these with an installed wheel, with exactly this file,
    assert wheel == [
        r"printf '[alembic]\nscript_location = memory:migrations\n' > alembic.ini",
        "alembic upgrade head",
        "alembic current --check-heads",
    ]
    # and test_deployment.py and this module pipe the script into psql with these options.
    assert dba[0] == "alembic upgrade head --sql > memory.sql"
    assert "ON_ERROR_STOP=1" in dba[1]
