"""The data directory of an embedded server: who may use it, and who still does."""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shutil
import tempfile
import time
from pathlib import Path

from memory.errors import InstallError, InvalidInputError, StoreUnavailableError

__all__ = ["CLUSTER_NAME", "DataDirectory", "make_passable"]

CLUSTER_NAME = "erasable_memory"
"""Tells a server that we started from one that somebody else did."""

_LOCK_SECONDS = 60
# sockaddr_un holds 104 bytes on macOS, 108 on Linux, the name of the socket included.
_SOCKET_DIRECTORY_LIMIT = 85


class DataDirectory:
    """One caller's hold on a data directory; every call blocks.

    Two file locks, which the kernel drops when their process dies: the exclusive one on the
    directory covers starting and stopping the server, and every user of the server has a shared
    one on ``PG_VERSION``, so that the last to leave can tell.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, owner: pwd.struct_passwd | None
    ) -> None:
        self.temporary = path is None
        self.owner = owner
        self.path = self._make_temporary("memory-") if path is None else self._make(path)
        self._exclusive: int | None = None
        self._shared: int | None = None

    @property
    def version(self) -> int | None:
        """PostgreSQL's major version, None before ``initdb``."""
        try:
            return int((self.path / "PG_VERSION").read_text())
        except FileNotFoundError:
            return None

    def lock(self) -> None:
        """Take the exclusive lock, waiting up to a minute for whoever starts or stops the server.

        Raises ``StoreUnavailableError`` after that, ``InstallError`` if the directory belongs to
        another user.
        """
        if self._exclusive is None:
            self._exclusive = _open(self.path)
            _wait_for_lock(self._exclusive)

    def unlock(self) -> None:
        """Let the next caller start, join or stop the server."""
        if self._exclusive is not None:
            os.close(self._exclusive)
            self._exclusive = None

    def join(self) -> None:
        """Become a user of the server. Call it with the exclusive lock, after ``initdb``."""
        self._shared = _open(self.path / "PG_VERSION")
        fcntl.flock(self._shared, fcntl.LOCK_SH)

    def is_mine_to_stop(self) -> bool:
        """Tell whether this is the last user of a server that one of us started.

        Takes the exclusive lock and keeps it.
        """
        if self._shared is None or not self._was_started_by_us():
            return False
        self.lock()
        try:
            fcntl.flock(self._shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def leave(self) -> None:
        """Drop both locks; remove a temporary directory."""
        if self._shared is not None:
            os.close(self._shared)
            self._shared = None
        self.unlock()
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)

    def remove_copied_locks(self) -> None:
        """Remove the locks that a base backup of a running server's directory brought from there.

        It leaves sockets out, so a lock without one is of nobody here. Call it with the exclusive
        lock, where no server runs on this directory.
        """
        for lock in self.path.glob(".s.PGSQL.*.lock"):
            if not lock.with_suffix("").exists():
                lock.unlink()

    def make_socket_directory(self) -> Path:
        """Choose the data directory itself, unless a socket address cannot hold its path."""
        name = str(self.path)
        if len(name) <= _SOCKET_DIRECTORY_LIMIT and re.fullmatch(r"[\w./-]+", name, re.ASCII):
            return self.path
        return self._make_temporary("memory-socket-")

    def find_socket_directory(self) -> Path:
        """Read where the running server has its socket; raise ``InstallError`` if it has none."""
        lines = (self.path / "postmaster.pid").read_text().splitlines()
        if len(lines) < 5 or not lines[4]:
            raise InstallError("the data directory is served without a unix socket")
        return Path(lines[4])

    def remove_socket_directory(self, folder: Path) -> None:
        """Remove what ``make_socket_directory`` made, after the server has stopped."""
        if folder != self.path:
            shutil.rmtree(folder, ignore_errors=True)

    def _was_started_by_us(self) -> bool:
        options = self.path / "postmaster.opts"
        return options.exists() and f"cluster_name={CLUSTER_NAME}" in options.read_text()

    def _make_temporary(self, prefix: str) -> Path:
        return self._hand_over(Path(tempfile.mkdtemp(prefix=prefix)).resolve())

    def _make(self, given: str | os.PathLike[str]) -> Path:
        path = _directory(given)
        if path is None:
            raise InvalidInputError("path", "must be a directory, or where one can be made")
        try:
            foreign = not (path / "PG_VERSION").exists() and any(path.iterdir())
        except PermissionError:
            foreign = None
        if foreign is None:
            raise InstallError("the data directory belongs to another user")
        if foreign:
            raise InvalidInputError("path", "must be empty or a PostgreSQL data directory")
        return self._hand_over(path)

    def _hand_over(self, path: Path) -> Path:
        if self.owner is not None:
            os.chown(path, self.owner.pw_uid, self.owner.pw_gid)
            make_passable(path)
        return path


def make_passable(path: Path) -> None:
    """Let every user pass through the directories above ``path``, without listing them."""
    for parent in path.parents:
        mode = parent.stat().st_mode
        if not mode & 0o001:
            parent.chmod(mode | 0o001)


def _directory(given: str | os.PathLike[str]) -> Path | None:
    try:
        path = Path(given).expanduser().resolve()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError, TypeError, ValueError):
        return None
    return path


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except PermissionError:
        rule = "the data directory belongs to another user"
    raise InstallError(rule)


def _wait_for_lock(descriptor: int) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return
    raise StoreUnavailableError("another process has held the data directory for a minute")
