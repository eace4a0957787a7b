"""What the service owes whatever the store does."""

from __future__ import annotations

import asyncio
import inspect
from typing import get_args

import pytest

from memory import (
    HashingEmbedder,
    InMemoryStore,
    InvalidInputError,
    Item,
    Memory,
    PartialErasureError,
    StoreUnavailableError,
    TenantMemory,
)
from memory.service import notes
from memory.types import Reason


class Index:
    name = "index"

    def __init__(self):
        self.asked = []

    async def purge(self, artefact_ids):
        self.asked.append(artefact_ids)
        return len(artefact_ids)


class Joined(InMemoryStore):
    """A store in the caller's transaction."""

    calls_indexes = False


async def owing(memory):
    record = (await memory.remember("acme", text="x", subject_keys="p")).record
    await memory.register_artefact("acme", adapter="index", artefact_id="a", sources=record)


async def test_in_the_callers_transaction_no_index_is_called():
    index = Index()
    memory = Memory(Joined(), indexes=[index], subject_pepper="p")
    assert (await memory.forget("acme", subject_key="p")).complete
    await owing(memory)
    receipt = await memory.forget("acme", subject_key="p")
    assert (receipt.complete, receipt.outstanding, index.asked) == (False, ("index",), [])
    done = await memory.purge_outstanding("acme")
    assert (done.settled, index.asked) == (1, [["a"]])


@pytest.mark.parametrize("fault", [StoreUnavailableError("gone"), RuntimeError("a bug")])
async def test_a_receipt_reaches_the_caller_when_the_store_is_lost_after_the_erasure(fault):
    class Lost(InMemoryStore):
        async def purge(self, tenant_key, demand):
            raise fault

    memory = Memory(Lost(), indexes=[Index()], subject_pepper="p")
    await owing(memory)
    with pytest.raises(PartialErasureError) as partial:
        await memory.forget("acme", subject_key="p")
    assert partial.value.receipt.counts.memories == 1
    assert partial.value.receipt.outstanding == ("index",)
    assert partial.value.__context__ is None


async def test_the_debt_of_a_shared_artefact_is_everybodys():
    memory = Memory(InMemoryStore(), subject_pepper="p")
    record = (await memory.remember("acme", text="x", subject_keys=["ann", "bob"])).record
    await memory.register_artefact("acme", adapter="index", artefact_id="a", sources=record)
    for person in ("ann", "bob"):
        with pytest.raises(PartialErasureError):
            await memory.forget("acme", subject_key=person)
    assert (await memory.forget("acme", subject_key="cy")).complete


