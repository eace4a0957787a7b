"""The in-memory store by a clock of its own: when a purge that failed is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memory import InMemoryStore, Memory, PartialErasureError
from memory.ports import Demand
from memory.purging import backoff
from memory.stores.in_memory.draining import ShelfLedger
from memory.stores.in_memory.shelf import Owed, Shelf

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Index:
    name = "index"

    def __init__(self):
        self.fault, self.asked = OSError(), 0

    async def purge(self, artefact_ids):
        self.asked += 1
        if self.fault:
            raise self.fault
        return len(artefact_ids)

    async def present(self, artefact_ids):
        return set()


async def test_a_purge_that_failed_is_due_again_when_its_time_has_come(monkeypatch):
    monkeypatch.setattr("memory.purging.random.uniform", lambda *_: 1.0)
    now, index = NOON, Index()
    store = InMemoryStore(clock=lambda: now)
    acme = Memory(store, indexes=[index], subject_pepper="p").for_tenant("acme")
    record = (await acme.remember(text="x", subject_keys="ann")).record
    await acme.register_artefact(adapter="index", artefact_id="a", sources=record)
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key="ann")
    now = NOON + backoff(1) - timedelta(microseconds=1)
    assert (await acme.purge_outstanding(due_only=True)).settled == 0
    now = NOON + backoff(1)
    assert (await acme.purge_outstanding(due_only=True)).settled == 0
    assert index.asked == 2
    index.fault, now = None, now + backoff(2)
    assert (await acme.purge_outstanding(due_only=True)).settled == 1


async def test_a_purge_that_was_called_off_counts_for_no_try():
    owed = Owed(people=frozenset({"ann"}), erasure_id=UUID(int=1), since=NOON)
    shelf = Shelf(tenant_key="acme")
    shelf.debts["index", "a"] = owed
    ledger = ShelfLedger(shelf, lambda _: False, lambda: NOON)
    demand = Demand(indexes={}, timeout=timedelta(minutes=1))
    lease = await ledger.lease("index", demand, timedelta(minutes=1), None)
    assert (lease.attempts, owed.attempts) == (1, 1)
    await ledger.give_back("index", lease, ["a"], None)
    assert (owed.attempts, owed.lease, owed.last_error) == (0, None, None)
