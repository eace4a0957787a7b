"""LangGraph's store interface over both stores, each behaviour on its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from memory import (
    HashingEmbedder,
    InvalidInputError,
    LegalHoldError,
    Memory,
    PartialErasureError,
    SubjectBlockedError,
)
from memory.integrations import langgraph_reading
from memory.integrations.langgraph import ErasableStore

pytestmark = pytest.mark.parametrize("open_store", ["in_memory", "postgres"], indirect=True)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DANA = ("users", "dana")
MakeStore = Callable[..., ErasableStore]


@pytest.fixture
def make(memory_factory) -> MakeStore:
    def made(memory: Memory | None = None, **options: Any) -> ErasableStore:
        tenant = (memory or memory_factory()).for_tenant(options.pop("tenant_key", "acme"))
        return ErasableStore(tenant, **{"subjects": 1, **options})

    return made


@pytest.fixture
def store(make: MakeStore) -> ErasableStore:
    return make()


def keys(found) -> list[str]:
    return [item.key for item in found]


async def test_an_item_comes_back_with_its_value_and_times(make, memory_factory) -> None:
    now = [NOW]
    clock = lambda: now[0]  # noqa: E731
    store = make(memory_factory(clock=clock), clock=clock)
    value = {"a": 1, "b": [1.5, None, {"c": "d"}], "é": True}
    await store.aput(DANA, "k..1", value)
    now[0] += timedelta(hours=1)
    first = await store.aget(DANA, "k..1")
    assert (first.namespace, first.key, first.value) == (DANA, "k..1", value)
    assert (first.created_at, first.updated_at) == (NOW, NOW)
    await store.aput(DANA, "k..1", {"a": 2})
    second = await store.aget(DANA, "k..1")
    assert (second.value, second.created_at, second.updated_at) == ({"a": 2}, NOW, now[0])
    assert await store.aget(("users", "dana", "k"), "1") is None
    assert await store.aget(DANA, "k") is None


async def test_what_put_replaced_answers_nothing_any_more(make, memory_factory) -> None:
    memory = memory_factory(embedder=HashingEmbedder())
    for strategy in ("vector", "lexical", "keyword", "hybrid"):
        store = make(memory, strategy=strategy, tenant_key=strategy)
        await store.aput(DANA, "k", {"says": "zebra"})
        await store.aput(DANA, "k", {"says": "heron"})
        [hit] = await store.asearch(("users",), query="zebra says heron")
        assert hit.value == {"says": "heron"}
        assert await store.asearch(DANA, filter={"says": "zebra"}) == []
        if strategy in ("lexical", "keyword"):
            assert await store.asearch(DANA, query="zebra") == []
        else:
            assert [i.value for i in await store.asearch(DANA, query="zebra")] == [hit.value]
        record = await store.arecord(DANA, "k")
        assert record is not None
        versions = await memory.history(strategy, record_key=record.record_key)
        assert [version.version for version in versions] == [2, 1]


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


async def test_whom_an_item_is_about_is_said_or_refused(make) -> None:
    async def about(store, namespace):
        await store.aput(namespace, "k", {"team": ["p", "q"]})
        return (await store.arecord(namespace, "k")).subject_keys

    assert await about(make(subjects=None), ("m", "customer:dana", "company:acme")) == (
        "company:acme",
        "customer:dana",
    )
    assert await about(make(subjects=-1), ("a", "b")) == ("b",)
    team = make(subjects=lambda namespace, key, value: value["team"])
    assert await about(team, ("t",)) == ("p", "q")
    for store, namespace in ((make(subjects=None), DANA), (make(subjects=2), DANA)):
        with pytest.raises(InvalidInputError) as refused:
            await store.aput(namespace, "k", {})
        assert refused.value.field == "namespace"
        assert "users" not in str(refused.value)
    with pytest.raises(InvalidInputError):
        make(subjects="users")


async def test_a_value_is_masked_and_found_by_what_it_was(store: ErasableStore) -> None:
    await store.aput(DANA, "k", {"tel": "98450 12345", "note": "call"})
    item = await store.aget(DANA, "k")
    assert item.value == {"tel": "[PHONE:****2345]", "note": "call"}
    assert keys(await store.asearch(DANA, filter={"tel": "98450 12345"})) == ["k"]
    assert keys(await store.asearch(DANA, filter={"tel": {"$ne": "98450 12345"}})) == []


async def test_filters_compare_as_theirs_do(store: ErasableStore) -> None:
    for n in range(5):
        value = {"n": n, "at": {"day": f"2024-01-0{n}", "x": [n]}, **({"odd": 1} if n % 2 else {})}
        await store.aput(DANA, str(n), value)
    for filter_, expected in (
        ({"n": 3}, "3"),
        ({"n": {"$eq": 3}}, "3"),
        ({"n": {"$ne": 3}}, "4210"),
        ({"n": {"$gt": 1, "$lte": 3}}, "32"),
        ({"n": {"$gte": 2.5}}, "43"),
        ({"n": {"$lt": 1}}, "0"),
        ({"at": {"day": {"$gt": "2024-01-02"}}}, "43"),
        ({"at": {"x": [2]}, "n": 2}, "2"),
        ({"odd": None}, "420"),
        ({"odd": {"$ne": None}}, "31"),
        ({"none": 1}, ""),
    ):
        assert "".join(keys(await store.asearch((), filter=filter_))) == expected, filter_
    with pytest.raises(ValueError, match="Unsupported operator"):
        await store.asearch((), filter={"n": {"$in": [1]}})


async def test_search_pages_within_a_namespace_newest_first(store: ErasableStore) -> None:
    for n in range(6):
        await store.aput(("users", "dana", "x" if n % 2 else "y"), str(n), {"n": n})
    await store.aput(("users", "dana2"), "other", {"n": 9})
    await store.aput(("users", "dana-"), "other", {"n": 9})
    assert keys(await store.asearch(DANA)) == ["5", "4", "3", "2", "1", "0"]
    assert keys(await store.asearch(DANA, limit=2, offset=3)) == ["2", "1"]
    assert keys(await store.asearch(("users", "dana", "x"))) == ["5", "3", "1"]
    assert await store.asearch(DANA, limit=0) == []
    assert await store.asearch(DANA, offset=7) == []
    assert len(await store.asearch((), limit=20)) == 8
    assert keys(await store.asearch(DANA, query="n", limit=2, offset=5, filter={"n": {"$lt": 9}}))
    with pytest.raises(InvalidInputError):
        await store.asearch(DANA, query="n", limit=1000, offset=1)


async def test_more_than_a_page_is_read_page_by_page(store, monkeypatch) -> None:
    monkeypatch.setattr(langgraph_reading, "_PAGE", 3)
    puts = [PutOp((*DANA, str(n % 2)), str(n), {"n": n}) for n in range(10)]
    await store.abatch([*puts, PutOp(("zoo", "z"), "k", {})])
    assert keys(await store.asearch(DANA, limit=2, offset=7)) == ["2", "1"]
    assert keys(await store.asearch(DANA, limit=9, offset=8)) == ["1", "0"]
    found = await store.abatch([GetOp(op.namespace, op.key) for op in puts])
    assert keys(found) == [op.key for op in puts]
    assert await store.alist_namespaces() == [(*DANA, "0"), (*DANA, "1"), ("zoo", "z")]
    assert await store.alist_namespaces(max_depth=1, limit=1, offset=1) == [("zoo",)]


async def test_only_indexed_fields_are_searched(make, memory_factory, plugs) -> None:
    embedder = plugs.RecordingEmbedder()
    store = make(memory_factory(embedder=embedder), fields=["text", "tags[*]"])
    await store.aput(DANA, "a", {"text": "apple", "tags": ["red", "ripe"], "secret": "safe"})
    await store.aput(DANA, "b", {"text": "bread", "note": "brown"}, index=["note"])
    await store.aput(DANA, "c", {"text": "cherry"}, index=False)
    await store.aput(DANA, "d", {"other": "date"})
    assert embedder.calls == [["apple\nred\nripe"], ["brown"]]
    found = await store.asearch(DANA, query="apple red ripe")
    assert keys(found) == ["a", "b"]
    assert found[0].score == pytest.approx(1)
    assert keys(await store.asearch(DANA)) == ["d", "c", "b", "a"]
    assert [item.score for item in await store.asearch(DANA, query="")] == [None] * 4
    words = make(fields=["text"], tenant_key="words")
    await words.aput(DANA, "a", {"text": "apple", "secret": "safe"})
    assert keys(await words.asearch(DANA, query="apple")) == ["a"]
    assert await words.asearch(DANA, query="safe") == []


async def test_namespaces_are_listed_by_prefix_suffix_wildcard_and_depth(store) -> None:
    for path in ("a.b.c", "a.b.d.e", "a.b.d.i", "a.b.f", "a.c.f", "b.a.f", "a-b.x", "users.123"):
        for key in "xyz":
            await store.aput(tuple(path.split(".")), key, {})

    async def listed(**options):
        return [".".join(found) for found in await store.alist_namespaces(**options)]

    every = ["a-b.x", "a.b.c", "a.b.d.e", "a.b.d.i", "a.b.f", "a.c.f", "b.a.f", "users.123"]
    assert await listed() == every
    assert await listed(prefix=("a", "b")) == every[1:5]
    assert await listed(suffix=("f",)) == ["a.b.f", "a.c.f", "b.a.f"]
    assert await listed(prefix=("a",), suffix=("f",)) == ["a.b.f", "a.c.f"]
    assert await listed(prefix=("a", "b"), max_depth=3) == ["a.b.c", "a.b.d", "a.b.f"]
    assert await listed(max_depth=1) == ["a-b", "a", "b", "users"]
    assert await listed(suffix=("f",), max_depth=1) == ["a", "b"]
    assert await listed(prefix=("a", "b"), limit=2, offset=1) == every[2:4]
    assert await listed(prefix=("a", "*", "f")) == ["a.b.f", "a.c.f"]
    assert await listed(prefix=("*", "b"), suffix=("*", "i")) == ["a.b.d.i"]
    assert await listed(prefix=("none",)) == []
    await store.adelete(("a", "c", "f"), "x")
    assert "a.c.f" in await listed()
    for key in "yz":
        await store.adelete(("a", "c", "f"), key)
    assert "a.c.f" not in await listed()
    with pytest.raises(ValueError, match="match type"):
        await store.abatch([ListNamespacesOp((MatchCondition("infix", ("a",)),))])


async def test_a_batch_reads_what_was_there_before_it(store: ErasableStore) -> None:
    await store.aput(DANA, "old", {"n": 0})
    results = await store.abatch(
        [
            PutOp(DANA, "new", {"n": 1}),
            PutOp(DANA, "old", None),
            GetOp(DANA, "old"),
            GetOp(DANA, "new"),
            SearchOp(DANA),
            PutOp(DANA, "new", {"n": 2}),
            ListNamespacesOp(),
        ]
    )
    assert [type(result).__name__ for result in results] == [
        "NoneType", "NoneType", "Item", "NoneType", "list", "NoneType", "list",
    ]  # fmt: skip
    assert keys(results[4]) == ["old"]
    found = await store.asearch(DANA)
    assert [(item.key, item.value) for item in found] == [("new", {"n": 2})]
    assert await store.abatch([]) == []


async def test_what_has_expired_is_hidden_and_reading_postpones_it(make, memory_factory) -> None:
    now = [NOW]
    memory = memory_factory(clock=lambda: now[0])
    store = make(memory, clock=lambda: now[0], ttl={"default_ttl": 60})

    def later(minutes: float) -> None:
        now[0] += timedelta(minutes=minutes)

    await store.aput(DANA, "get", {"n": 1})
    await store.aput(DANA, "search", {"n": 2})
    await store.aput(DANA, "unread", {"n": 3})
    await store.aput(DANA, "never", {"n": 4}, ttl=None)
    await store.aput(DANA, "short", {"n": 5}, ttl=0.5)
    later(50)
    assert await store.aget(DANA, "short") is None
    assert (await store.aget(DANA, "get")).value == {"n": 1}
    assert await store.aget(DANA, "unread", refresh_ttl=False) is not None
    assert keys(await store.asearch(DANA, filter={"n": 2})) == ["search"]
    later(50)
    found = await store.asearch(DANA, refresh_ttl=False)
    assert sorted(keys(found)) == ["get", "never", "search"]
    assert await store.aget(DANA, "unread", refresh_ttl=True) is None
    later(20)
    assert keys(await store.asearch(())) == ["never"]
    assert await store.sweep_ttl() == 4
    assert await store.sweep_ttl() == 0
    assert {t.reason for t in await memory.erasure_history("acme")} == {"retention_policy"}
    later(10**6)
    assert keys(await store.asearch(())) == ["never"]
    # What no put wrote fails no reading.
    line = (await store.arecord(DANA, "never")).record_key
    for odd in (1e300, True, "5"):
        put = {"kind": "langgraph", "record_key": line, "metadata": {"value": {}, "ttl": odd}}
        await memory.remember("acme", text="x", subject_keys="dana", **put)
        assert keys(await store.asearch(())) == ["never"]


async def test_synchronous_calls_are_for_other_threads(make, memory_factory) -> None:
    store = make()
    for call in (
        lambda: store.put(DANA, "k", {}),
        lambda: store.get(DANA, "k"),
        lambda: store.delete(DANA, "k"),
        lambda: store.search(DANA),
        lambda: store.list_namespaces(),
        lambda: store.batch([GetOp(DANA, "k")]),
    ):
        with pytest.raises(asyncio.InvalidStateError):
            call()
        # Before it has been used in a loop it knows none to work in.
        with pytest.raises(asyncio.InvalidStateError):
            await asyncio.to_thread(call)
    await store.aput(DANA, "k", {"n": 1})
    with pytest.raises(asyncio.InvalidStateError):
        store.get(DANA, "k")
    await asyncio.to_thread(store.put, DANA, "k", {"n": 2})
    assert (await asyncio.to_thread(store.get, DANA, "k")).value == {"n": 2}
    assert keys(await asyncio.to_thread(store.search, DANA)) == ["k"]
    await asyncio.to_thread(store.delete, DANA, "k")
    assert await asyncio.to_thread(store.list_namespaces) == []


@pytest.mark.parametrize("namespace", [("foo.bar",), ("foo\x00",), ("foo", ""), ("foo", 1)])
async def test_wrong_labels_are_refused_in_every_operation(store, namespace) -> None:
    await store.aput(("foo", "bar"), "key", {"n": 1})
    for op in (
        GetOp(namespace, "key"),
        PutOp(namespace, "key", {"n": 2}),
        PutOp(namespace, "key", None),
        SearchOp(namespace),
        ListNamespacesOp((MatchCondition("suffix", namespace),)),
    ):
        with pytest.raises(InvalidNamespaceError):
            await store.abatch([op])
    with pytest.raises(InvalidNamespaceError):
        await store.arecord(namespace, "key")
    assert (await store.aget(("foo", "bar"), "key")).value == {"n": 1}


async def test_of_puts_at_once_the_later_one_holds(make, memory_factory) -> None:
    store = make()
    await asyncio.gather(*(store.aput(DANA, "k", {"n": n}) for n in range(20)))
    assert (await store.aget(DANA, "k")).value == {"n": 19}
    # Two processes have two stores: either's value, and no error.
    other = make()
    await asyncio.gather(*(s.aput(DANA, "k", {"n": n}) for n in range(5) for s in (store, other)))
    assert (await other.aget(DANA, "k")).value == {"n": 4}


async def test_a_refused_put_fails_no_other(make, memory_factory) -> None:
    memory = memory_factory()
    await memory.forget("acme", subject_key="barred", block_future=True)
    store = make(memory)
    outcomes = await asyncio.gather(
        store.aput(DANA, "a", {}),
        store.aput(("users", "barred"), "b", {}),
        store.aput(DANA, "c", {"big": "x" * 70_000}),
        store.aput(DANA, "d", {"set": {1}}),
        store.aput(DANA, "e", {}),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [
        type(None), SubjectBlockedError, InvalidInputError, InvalidInputError, type(None),
    ]  # fmt: skip
    assert keys(await store.asearch(())) == ["e", "a"]


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
