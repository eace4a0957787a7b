"""What goes from LangGraph's store, what a hold keeps, and what is nobody's item."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from langgraphed import DANA, NOW, keys
from memory import LegalHoldError, PartialErasureError

pytestmark = pytest.mark.parametrize("open_store", ["in_memory", "postgres"], indirect=True)


async def test_delete_erases_every_version_and_what_was_derived(make, memory_factory) -> None:
    memory = memory_factory()
    store = make(memory)
    acme = memory.for_tenant("acme")
    await store.aput(DANA, "k", {"n": 1}, ttl=0.001)
    await asyncio.sleep(0.1)
    await store.aput(DANA, "k", {"n": 2})
    record = await store.arecord(DANA, "k")
    await acme.derive(kind="summary", text="two", sources=record)
    await store.aput(DANA, "k", {"n": 3})
    await store.aput(DANA, "kk", {"n": 4})
    await store.adelete(DANA, "k")
    assert await store.aget(DANA, "k") is None
    assert await acme.history(record_key=record.record_key, include_expired=True) == []
    assert keys(await store.asearch(())) == ["kk"]
    assert [r.kind for r in await acme.records(include_superseded=True)] == ["langgraph"]
    tombstones = await acme.erasure_history()
    assert [(t.memories, t.derived, t.reason) for t in tombstones] == [
        (1, 0, "operator"),
        (1, 1, "operator"),
        (1, 0, "operator"),
    ][::1]
    await store.adelete(DANA, "k")
    assert len(await acme.erasure_history()) == 3
    await store.aput(DANA, "k", {"n": 5})
    assert (await store.aget(DANA, "k")).value == {"n": 5}


async def test_forgetting_a_person_takes_all_their_items_and_nobody_elses(make) -> None:
    store = make()
    memory = store.tenant
    for namespace in (DANA, ("memories", "dana", "work"), ("users", "eve")):
        await store.aput(namespace, "k", {"in": namespace[0]})
        await store.aput(namespace, "k", {"in": namespace[0], "again": True})
    kept = await store.aget(("users", "eve"), "k")
    receipt = await memory.forget(subject_key="dana")
    assert receipt.counts.memories == 4
    assert await store.aget(DANA, "k") is None
    assert await store.alist_namespaces() == [("users", "eve")]
    assert await store.aget(("users", "eve"), "k") == kept


async def test_a_hold_keeps_an_item_from_being_deleted(make, memory_factory, plugs) -> None:
    memory = memory_factory()
    store = make(memory)
    await store.aput(DANA, "k", {"n": 1})
    await store.aput(DANA, "k", {"n": 2})
    await memory.hold("acme", subject_key="dana")
    with pytest.raises(LegalHoldError):
        await store.adelete(DANA, "k")
    assert (await store.aget(DANA, "k")).value == {"n": 2}
    # An index that fails: the database is clean, and the caller is told.
    broken = memory_factory(indexes=[plugs.Index("vectors", broken=True)])
    other = make(broken, tenant_key="other")
    for n in range(2):
        await other.aput(DANA, "k", {"n": n})
        record = await other.arecord(DANA, "k")
        await broken.register_artefact(
            "other", adapter="vectors", artefact_id=f"{n}", sources=record
        )
    with pytest.raises(PartialErasureError):
        await other.adelete(DANA, "k")
    assert await broken.records("other", include_superseded=True) == []


async def test_a_hosts_own_records_are_no_items(make, memory_factory) -> None:
    memory = memory_factory()
    store = make(memory)
    await store.aput(DANA, "k", {"n": 1})
    for key in ("users.dana..x", "langgraphs", "langgraph:odd", None):
        await memory.remember("acme", text="x", subject_keys="dana", record_key=key)
        await memory.remember("acme", text="x", subject_keys="dana", kind="langgraph")
    item = await store.arecord(DANA, "k")
    await memory.derive("acme", kind="langgraph", text="x", sources=item)
    assert keys(await store.asearch(())) == keys(await store.asearch(DANA)) == ["k"]
    assert keys(await store.asearch((), limit=1)) == ["k"]
    assert await store.asearch((), query="x") == []
    assert await store.alist_namespaces() == [DANA]


async def test_a_sweep_takes_whole_items_and_leaves_living_ones_old_versions(
    make, memory_factory
) -> None:
    now = [NOW]
    memory = memory_factory(clock=lambda: now[0])
    store = make(memory, clock=lambda: now[0])
    for key, ttl in (("swept", 1), ("expired", 1), ("living", None), ("held", 1)):
        namespace = ("users", "eve" if key == "held" else "dana")
        await store.aput(namespace, key, {"n": "OLD"})
        await store.aput(namespace, key, {"n": "NEW"}, ttl=ttl)
    await memory.hold("acme", subject_key="eve")
    now[0] += timedelta(minutes=2)
    await store.aput(DANA, "late", {"n": "OLD"})
    await store.aput(DANA, "late", {"n": "NEW"}, ttl=1)
    # A nightly job of the host's own takes the newest versions of two items first.
    assert (await memory.expire("acme")).counts.memories == 2
    now[0] += timedelta(minutes=2)
    assert await store.sweep_ttl() == 4
    assert await store.sweep_ttl() == 0
    left = await memory.records("acme", include_superseded=True)
    assert [(r.record_key, r.metadata["value"]["n"]) for r in left] == [
        ("langgraph:users.eve..held", "OLD"),
        ("langgraph:users.dana..living", "NEW"),
        ("langgraph:users.dana..living", "OLD"),
    ]
    assert {t.reason for t in await memory.erasure_history("acme")} == {"retention_policy"}
    assert [d.action for d in await memory.decisions("acme")] == ["hold"]


async def test_stores_of_two_kinds_share_no_item(make, memory_factory) -> None:
    memory = memory_factory()
    one, two = make(memory), make(memory, kind="agents")
    same = make(memory, kind="agents")
    await one.aput(DANA, "k", {"of": "one"})
    assert await two.aget(DANA, "k") is None
    assert await two.asearch(()) == await two.asearch(DANA) == await two.alist_namespaces() == []
    await two.aput(DANA, "k", {"of": "two"})
    await two.aput(("users", "eve"), "k", {"of": "two"})
    assert [(await store.aget(DANA, "k")).value["of"] for store in (one, two, same)] == [
        "one", "two", "two",
    ]  # fmt: skip
    assert await one.alist_namespaces() == [DANA]
    await two.adelete(DANA, "k")
    assert (await one.aget(DANA, "k")).value == {"of": "one"}
    assert keys(await two.asearch(())) == ["k"]
