"""What goes wrong in the soak, by a schedule: servers end, connections break, disks are full."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from clients import Clients
from ground import Ground

_BACKENDS = (
    "select {function}(pid) from pg_stat_activity where usename in ('memory_app',"
    " 'memory_operator') and (state <> 'idle' or not $1) and random() < $2"
)


class Mishaps:
    """Carries the schedule out; ``told`` says when what happened, and how long it took."""

    def __init__(self, ground: Ground, clients: Clients, seed: int) -> None:
        self._ground, self._clients = ground, clients
        self._chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self.told: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self.not_simulated: list[str] = []

    def schedule(self) -> dict[str, Callable[[float], Awaitable[None]]]:
        """The mishaps by name, in the order in which they come round."""
        found = {
            "backends terminated": self.terminate,
            "statements cancelled": self.cancel,
            "pooler restarted": self.restart_pooler,
            "client killed": self.kill_client,
            "server restarted, fast": self.restart_fast,
            "disk full": self.fill_disk,
            "server restarted, immediate": self.restart_immediately,
            "pooler killed": self.kill_pooler,
            "server killed": self.kill_server,
        }
        if not self._ground.disk.limited:
            del found["disk full"]
            self.not_simulated = ["disk full: mounting a tmpfs was refused"]
        return found

    async def go_on(self, until: float, every: float) -> None:
        """One mishap after another, each with a pause before it, until that time is reached."""
        while True:
            for name, mishap in self.schedule().items():
                await asyncio.sleep(every * self._chance.uniform(0.6, 1.4))
                if time.monotonic() > until:
                    return
                started = time.monotonic()
                try:
                    await mishap(min(every / 4, 5.0))
                except Exception:  # told of at the end; what holds is looked for nevertheless
                    self.failures.append(f"{name}: {traceback.format_exc()}")
                    await asyncio.to_thread(self._ground.revive)
                self.told.append({"what": name, "at": started, "s": time.monotonic() - started})

    async def _each_backend(self, function: str, *, busy: bool, share: float) -> None:
        connection = await asyncpg.connect(self._ground.superuser_url)
        try:
            await connection.fetch(_BACKENDS.format(function=function), busy, share)
        finally:
            await connection.close()

    async def terminate(self, seconds: float) -> None:
        for _ in range(3):
            await self._each_backend("pg_terminate_backend", busy=False, share=0.6)
            await asyncio.sleep(seconds / 3)

    async def cancel(self, seconds: float) -> None:
        for _ in range(20):
            await self._each_backend("pg_cancel_backend", busy=True, share=0.7)
            await asyncio.sleep(seconds / 20)

    async def restart_pooler(self, seconds: float) -> None:
        await asyncio.to_thread(self._ground.end_pooler, signal.SIGTERM)
        await asyncio.sleep(seconds / 4)
        await asyncio.to_thread(self._ground.start_pooler)

    async def kill_pooler(self, seconds: float) -> None:
        await asyncio.to_thread(self._ground.end_pooler, signal.SIGKILL)
        await asyncio.sleep(seconds / 4)
        await asyncio.to_thread(self._ground.start_pooler)

    async def kill_client(self, seconds: float) -> None:
        self._clients.kill_one(self._chance)
        await asyncio.sleep(seconds / 4)

    async def restart_fast(self, seconds: float) -> None:
        await self._restarted(self._ground.server.stop)

    async def restart_immediately(self, seconds: float) -> None:
        await self._restarted(lambda: self._ground.server.stop(immediately=True))

    async def kill_server(self, seconds: float) -> None:
        await self._restarted(self._ground.server.kill)

    async def _restarted(self, end: Callable[[], None]) -> None:
        await asyncio.to_thread(end)
        await asyncio.to_thread(self._ground.server.start)

    async def fill_disk(self, seconds: float) -> None:
        """Once there is room again, the server comes back, if need be with an operator's help."""
        await asyncio.to_thread(self._ground.disk.fill)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._ground.disk.empty)
        if await asyncio.to_thread(self._ground.revive):
            self.told.append({"what": "server had ended, its disk full", "at": time.monotonic()})

    async def answers(self) -> None:
        """Wait until the server takes connections again."""
        for _ in range(600):
            with contextlib.suppress(OSError, asyncpg.PostgresError):
                await (await asyncpg.connect(self._ground.superuser_url)).close()
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the server does not come back")