async def test_a_cancelled_embedding_stores_nothing():
    class Slow(HashingEmbedder):
        async def embed(self, texts):
            started.set()
            await asyncio.sleep(60)
            return await super().embed(texts)

    started = asyncio.Event()
    memory = Memory(embedder=Slow(), subject_pepper="p")
    task = asyncio.create_task(memory.remember("acme", text="x", subject_keys="p"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await memory.records("acme") == []


async def test_the_pepper_is_claimed_once_however_many_write_at_once():
    class Counting(InMemoryStore):
        claims = 0

        async def claim(self, pepper_check):
            self.claims += 1
            await asyncio.sleep(0)
            await super().claim(pepper_check)

    store = Counting()
    memory = Memory(store, subject_pepper="p")
    await asyncio.gather(
        *(memory.remember("acme", text=f"n{n}", subject_keys="p") for n in range(9))
    )
    assert store.claims == 1


async def test_a_large_batch_lets_other_tasks_run():
    memory = Memory(embedder=HashingEmbedder(8), subject_pepper="p")
    turns = 0

    async def others():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(others())
    await memory.remember_many(
        "acme", items=[{"text": f"note {n}", "subject_keys": "p"} for n in range(3_000)]
    )
    other.cancel()
    assert turns >= 10


async def test_asking_about_a_tenant_does_not_create_it():
    store = InMemoryStore()
    memory = Memory(store, subject_pepper="p")
    await memory.recall("acme", text="x")
    await memory.records("acme")
    await memory.forget("acme", subject_key="p", dry_run=True)
    await memory.purge_outstanding("acme")
    assert store._shelves == {}
    await memory.remember("acme", text="x", subject_keys="p")
    assert list(store._shelves) == ["acme"]


def test_the_bound_verbs_are_those_of_memory_with_their_docstrings():
    verbs = {
        name
        for name, verb in inspect.getmembers(Memory, inspect.isfunction)
        if not name.startswith("_") and "tenant_key" in inspect.signature(verb).parameters
    } - {"for_tenant"}
    bound = {
        name
        for name, _ in inspect.getmembers(TenantMemory, inspect.isfunction)
        if not name.startswith("_")
    }
    assert bound == verbs
    for name in verbs:
        plain, tied = getattr(Memory, name), getattr(TenantMemory, name)
        assert tied.__doc__ == plain.__doc__
        expected = [p for p in inspect.signature(plain).parameters if p != "tenant_key"]
        assert list(inspect.signature(tied).parameters) == expected


def test_the_docstring_of_forget_lists_every_reason():
    for reason in get_args(Reason):
        assert f"``{reason}``" in inspect.getdoc(Memory.forget)


async def test_the_history_of_erasures_is_newest_first_and_begins_with_no_previous():
    memory = Memory(subject_pepper="p")
    for person in ("ann", "bob"):
        await memory.forget("acme", subject_key=person)
    newest, first = await memory.erasure_history("acme", limit=1_000)
    assert (first.seq, first.previous) == (1, "")
    assert (newest.seq, newest.previous) == (2, first.digest)
    assert await memory.erasure_history("acme", limit=1) == [newest]


async def test_a_memory_closes_its_store_whatever_was_raised_inside():
    class Closing(InMemoryStore):
        closed = 0

        async def close(self):
            self.closed += 1

    async def failing():
        async with Memory(store, subject_pepper="p") as memory:
            assert isinstance(memory, Memory)
            assert store.closed == 0
            raise KeyError

    store = Closing()
    with pytest.raises(KeyError):
        await failing()
    assert store.closed == 1


def test_all_but_the_tenant_is_keyword_only():
    for name, verb in inspect.getmembers(Memory, inspect.isfunction):
        if name.startswith("_"):
            continue
        _, *parameters = inspect.signature(verb).parameters.values()
        for position, parameter in enumerate(parameters):
            if parameter.name == "tenant_key":
                assert (position, parameter.kind) == (0, parameter.POSITIONAL_OR_KEYWORD)
            else:
                assert parameter.kind == parameter.KEYWORD_ONLY, (name, parameter.name)


def test_an_item_has_the_arguments_of_remember():
    arguments = list(inspect.signature(Memory.remember).parameters)[2:]
    assert list(inspect.signature(Item).parameters) == arguments


def test_a_memory_does_not_show_its_pepper():
    memory = Memory(subject_pepper="planted")
    assert "planted" not in repr(memory) + repr(memory.for_tenant("acme"))


def test_a_note_for_a_query_without_words_says_so():
    assert "no word" in notes.NO_TERMS


@pytest.mark.parametrize("text", ["the red invoice", "?!", ""])
async def test_the_hashing_embedder_gives_unit_vectors_without_a_model(text):
    embedder = HashingEmbedder(32)
    first, again = await embedder.embed([text, text])
    assert first == again
    assert sum(value * value for value in first) == pytest.approx(1.0)
    assert (len(first), embedder.model) == (32, "hashing-32")


@pytest.mark.parametrize("dimensions", [0, 16_001])
def test_the_hashing_embedder_needs_a_sane_length(dimensions):
    with pytest.raises(InvalidInputError, match="dimensions: must be from 1 to 16,000"):
        HashingEmbedder(dimensions)
    assert HashingEmbedder(1).dimensions == 1


async def test_texts_that_share_words_get_nearer_vectors():
    a, b, c = await HashingEmbedder().embed(["red invoice paid", "the red invoice", "blue sky"])
    dot = [sum(x * y for x, y in zip(a, other, strict=True)) for other in (b, c)]
    assert dot[0] > 0.5 > dot[1]
