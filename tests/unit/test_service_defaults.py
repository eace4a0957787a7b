"""How much a verb returns, erases or reads at a time, where nobody says."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest

from memory import InMemoryStore, Memory


def items(count):
    return [
        {"text": f"turn {n}", "subject_keys": "dana", "record_key": f"dana/{n}"}
        for n in range(count)
    ]


@pytest.fixture
def shop():
    return Memory(subject_pepper="p").for_tenant("shop")


async def test_lists_end_at_a_hundred_a_recall_at_eight_and_a_graph_at_two_hundred(shop):
    await shop.remember_many(items=items(201))
    assert len(await shop.records()) == len(await shop.record_keys()) == 100
    assert len((await shop.recall(text="turn")).hits) == 8
    graph = await shop.lineage(subject_key="dana")
    assert (len(graph.nodes), graph.records) == (200, 201)
    assert len(await shop.records(limit=1_000)) == len(await shop.record_keys(limit=1_000)) == 201


async def test_evidence_ends_at_the_hundred_newest(shop):
    for _ in range(101):
        await shop.forget(subject_key="dana")
    assert [stone.seq for stone in await shop.erasure_history()] == [*range(101, 1, -1)]
    assert len((await shop.timeline(subject_key="dana")).moments) == 100
    for _ in range(101):
        await shop.hold(subject_key="eve")
    assert [decision.seq for decision in await shop.decisions()] == [*range(101, 1, -1)]
    assert len(await shop.erasure_history(limit=1_000)) == 101
    assert len(await shop.decisions(limit=1_000)) == 101


class Counting(InMemoryStore):
    """Notes how much is asked for at a time."""

    def __init__(self):
        super().__init__()
        self.asked = Counter()
        self.demands = []
        self.batches = []

    async def exported(self, tenant_key, subject_key, ids, *, vectors):
        assert all(isinstance(one, UUID) for one in ids)
        self.asked[f"records {len(ids)}"] += 1
        return await super().exported(tenant_key, subject_key, ids, vectors=vectors)

    async def tombstones_of(self, tenant_key, subject_hash, after, limit):
        self.asked[f"tombstones {limit}"] += 1
        return await super().tombstones_of(tenant_key, subject_hash, after, limit)

    async def decisions_of(self, tenant_key, subject_hash, after, limit):
        self.asked[f"decisions {limit}"] += 1
        return await super().decisions_of(tenant_key, subject_hash, after, limit)

    async def sweep(self, tenant_key, sweep):
        self.batches.append(sweep.batch)
        return await super().sweep(tenant_key, sweep)

    async def purge(self, tenant_key, demand):
        self.demands.append((demand.timeout, demand.due_only, demand.people))
        return await super().purge(tenant_key, demand)


async def test_an_export_reads_a_hundred_records_and_a_thousand_pieces_of_evidence_at_a_time():
    store = Counting()
    shop = Memory(store, subject_pepper="p").for_tenant("shop")
    await shop.remember_many(items=items(201))
    assert len([entry async for entry in shop.export(subject_key="dana")]) == 201
    assert store.asked == {
        "records 100": 2,
        "records 1": 1,
        "tombstones 1000": 1,
        "decisions 1000": 1,
    }


async def test_a_sweep_takes_a_thousand_records_at_a_time():
    store = Counting()
    shop = Memory(store, subject_pepper="p").for_tenant("shop")
    await shop.expire()
    await shop.forget_tenant(confirm="shop")
    await shop.expire(batch=7)
    assert store.batches == [1_000, 1_000, 7]


async def test_an_index_has_thirty_seconds_and_a_call_by_hand_waits_for_no_time():
    store = Counting()
    await Memory(store, subject_pepper="p").purge_outstanding("shop")
    assert store.demands == [(timedelta(seconds=30), False, None)]
