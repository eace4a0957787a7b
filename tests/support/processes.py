"""Programs that run beside the tests and go with them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest


def require(program: Path | str, package: str) -> str:
    """Find the program; the test is skipped, or in integration fails, without it."""
    found = shutil.which(program)
    if found is None:
        message = f"needs {Path(program).name}: apt-get install {package}"
        if os.environ.get("MEMORY_TEST_REQUIRE"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@contextlib.contextmanager
def supervised(
    command: list[str], *, user: str | None, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends, or until this process dies, however it dies.

    Yields the shell that waits for that; its only child is the server.
    """
    # The shell's standard input closes in either case.
    script = '"$@" & read -r _; kill -INT $!; wait $!'
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            user=user,
        )
    try:
        yield process
    finally:
        process.communicate()


def eventually(attempt: Callable[[], object], *, refused: type[Exception], log: Path) -> None:
    """Call until it is no longer refused, for ten seconds."""
    deadline = time.monotonic() + 10
    while True:
        try:
            attempt()
        except refused as error:
            if time.monotonic() > deadline:
                raise AssertionError(log.read_text()) from error
            time.sleep(0.05)
        else:
            return


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextlib.contextmanager
def pooler(
    *,
    host: str,
    port: str,
    logins: Mapping[str, str],
    user: str,
    folder: Path,
    listen_port: int | None = None,
    **more: object,
) -> Iterator[int]:
    """PgBouncer in transaction mode in front of a server; yields the port it listens on.

    ``more`` are further settings of its own.
    """
    program = require("pgbouncer", "pgbouncer")
    folder.chmod(0o755)
    users = folder / "users"
    users.write_text("".join(f'"{name}" "{password}"\n' for name, password in logins.items()))
    listen_port = listen_port or free_port()
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": listen_port,
        "unix_socket_dir": "",
        "auth_type": "trust",
        "auth_file": users,
        "pool_mode": "transaction",
        "default_pool_size": 4,
        "max_client_conn": 200,
        **more,
    }
    if os.geteuid() == 0:
        settings["user"] = user
    ini = folder / "pgbouncer.ini"
    ini.write_text(
        f"[databases]\n* = host={host} port={port}\n[pgbouncer]\n"
        + "".join(f"{name} = {value}\n" for name, value in settings.items())
    )
    log = folder / "log"

    def connect() -> None:
        socket.create_connection(("127.0.0.1", listen_port)).close()

    with supervised([program, str(ini)], user=None, log=log):
        eventually(connect, refused=ConnectionRefusedError, log=log)
        yield listen_port
