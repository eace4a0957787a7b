"""What LangGraph's store finds: by text, filter, page and namespace."""

from __future__ import annotations

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp

from langgraphed import DANA, keys
from memory import InvalidInputError
from memory.integrations import langgraph_reading
from memory.integrations.langgraph import ErasableStore

pytestmark = pytest.mark.parametrize("open_store", ["in_memory", "postgres"], indirect=True)


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
