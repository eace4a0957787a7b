"""How a client of the soak makes a call: again where that helps, timed, and judged."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import random
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from ledger import Ledger
from memory import (
    LegalHoldError,
    Memory,
    MemoryServiceError,
    PartialErasureError,
    PostgresStore,
    RetryableError,
    StoreUnavailableError,
)
from stores import leaks

PEPPER = "pepper"
TENANTS = ("acme", "globex")
BYSTANDER = "customer:bystander"
ADAPTERS = ("vectors", "cache")
LONGEST = 120.0  # seconds: what takes longer hangs
LONGEST_LIFE = 4.0  # seconds: of a record that expires


class FileIndex:
    """An index that keeps each artefact in a file, and is down now and then."""

    def __init__(self, name: str, folder: Path, chance: random.Random, fails: float = 0.1) -> None:
        self.name, self._folder, self._chance, self._fails = name, folder / name, chance, fails
        self._folder.mkdir(parents=True, exist_ok=True)

    def add(self, artefact_id: str) -> None:
        (self._folder / artefact_id).touch()

    def remove(self, artefact_id: str) -> None:
        (self._folder / artefact_id).unlink(missing_ok=True)

    def _may_fail(self) -> None:
        if self._chance.random() < self._fails:
            raise ConnectionError(self.name)

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        self._may_fail()
        for artefact_id in artefact_ids:
            self.remove(artefact_id)
        return len(artefact_ids)

    async def present(self, artefact_ids: Sequence[str]) -> list[str]:
        self._may_fail()
        return [item for item in artefact_ids if (self._folder / item).exists()]


class LostError(Exception):
    """The call was given up by its caller: nobody knows whether it happened."""


class Client:
    """The store as this process sees it, and how a call is made, timed and judged."""

    def __init__(self, ledger: Ledger, folder: Path, seed: int, urls: tuple[str, str]) -> None:
        self.ledger = ledger
        self.chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self.indexes = {n: FileIndex(n, folder / "indexes", self.chance) for n in ADAPTERS}
        plugs: dict[str, Any] = {
            "indexes": list(self.indexes.values()),
            "subject_pepper": PEPPER,
        }
        self.app, self.operator = (Memory(PostgresStore(url, pooler=True), **plugs) for url in urls)
        self.stopping = asyncio.Event()

    def violation(self, text: str) -> None:
        self.ledger.note("violation", text=text)

    async def call(self, verb: str, make: Callable[[], Awaitable[Any]], *secrets: str) -> Any:
        """Make a call, again while the store cannot be reached; an incomplete erasure is returned.

        What is no error of the library's is a violation, and so is what shows a driver's.
        """
        while True:
            started = time.monotonic()
            try:
                answer = await self._once(make)
            except (LegalHoldError, PartialErasureError) as error:
                self.ledger.call(verb, time.monotonic() - started, type(error).__name__)
                return error
            except MemoryServiceError as error:
                outcome = " ".join(filter(None, [type(error).__name__, _sqlstate(error)]))
                self.ledger.call(verb, time.monotonic() - started, outcome)
                shown = leaks(error, secrets)
                if shown:
                    self.violation(f"{verb} shows {shown}")
                if not isinstance(error, RetryableError | StoreUnavailableError):
                    raise
                await asyncio.sleep(self.chance.uniform(0.05, 0.5))
            except LostError:
                self.ledger.call(verb, time.monotonic() - started, "cancelled")
                raise
            except BaseException as error:
                self.ledger.call(verb, time.monotonic() - started, type(error).__name__)
                if not isinstance(error, asyncio.CancelledError):
                    self.violation(f"{verb} raised\n{traceback.format_exc()}")
                raise
            else:
                self.ledger.call(verb, time.monotonic() - started, "ok")
                return answer

    async def _once(self, make: Callable[[], Awaitable[Any]]) -> Any:
        """Await the call; now and then the caller gives it up."""
        given_up = self.chance.random() < 0.003
        limit = self.chance.uniform(0, 0.02) if given_up else LONGEST
        try:
            async with asyncio.timeout(limit) as scope:
                return await make()
        except TimeoutError:
            if given_up and scope.expired():
                raise LostError from None
            raise

    async def again(self, verb: str, make: Callable[[], Awaitable[Any]], *secrets: str) -> Any:
        """The same for what may be repeated, also where its caller gave it up."""
        while True:
            with contextlib.suppress(LostError):
                return await self.call(verb, make, *secrets)

    async def pause(self, most: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), self.chance.uniform(0, 2 * most))

    async def chores(self, pause: float) -> None:
        """Retention and debts, as a worker beside the application does them."""
        while not self.stopping.is_set():
            for tenant in TENANTS:
                await self.again("expire", lambda tenant=tenant: self.app.expire(tenant))
                await self.again(
                    "purge_outstanding",
                    lambda tenant=tenant: self.app.purge_outstanding(tenant, due_only=True),
                )
                await self.pause(max(pause * 5, 0.2))

    async def measure(self) -> None:
        """What is resident once the allocator has given back what nobody uses."""
        process, libc = psutil.Process(), ctypes.CDLL(None)
        while not self.stopping.is_set():
            gc.collect()
            if hasattr(libc, "malloc_trim"):  # glibc keeps freed memory in pieces otherwise
                libc.malloc_trim(0)
            self.ledger.note("memory", at=time.monotonic(), rss=process.memory_info().rss)
            await self.pause(5.0)


def _sqlstate(error: MemoryServiceError) -> str | None:
    return error.sqlstate if isinstance(error, StoreUnavailableError) else None
