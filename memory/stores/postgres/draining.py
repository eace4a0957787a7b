"""The debts of a tenant in PostgreSQL: each step is a statement, and holds no connection after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from memory.database import Access
from memory.ports import Demand
from memory.purging import Lease, backoff
from memory.repositories import purges

__all__ = ["TableLedger"]


class TableLedger:
    """See :class:`memory.purging.Ledger`."""

    def __init__(self, access: Access, tenant_key: str) -> None:
        self._access = access
        self._tenant_key = tenant_key

    async def lease(
        self, adapter: str, demand: Demand, duration: timedelta, since: datetime | None
    ) -> Lease | None:
        """See :meth:`memory.purging.Ledger.lease`."""
        lasting = self._access.lasting
        return await self._access.single(
            lambda c: purges.lease(
                c, self._tenant_key, adapter, demand, duration, since, lasting=lasting
            )
        )

    async def settle(self, adapter: str, lease: Lease, artefact_ids: Sequence[str]) -> int:
        """See :meth:`memory.purging.Ledger.settle`."""
        wanted = set(artefact_ids)
        debts = [debt for debt in lease.debts if debt.artefact_id in wanted]
        return await self._access.single(
            lambda c: purges.settle(c, self._tenant_key, adapter, debts)
        )

    async def give_back(
        self, adapter: str, lease: Lease, artefact_ids: Sequence[str], error: str | None
    ) -> None:
        """See :meth:`memory.purging.Ledger.give_back`."""
        wait = backoff(lease.attempts)
        await self._access.single(
            lambda c: purges.give_back(
                c, self._tenant_key, adapter, lease.token, artefact_ids, error, wait
            )
        )
