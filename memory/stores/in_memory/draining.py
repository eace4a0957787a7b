"""The debts of a tenant in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from memory.ports import Demand
from memory.purging import BATCH, Debt, Lease, backoff
from memory.stores.in_memory.shelf import Owed, Shelf
from memory.timelines import Purging

__all__ = ["ShelfLedger"]


class ShelfLedger:
    """See :class:`memory.purging.Ledger`.

    ``elsewhere`` says whether another tenant has an artefact registered. A lease cannot outlive its
    drain here, but it takes its time from the same clock as everything else.
    """

    def __init__(
        self,
        shelf: Shelf,
        elsewhere: Callable[[tuple[str, str]], bool],
        clock: Callable[[], datetime],
    ) -> None:
        self._shelf = shelf
        self._elsewhere = elsewhere
        self._clock = clock
        self._asked: set[Owed] = set()

    async def lease(
        self, adapter: str, demand: Demand, duration: timedelta, since: datetime | None
    ) -> Lease | None:
        """See :meth:`memory.purging.Ledger.lease`."""
        now = self._clock()
        free = sorted(
            (owed.attempts, artefact_id)
            for (name, artefact_id), owed in self._shelf.debts.items()
            if name == adapter
            and owed.lease is None
            and owed not in self._asked
            and owed.people.isdisjoint(self._shelf.held)
            and (demand.people is None or not owed.people.isdisjoint(demand.people))
            and (not demand.due_only or owed.next_try_at is None or owed.next_try_at <= now)
        )[:BATCH]
        if not free:
            return None
        attempts, token = free[0][0], uuid4()
        debts = []
        for tried, artefact_id in free:
            if tried == attempts:
                artefact = (adapter, artefact_id)
                owed = self._shelf.debts[artefact]
                self._take(owed, token)
                debt = Debt(
                    artefact_id=artefact_id,
                    erasure_id=owed.erasure_id,
                    retained=self._elsewhere(artefact),
                )
                debts.append(debt)
        return Lease(token=token, debts=tuple(debts), attempts=attempts + 1, taken_at=now)

    def _take(self, owed: Owed, token: UUID) -> None:
        owed.lease = token
        owed.attempts += 1
        self._asked.add(owed)

    async def settle(self, adapter: str, lease: Lease, artefact_ids: Sequence[str]) -> int:
        """See :meth:`memory.purging.Ledger.settle`."""
        mine = self._leased(adapter, lease, artefact_ids)
        for artefact_id in mine:
            del self._shelf.debts[adapter, artefact_id]
        now = self._clock()
        for erasure_id, count in Counter(owed.erasure_id for owed in mine.values()).items():
            self._shelf.purged.append(
                Purging(
                    adapter=adapter, erasure_id=erasure_id, artefacts=count, at=now, settled=True
                )
            )
        return len(mine)

    async def give_back(
        self, adapter: str, lease: Lease, artefact_ids: Sequence[str], error: str | None
    ) -> None:
        """See :meth:`memory.purging.Ledger.give_back`."""
        next_try_at = self._clock() + backoff(lease.attempts)
        for owed in self._leased(adapter, lease, artefact_ids).values():
            owed.lease = None
            if error is None:
                owed.attempts -= 1
            else:
                owed.last_error = error
                owed.next_try_at = next_try_at

    def _leased(self, adapter: str, lease: Lease, artefact_ids: Sequence[str]) -> dict[str, Owed]:
        """Return what is this lease's still: a debt may have been renewed meanwhile."""
        found = {item: self._shelf.debts.get((adapter, item)) for item in artefact_ids}
        return {
            item: owed
            for item, owed in found.items()
            if owed is not None and owed.lease == lease.token
        }
