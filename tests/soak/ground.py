"""What the soak stands on: a server on a disk that can be full, and PgBouncer in front of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
from sqlalchemy import make_url

from crashes import Crashable
from memory import embedded
from processes import free_port, pooler

SETTINGS = {
    # Room for checkpoints on a small disk; durability is the default.
    "max_wal_size": "128MB",
    "wal_keep_size": "0",
    "shared_buffers": "128MB",
    "max_connections": "60",
}
ROLES = ("memory_app", "memory_operator")


class Disk:
    """A tmpfs of limited size where mounting is permitted; else a folder that is never full."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", folder]
        done = subprocess.run(command, capture_output=True, check=False)
        self.limited = done.returncode == 0

    def fill(self) -> None:
        """Leave no room: the next page of a table or of the log is refused."""
        with (self.folder / "ballast").open("wb") as file:
            free = os.statvfs(self.folder)
            with contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_bsize)
            file.seek(0, os.SEEK_END)
            with contextlib.suppress(OSError):
                while True:
                    os.write(file.fileno(), bytes(free.f_bsize))

    def empty(self) -> None:
        (self.folder / "ballast").unlink(missing_ok=True)

    def leave(self) -> None:
        if self.limited:
            subprocess.run(["umount", "-l", self.folder], check=False)


class Ground:
    """The server, the pooler and their ends; ``url`` goes through the pooler."""

    def __init__(self, server: embedded.Server, disk: Disk, folder: Path) -> None:
        self.server, self.disk = Crashable(server), disk
        self.superuser_url, self.owner_url = server.superuser_url, server.owner_url
        self.app_url, self.operator_url = server.url, server.operator_url
        self._folder = folder
        self._port = free_port()
        self._pooler = contextlib.ExitStack()
        self.start_pooler()

    def url(self, role: str) -> str:
        return f"postgresql://{role}@127.0.0.1:{self._port}/memory"

    def start_pooler(self) -> None:
        query = make_url(self.superuser_url).query
        host = str(query["host"])
        self._pooler.enter_context(
            pooler(
                host=host,
                port=str(query["port"]),
                logins=dict.fromkeys(ROLES, ""),
                user=Path(host).owner() if os.geteuid() == 0 else "",
                folder=self._folder,
                listen_port=self._port,
                default_pool_size=6,
                server_login_retry=1,
                server_connect_timeout=5,
                query_wait_timeout=30,
            )
        )

    def end_pooler(self, how: signal.Signals) -> None:
        """End PgBouncer by a signal, whatever it is doing."""
        ini = str(self._folder / "pgbouncer.ini")
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == "pgbouncer" and process.cmdline()[-1:] == [ini]:
                    process.send_signal(how)
                    _await_end(process)
        self._pooler.close()

    def revive(self) -> bool:
        """Start the server where it has ended by itself; say whether it had."""
        for _ in range(20):
            if not self.server.runs():
                self.server.start()
                return True
            time.sleep(0.1)
        return False

    def close(self) -> None:
        self._pooler.close()
        self.server.stop()


def _await_end(process: psutil.Process) -> None:
    """The shell that started it collects it later: until then it is a zombie."""
    for _ in range(200):
        if process.status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.05)
    raise AssertionError("PgBouncer does not end")


@contextlib.asynccontextmanager
async def ground(version: int, megabytes: int) -> AsyncIterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    folder.chmod(0o755)
    data, own = folder / "disk", folder / "pooler"
    data.mkdir()
    own.mkdir()
    disk = Disk(data, megabytes)
    try:
        running = embedded.serve(data / "data", postgres_version=version, settings=SETTINGS)
        async with running as server:
            place = Ground(server, disk, own)
            try:
                yield place
            finally:
                await asyncio.to_thread(place.close)
    finally:
        disk.leave()
        shutil.rmtree(folder, ignore_errors=True)
