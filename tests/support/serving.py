"""Embedded servers and the processes that hold them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import psutil

HOLD = """
import asyncio, sys
from memory import embedded

async def hold():
    async with embedded.serve(sys.argv[1] if sys.argv[1:] else None) as server:
        print(server.data_directory, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(hold())
"""


async def ask(url: str, sql: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


def postmaster(data: Path | str) -> int:
    return int((Path(data) / "postmaster.pid").read_text().split()[0])


def is_alive(pid: int) -> bool:
    try:
        # In a container nobody may be there to bury the dead.
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def hold(*arguments: str) -> subprocess.Popen[str]:
    """Another process that serves a directory until its standard input closes."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def has_ended(pid: int) -> bool:
    """Whether a server that was stopped is gone: its file goes a moment before it does."""
    wait_until(lambda: not is_alive(pid))
    return True
