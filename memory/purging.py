"""Having external indexes purge what they owe: what counts as an answer, and what follows it.

Both stores drain in the same way; a store brings its :class:`Ledger`, where the debts are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from memory import telemetry
from memory.calls import CallFailedError, called
from memory.errors import MemoryServiceError
from memory.ports import Demand, DerivedIndex

__all__ = ["BATCH", "Debt", "Lease", "Ledger", "backoff", "drain"]

BATCH = 1_000
NOT_CONFIRMED = "NotConfirmed"
"""The class of a failure that raised nothing: the index still reports the artefact."""

_FIRST_WAIT = timedelta(seconds=10)
_LONGEST_WAIT = timedelta(hours=1)
_SLACK = timedelta(seconds=30)

_logger = logging.getLogger("memory.erasure")


@dataclass(frozen=True, kw_only=True, slots=True)
class Debt:
    """A purge that ``erasure_id`` left owed; a ``retained`` artefact is another tenant's too."""

    artefact_id: str = field(repr=False)
    erasure_id: UUID
    retained: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """Up to ``BATCH`` debts of one index, which failed equally often, taken by one drain."""

    token: UUID
    debts: tuple[Debt, ...]
    attempts: int
    taken_at: datetime

    @property
    def ids(self) -> list[str]:
        """The artefacts, those that are retained too."""
        return [debt.artefact_id for debt in self.debts]


class Ledger(Protocol):
    """The debts of one tenant. Each method is a transaction that ends before an index is called."""

    async def lease(
        self, adapter: str, demand: Demand, duration: timedelta, since: datetime | None
    ) -> Lease | None:
        """Take debts that nobody else works on; ``since`` leaves out what this drain has asked."""
        ...

    async def settle(self, adapter: str, lease: Lease, artefact_ids: Sequence[str]) -> int:
        """Clear debts that are still those of the lease, leaving a receipt; return how many."""
        ...

    async def give_back(
        self, adapter: str, lease: Lease, artefact_ids: Sequence[str], error: str | None
    ) -> None:
        """Return debts after a failure of this class; None: the index was not to blame."""
        ...


def backoff(attempts: int) -> timedelta:
    """Return how long to leave an index alone: doubling to an hour, give or take a half.

    The jitter keeps workers that failed together from coming back together.
    """
    doublings = min(attempts - 1, 20)
    wait = min(_LONGEST_WAIT, _FIRST_WAIT * (1 << doublings))
    return wait * random.uniform(0.5, 1.5)  # noqa: S311 - jitter, no secret


async def drain(ledger: Ledger, indexes: Mapping[str, DerivedIndex], demand: Demand) -> int:
    """Have each index purge what it owes; return how many debts were settled.

    Each index for itself, one call at a time, so that one that hangs keeps no other waiting; and
    all are awaited, whatever one of them meets: a purge left running would settle later.
    """
    ends = await asyncio.gather(
        *(_drained(ledger, name, index, demand) for name, index in indexes.items()),
        return_exceptions=True,
    )
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    return sum(end for end in ends if isinstance(end, int))


async def _drained(ledger: Ledger, name: str, index: DerivedIndex, demand: Demand) -> int:
    """Purge lease by lease until nothing is left to ask for, or a call failed."""
    settled = 0
    since: datetime | None = None
    while True:
        lease = await ledger.lease(name, demand, 2 * demand.timeout + _SLACK, since)
        if lease is None:
            return settled
        since = since or lease.taken_at
        failed = None
        try:
            gone = await _confirmed(index, lease.debts, demand.timeout)
            settled += await _settled(ledger, name, lease, gone)
        except CallFailedError as failure:
            # Its class only: a message may quote an id.
            failed = failure.kind
        except BaseException:
            await asyncio.shield(_released(ledger, name, lease))
            raise
        # Not in the handler: what the store raises here would show the failure as its context.
        if failed is not None:
            _failed(name, failed)
            await ledger.give_back(name, lease, lease.ids, failed)
            return settled
        kept = [item for item in lease.ids if item not in gone]
        if kept:
            _failed(name, NOT_CONFIRMED)
            await ledger.give_back(name, lease, kept, NOT_CONFIRMED)


def _failed(name: str, kind: str) -> None:
    _logger.warning("index %s did not purge: %s", name, kind)
    telemetry.purge_failed(name, kind)


async def _settled(ledger: Ledger, name: str, lease: Lease, gone: Collection[str]) -> int:
    if not gone:
        return 0
    done = await ledger.settle(name, lease, sorted(gone))
    telemetry.purged(name, done)
    return done


async def _released(ledger: Ledger, name: str, lease: Lease) -> None:
    """Give a lease back at once, whatever becomes of the caller.

    A call was cancelled, or what was confirmed could not be settled: until the lease ran out,
    asking again would find the debt taken. If the store is what failed, it has to run out.
    """
    with contextlib.suppress(MemoryServiceError):
        await ledger.give_back(name, lease, lease.ids, None)


async def _confirmed(index: DerivedIndex, debts: Sequence[Debt], limit: timedelta) -> set[str]:
    """Ask for a purge; return the ids that are settled by the answer.

    They are when ``purge`` returned and ``present``, where the index has it, no longer reports
    them. About a retained artefact ``present`` is asked like about the others, and what it says is
    ignored: an index that is down must not settle one sooner than the other.
    """
    owed = [debt.artefact_id for debt in debts if not debt.retained]
    retained = {debt.artefact_id for debt in debts if debt.retained}
    if owed:
        await called(lambda: index.purge(list(owed)), limit)
    asked = [debt.artefact_id for debt in debts]
    remaining = await called(lambda: _remaining(index, asked), limit)
    return retained.union(owed) - (remaining - retained)


async def _remaining(index: DerivedIndex, asked: Sequence[str]) -> set[str]:
    """Ask which of the ids are still there; of an index that cannot be asked, none.

    To be called as a whole: an answer too can raise, when it is looked at.
    """
    present: Any = getattr(index, "present", None)
    return set() if present is None else _subset(await present(list(asked)), asked)


def _subset(answer: object, asked: Collection[str]) -> set[str]:
    """Return the ids in an answer of ``present``; what is no subset is no answer."""
    if not isinstance(answer, Collection) or isinstance(answer, str | bytes):
        raise TypeError
    found = set()
    for item in answer:
        if not isinstance(item, str):
            raise TypeError
        found.add(item)
    if not found <= set(asked):
        raise ValueError
    return found
