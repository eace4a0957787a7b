"""Erasing batch by batch, and the one receipt of all batches."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import partial

from memory.database import Access
from memory.ports import Sweep
from memory.repositories import erasures
from memory.types import Anchor, Counts, Receipt

__all__ = ["sweep_all"]


async def sweep_all(access: Access, tenant_key: str, order: Sweep) -> Receipt:
    """Erase until nothing is due; each batch is a transaction of its own, unless it is joined."""
    total = _Total(tenant_key, order)
    # What has expired comes first; then, by age, what the policy names.
    for before in (None,) if order.before is None else (None, order.before):
        after = await _batch(access, total, before, None)
        while after is not None:
            after = await _batch(access, total, before, after)
    return total.receipt()


async def _batch(
    access: Access, total: _Total, before: datetime | None, after: str | None
) -> str | None:
    work = partial(
        erasures.sweep,
        tenant_key=total.tenant_key,
        order=total.order,
        before=before,
        after=after,
        sealed=not access.joined,
    )
    swept = await access.several(work)
    total.add(swept)
    return swept.next


class _Total:
    """The sum of the batches: each record and each artefact is counted by the one it went with."""

    def __init__(self, tenant_key: str, order: Sweep) -> None:
        self.tenant_key = tenant_key
        self.order = order
        self._started = datetime.now(UTC)
        self._counts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._adapters: set[str] = set()
        self._depth = 0
        self._held = 0
        self._anchor: Anchor | None = None

    def add(self, batch: erasures.Swept) -> None:
        """Count what one batch erased."""
        counts = batch.counts
        self._counts.update(
            memories=counts.memories,
            derived=counts.derived,
            provenance_edges=counts.provenance_edges,
            artefacts=counts.artefacts,
        )
        self._kinds.update(batch.kinds)
        self._adapters.update(batch.adapters)
        self._depth = max(self._depth, batch.cascade_depth)
        self._held += batch.held
        self._anchor = batch.anchor or self._anchor

    def receipt(self) -> Receipt:
        """Return the receipt; every adapter that lost an artefact owes a purge."""
        complete = not (self._adapters or self._held)
        adapters = tuple(sorted(self._adapters))
        return Receipt(
            erasure_id=self.order.erasure_id,
            tenant_key=self.tenant_key,
            subject_hashes=(),
            reason=self.order.reason,
            scope=self.order.scope,
            counts=Counts(**self._counts),
            kinds=dict(sorted(self._kinds.items())),
            cascade_depth=self._depth,
            bystanders=0,
            held=self._held,
            adapters=adapters,
            outstanding=adapters,
            complete=complete,
            closure="",
            anchor=self._anchor,
            erased_at=self._started,
            completed_at=datetime.now(UTC) if complete else None,
        )
