"""Erasing in one transaction, and the purges that follow outside it."""

from __future__ import annotations

from memory.ports import Demand, Order, Sweep
from memory.purging import drain
from memory.repositories import erasures, purges
from memory.stores.postgres.base import Base
from memory.stores.postgres.draining import TableLedger
from memory.stores.postgres.sweeping import sweep_all
from memory.types import Purged, Receipt

__all__ = ["Erasing"]


class Erasing(Base):
    """The methods of :class:`memory.ports.Store` that erase."""

    async def erase(self, tenant_key: str, order: Order) -> Receipt:
        """See :meth:`memory.ports.Store.erase`; the caller's transaction is READ COMMITTED."""
        sealed = not self._access.joined
        return await self._access.several(
            lambda c: erasures.forget(c, tenant_key, order, sealed=sealed)
        )

    async def sweep(self, tenant_key: str, sweep: Sweep) -> Receipt:
        """See :meth:`memory.ports.Store.sweep`: each batch is a transaction of its own.

        In the caller's transaction all of them are in that one.
        """
        return await sweep_all(self._access, tenant_key, sweep)

    async def purge(self, tenant_key: str, demand: Demand) -> Purged:
        """See :meth:`memory.ports.Store.purge`."""
        owed = await self._access.single(lambda c: purges.owing(c, tenant_key, demand.people))
        if not owed or not self.calls_indexes:
            return Purged(settled=0, adapters=owed, outstanding=owed)
        able = {name: demand.indexes[name] for name in owed if name in demand.indexes}
        settled = await drain(TableLedger(self._access, tenant_key), able, demand)
        outstanding = await self._access.single(
            lambda c: purges.owing(c, tenant_key, demand.people)
        )
        return Purged(settled=settled, adapters=owed, outstanding=outstanding)
