"""Servers and databases for the tests.

The server is MEMORY_DATABASE_URL or DATABASE_URL if one is set, which then must name a superuser
(the tests make roles of every kind, one that bypasses row level security included, and databases,
and remove them again); else an embedded one, MEMORY_TEST_POSTGRES (18 or 16) being its version.
Every test that asks for ``database`` gets a clone of one that the real migrations built.

Programs that the machine lacks (PgBouncer, PostgreSQL 15) skip their tests, unless
MEMORY_TEST_REQUIRE is set, as continuous integration does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import URL, make_url

from memory import embedded

ROOT = Path(__file__).parent.parent
POSTGRES_15 = Path("/usr/lib/postgresql/15/bin")
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
    def socket_owner(self) -> str | None:
        """Who may reach the server's socket, None if it listens on TCP."""
        host = self._superuser.query.get("host", self._superuser.host)
        return Path(host).owner() if isinstance(host, str) and host.startswith("/") else None

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


def run_alembic(*arguments: str, url: str | None = None, cwd: Path = ROOT) -> str:
    """Run ``python -m alembic`` and return its output; its error output is in the failure."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("DATABASE_URL")}
    if url is not None:
        environment["MEMORY_DATABASE_URL"] = url
    done = subprocess.run(
        [sys.executable, "-m", "alembic", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise AssertionError(f"alembic {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def supervised(command: list[str], *, user: str | None, log: Path) -> Iterator[None]:
    """Run a server until the block ends, or until this process dies, however it dies."""
    script = '"$@" & read -r _; kill -INT $!; wait $!'
    options: dict[str, Any] = {"user": user, "group": None} if user else {}
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **{k: v for k, v in options.items() if v},
        )
    try:
        yield
    finally:
        process.communicate()


def eventually(attempt: Callable[[], object], *, log: Path) -> None:
    """Call until it no longer raises, for ten seconds."""
    deadline = time.monotonic() + 10
    while True:
        try:
            attempt()
        except OSError as error:
            if time.monotonic() > deadline:
                raise AssertionError(log.read_text()) from error
            time.sleep(0.05)
        else:
            return


def require(program: Path | str, package: str) -> str:
    """The program's path; the test is skipped, or in integration fails, without it."""
    found = shutil.which(program)
    if found is None:
        message = f"needs {Path(program).name}: apt-get install {package}"
        if os.environ.get("MEMORY_TEST_REQUIRE"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """The server under test."""
    given = os.environ.get("MEMORY_DATABASE_URL") or os.environ.get("DATABASE_URL")
    if given:
        with contextlib.closing(Postgres(given)) as postgres:
            yield postgres
        return
    with embedded_postgres(int(os.environ.get("MEMORY_TEST_POSTGRES", "18"))) as postgres:
        yield postgres


@pytest.fixture(scope="session")
def postgres16() -> Iterator[Postgres]:
    """PostgreSQL 16 with pgvector."""
    with embedded_postgres(16) as postgres:
        yield postgres


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


@pytest.fixture(scope="session")
def postgres15() -> Iterator[Postgres]:
    """Debian's PostgreSQL 15, which has no pgvector."""
    initdb = require(POSTGRES_15 / "initdb", "postgresql-15")
    user = "postgres" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="pg15-") as folder:
        data = Path(folder) / "data"
        data.mkdir(mode=0o700)
        if user:
            Path(folder).chmod(0o755)
            shutil.chown(data, user)
        subprocess.run(
            [initdb, "-N", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", "postgres", "-D", data],
            check=True,
            capture_output=True,
            cwd=folder,
            **({"user": user} if user else {}),
        )
        settings = {**FAST, "listen_addresses": "", "unix_socket_directories": str(data)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(POSTGRES_15 / "postgres"), "-D", str(data), "-p", "5432", *options]
        log = Path(folder) / "log"
        with supervised(command, user=user, log=log):
            address = f"postgresql://postgres@/postgres?host={data}&port=5432"

            def connect() -> None:
                with contextlib.suppress(psycopg.OperationalError):
                    psycopg.connect(address).close()
                    return
                raise OSError

            eventually(connect, log=log)
            with contextlib.closing(Postgres(address)) as postgres:
                yield postgres


@pytest.fixture(scope="session")
def pgbouncer(server: Postgres) -> Iterator[Callable[[str], str]]:
    """PgBouncer in transaction mode; maps a database URL to the one through the pooler."""
    program = require("pgbouncer", "pgbouncer")
    target = make_url(server.url("superuser", "postgres"))
    host = target.query.get("host", target.host)
    port = target.query.get("port", target.port) or 5432
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen_port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as folder:
        Path(folder).chmod(0o755)
        users = Path(folder) / "users"
        lines = []
        for kind in ("superuser", *ROLES):
            login = make_url(server.url(kind, "postgres"))
            lines.append(f'"{login.username}" "{login.password or ""}"\n')
        users.write_text("".join(lines))
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": listen_port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
            "pool_mode": "transaction",
            "default_pool_size": 4,
            "max_client_conn": 200,
            "server_check_delay": 0,
        }
        if os.geteuid() == 0:
            settings["user"] = server.socket_owner or "nobody"
        ini = Path(folder) / "pgbouncer.ini"
        ini.write_text(
            f"[databases]\n* = host={host} port={port}\n[pgbouncer]\n"
            + "".join(f"{name} = {value}\n" for name, value in settings.items())
        )
        log = Path(folder) / "log"
        with supervised([program, str(ini)], user=None, log=log):
            eventually(
                lambda: socket.create_connection(("127.0.0.1", listen_port)).close(), log=log
            )

            def through(url: str) -> str:
                parsed = make_url(url)
                pooled = parsed.set(host="127.0.0.1", port=listen_port, query={})
                return pooled.render_as_string(hide_password=False)

            yield through


@pytest.fixture
def database(server: Postgres) -> Iterator[Database]:
    """A migrated database of the test's own."""
    with server.migrated() as database:
        yield database


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def app(database: Database) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection as the application's role; no tenant is set."""
    async with connected(database.app_url) as connection:
        yield connection


@pytest.fixture
async def owner(database: Database) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection as the role that owns the tables."""
    async with connected(database.owner_url) as connection:
        yield connection


@pytest.fixture
async def superuser(database: Database) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection as a superuser."""
    async with connected(database.superuser_url) as connection:
        yield connection
