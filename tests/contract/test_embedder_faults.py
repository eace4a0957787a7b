"""An embedder that answers wrongly, fails or hangs: a clear error, and nothing is stored."""

from __future__ import annotations

import asyncio
import itertools
import math

import pytest

from memory import HashingEmbedder, InvalidInputError


class Said(list):
    """A list that says it has one element."""

    def __len__(self):
        return 1


class Endless(Said):
    def __iter__(self):
        return itertools.repeat([1.0, 0.0])


WRONG = {
    "nothing": None,
    "no vector": [],
    "one too many": [[1.0, 0.0], [1.0, 0.0]],
    "a number": [1.0],
    "a string": ["10"],
    "an empty vector": [[]],
    "not a number": [[1.0, math.nan]],
    "infinite": [[1.0, math.inf]],
    "zero": [[0.0, 0.0]],
    "beyond single precision": [[1e39, 0.0]],
    "a nested vector": [[[1.0, 0.0]]],
    "a value that is none": [[1.0, None]],
    "too long": [[1.0] * 16_001],
    "without an order": {(1.0, 0.0)},
    "by the vector": {(1.0, 0.0): "tea"},
    "more than it says": Said([[1.0, 0.0], [1.0, 0.0]]),
    "fewer than it says": Said(),
    "without an end": Endless(),
}


class Embedder(HashingEmbedder):
    """Answers rightly until it is told what to do instead."""

    def __init__(self):
        super().__init__(2)
        self.instead = None
        self.reached = asyncio.Event()

    async def embed(self, texts):
        if self.instead is None:
            return await super().embed(texts)
        self.reached.set()
        return await self.instead(texts)

    def answer(self, answer):
        async def answering(texts):
            return answer

        self.instead = answering


@pytest.fixture
def embedder():
    return Embedder()


@pytest.fixture
async def acme(memory_factory, embedder):
    return memory_factory(embedder=embedder).for_tenant("acme")


def calls(tenant, old):
    """Every verb that embeds."""
    item = {"text": "coffee", "subject_keys": "ann"}
    return {
        "remember": lambda: tenant.remember(**item),
        "remember_many": lambda: tenant.remember_many(items=[item]),
        "derive": lambda: tenant.derive(kind="summary", text="drinks", sources=old),
        "supersede": lambda: tenant.supersede(record_id=old.record_id, text="coffee"),
        "recall": lambda: tenant.recall(text="tea"),
    }


async def told(tenant):
    return (await tenant.remember(text="tea", subject_keys="ann", record_key="k")).record


async def assert_unchanged(tenant, embedder, old):
    """Only the old record is there, byte for byte, and the next call succeeds."""
    assert await tenant.records(include_superseded=True) == [old]
    embedder.instead = None
    found = await tenant.recall(text="tea")
    assert [hit.record for hit in found.hits] == [old]


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
async def test_a_wrong_answer_names_the_embedder_and_stores_nothing(acme, embedder, answer):
    old = await told(acme)
    embedder.answer(answer)
    for verb, call in calls(acme, old).items():
        with pytest.raises(InvalidInputError) as refused:
            await call()
        assert (verb, refused.value.field) == (verb, "embedder")
    await assert_unchanged(acme, embedder, old)


async def test_mixed_lengths_are_refused_whole(acme, embedder):
    old = await told(acme)
    embedder.answer([[1.0, 0.0], [1.0, 0.0, 0.0]])
    with pytest.raises(InvalidInputError, match="embedder: must return vectors of one length"):
        await acme.remember_many(
            items=[{"text": text, "subject_keys": "ann"} for text in ("coffee", "milk")]
        )
    await assert_unchanged(acme, embedder, old)


async def test_a_length_other_than_the_embedder_says_is_refused(acme, embedder):
    old = await told(acme)
    embedder.answer([[1.0, 0.0, 0.0]])
    for call in calls(acme, old).values():
        with pytest.raises(InvalidInputError, match="embedder: must return vectors of as many"):
            await call()
    await assert_unchanged(acme, embedder, old)


@pytest.mark.parametrize("failure", [TimeoutError("provider"), ValueError("x"), KeyError("y")])
async def test_what_it_raises_passes_through_and_nothing_is_stored(acme, embedder, failure):
    old = await told(acme)

    async def raising(texts):
        raise failure

    embedder.instead = raising
    for call in calls(acme, old).values():
        with pytest.raises(type(failure)) as raised:
            await call()
        assert raised.value is failure
    await assert_unchanged(acme, embedder, old)


async def test_one_that_hangs_is_cancelled_and_nothing_is_stored(acme, embedder):
    old = await told(acme)

    async def hanging(texts):
        await asyncio.Event().wait()

    embedder.instead = hanging
    for call in calls(acme, old).values():
        embedder.reached.clear()
        task = asyncio.ensure_future(call())
        await embedder.reached.wait()
        # Others are served meanwhile.
        assert await acme.get(record_id=old.record_id) == old
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await assert_unchanged(acme, embedder, old)


async def test_a_timeout_of_the_hosts_ends_the_call(acme, embedder):
    old = await told(acme)

    async def hanging(texts):
        await asyncio.Event().wait()

    embedder.instead = hanging
    for call in calls(acme, old).values():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call(), 0.01)
    await assert_unchanged(acme, embedder, old)


async def test_forget_and_recall_by_words_do_without_a_broken_embedder(acme, embedder):
    old = await told(acme)
    embedder.answer(None)
    found = await acme.recall(text="tea", strategy="lexical")
    assert [hit.record for hit in found.hits] == [old]
    assert [hit.record for hit in (await acme.recall(subject_keys="ann")).hits] == [old]
    assert (await acme.forget(subject_key="ann")).counts.records == 1
