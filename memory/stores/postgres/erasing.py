"""Erasing in one transaction, and the purges that follow outside it."""

from __future__ import annotations

from collections.abc import Mapping

from memory.ports import DerivedIndex, Order
from memory.repositories import erasures, purges
from memory.stores.postgres.base import Base
from memory.stores.postgres.draining import drain
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

    async def purge(self, tenant_key: str, indexes: Mapping[str, DerivedIndex]) -> Purged:
        """See :meth:`memory.ports.Store.purge`."""
        owed = await self._access.single(lambda c: purges.owing(c, tenant_key))
        able = {name: indexes[name] for name in owed if name in indexes}
        settled = await drain(self._access, tenant_key, able) if self.calls_indexes else 0
        outstanding = await self._access.single(lambda c: purges.owing(c, tenant_key))
        return Purged(settled=settled, adapters=owed, outstanding=outstanding)
