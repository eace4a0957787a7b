"""Any sequence of operations gives what LangGraph's own in-memory store gives, and a graph runs.

Where the two are meant to differ, the sequences stay away, or the comparison does: theirs lists
namespaces that were asked for or are empty by now, returns items in the order of their keys' first
use, raises where a value has no order, and takes True for 1.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore as Theirs

from memory import InMemoryStore, Memory, PostgresStore
from memory.integrations.langgraph import ErasableStore
from memory.ports import Store
from servers import Database

LABELS = st.sampled_from(["a", "b", "ab", "c d", "é"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "k.l", "..", "1"])
SCALARS = st.none() | st.integers(2, 5) | st.sampled_from(["x", "y", 2.5, ""])
VALUES = st.fixed_dictionaries(
    {"n": st.integers(2, 9) | st.sampled_from([2.5, 4.0])},
    optional={
        "s": SCALARS,
        "l": st.lists(SCALARS, max_size=2),
        "d": st.fixed_dictionaries({"s": SCALARS}),
    },
)
ORDERED = st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]), st.integers(2, 9), min_size=1
)
UNORDERED = st.dictionaries(st.sampled_from(["$eq", "$ne"]), SCALARS, min_size=1)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "n": ORDERED | st.integers(2, 9),
        "s": UNORDERED | SCALARS,
        "l": st.lists(SCALARS, max_size=2),
        # Under an object that is not there, theirs finds nothing: not even that it is None.
        "d": st.fixed_dictionaries({"s": st.integers(2, 5) | st.sampled_from(["x", "y", 2.5])}),
        "none": SCALARS,
    },
)
PATHS = st.lists(LABELS | st.just("*"), max_size=2).map(tuple)
CONDITIONS = st.lists(
    st.tuples(st.sampled_from(["prefix", "suffix"]), PATHS).map(lambda pair: MatchCondition(*pair)),
    max_size=2,
).map(tuple)
PUTS = st.tuples(NAMESPACES, KEYS, VALUES).map(lambda put: PutOp(*put))
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
DEPTHS = st.none() | st.integers(1, 3)
OPERATIONS = st.one_of(
    PUTS,
    PUTS,
    st.tuples(NAMESPACES, KEYS).map(lambda item: PutOp(*item, None)),
    st.tuples(NAMESPACES, KEYS).map(lambda item: GetOp(*item)),
    st.tuples(PREFIXES, FILTERS).map(lambda search: SearchOp(*search, limit=100)),
    st.tuples(CONDITIONS, DEPTHS, st.integers(0, 9)).map(lambda page: ListNamespacesOp(*page)),
)
BATCHES = st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), min_size=1, max_size=8)


def plain(result: Any, theirs: Theirs) -> Any:
    """What of a result can be compared."""
    if isinstance(result, list):
        return sorted(((item.namespace, item.key, item.value) for item in result), key=repr)
    return None if result is None else (result.namespace, result.key, result.value)


def listed(theirs: Theirs, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    """What they list of the namespaces that hold anything, in the order of their texts."""
    held = {namespace for namespace, items in theirs._data.items() if items}
    theirs._data = type(theirs._data)(dict, {name: theirs._data[name] for name in held})
    [found] = theirs.batch([op._replace(limit=1000)])
    return sorted(found, key=lambda name: ".".join((*name, "")))[: op.limit]


async def same(store: Store, tenant: str, batches: list[list[Any]]) -> None:
    memory = Memory(store, redactor=None, subject_pepper="pepper")
    ours = ErasableStore(memory.for_tenant(tenant), subjects=0)
    theirs = Theirs()
    for batch in batches:
        expected = [
            listed(theirs, op) if isinstance(op, ListNamespacesOp) else None for op in batch
        ]
        for op, got, want, names in zip(
            batch, await ours.abatch(batch), theirs.batch(batch), expected, strict=True
        ):
            if isinstance(op, ListNamespacesOp):
                assert got == names
            else:
                assert plain(got, theirs) == plain(want, theirs)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(BATCHES)
def test_the_in_memory_store_answers_as_theirs(batches: list[list[Any]]) -> None:
    asyncio.run(same(InMemoryStore(), "acme", batches))


def test_the_postgresql_store_answers_as_theirs(database: Database) -> None:
    with asyncio.Runner() as runner, closing(Runs(runner, database)) as runs:

        @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
        @given(BATCHES)
        def check(batches: list[list[Any]]) -> None:
            runs.run(batches)

        check()


class Runs:
    """Each run in a tenant of its own, over one pool."""

    def __init__(self, runner: asyncio.Runner, database: Database) -> None:
        self.runner = runner
        self.store = PostgresStore(database.app_url)
        self.number = 0

    def run(self, batches: list[list[Any]]) -> None:
        self.number += 1
        self.runner.run(same(self.store, f"run{self.number}", batches))

    def close(self) -> None:
        self.runner.run(self.store.close())


class State(TypedDict):
    user: str
    said: str
    answer: str


async def answer(state: State, *, store: BaseStore) -> dict[str, str]:
    """A node that remembers what was said and answers with what it knew before."""
    namespace = ("memories", state["user"])
    known = await store.asearch(namespace, query=state["said"])
    await store.aput(namespace, str(len(known)), {"said": state["said"]})
    return {"answer": "; ".join(item.value["said"] for item in known) or "nothing"}


@pytest.mark.parametrize("on_postgres", [False, True])
async def test_a_graph_remembers_until_the_person_is_forgotten(
    database: Database, on_postgres: bool
) -> None:
    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    store = PostgresStore(database.app_url) if on_postgres else InMemoryStore()
    async with Memory(store, subject_pepper="pepper") as memory:
        shop = memory.for_tenant("shop")
        graph = builder.compile(store=ErasableStore(shop))

        async def say(user: str, said: str) -> str:
            return (await graph.ainvoke({"user": user, "said": said, "answer": ""}))["answer"]

        assert await say("customer:dana", "my bike is red") == "nothing"
        assert await say("customer:eve", "my bike is blue") == "nothing"
        assert await say("customer:dana", "which bike?") == "my bike is red"
        receipt = await shop.forget(subject_key="customer:dana")
        assert receipt.counts.memories == 2
        assert await say("customer:dana", "which bike?") == "nothing"
        assert await say("customer:eve", "which bike?") == "my bike is blue"
