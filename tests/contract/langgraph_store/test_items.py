"""Items of LangGraph's store: their values and times, batches, and puts that are refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from langgraphed import DANA, NOW, keys
from memory import HashingEmbedder, InvalidInputError, SubjectBlockedError
from memory.integrations.langgraph import ErasableStore

pytestmark = pytest.mark.parametrize("open_store", ["in_memory", "postgres"], indirect=True)


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
