from __future__ import annotations

import math
from types import SimpleNamespace
from uuid import UUID

import pytest

from memory import HashingEmbedder, InvalidInputError


def texts(recall):
    return [hit.record.text for hit in recall.hits]


async def told(tenant, text, embedding, **more):
    return (await tenant.remember(text=text, subject_keys="p", embedding=embedding, **more)).record


async def test_vectors_rank_by_cosine_whatever_their_length(acme):
    await told(acme, "east", [10.0, 0.0])
    await told(acme, "north-east", [0.1, 0.1])
    await told(acme, "west", [-3.0, 0.0])
    await acme.remember(text="nowhere", subject_keys="p")
    found = await acme.recall(embedding=[2.0, 0.0])
    assert (found.strategy, found.exact) == ("vector", True)
    assert texts(found) == ["east", "north-east", "west"]
    scores = [hit.score for hit in found.hits]
    assert scores == pytest.approx([1.0, math.sqrt(0.5), -1.0], abs=1e-6)


async def test_scores_agree_with_float64_arithmetic(acme):
    vectors = {f"v{n}": [math.sin(n * 1.7 + i * i) for i in range(32)] for n in range(40)}
    for text, vector in vectors.items():
        await told(acme, text, vector)
    query = [math.cos(i * 0.9) for i in range(32)]
    found = await acme.recall(embedding=query, limit=40)
    for hit in found.hits:
        vector = vectors[hit.record.text]
        expected = math.fsum(a * b for a, b in zip(query, vector, strict=True)) / (
            math.hypot(*query) * math.hypot(*vector)
        )
        assert hit.score == pytest.approx(expected, abs=1e-6)
    assert [hit.score for hit in found.hits] == sorted(
        (hit.score for hit in found.hits), reverse=True
    )


@pytest.mark.parametrize("vector", [[0.1] * 3, [1e-3, 7.77, 3.1], [0.7, -0.1, 0.9]], ids=str)
async def test_what_is_the_same_meets_a_least_score_of_one(acme, vector):
    same = await told(acme, "same", vector)
    longer = await told(acme, "longer", [2 * value for value in vector])
    await told(acme, "beside it", [vector[0] + 0.05, *vector[1:]])
    for more in ({}, {"subject_keys": "p"}):
        found = await acme.recall(embedding=vector, min_score=1.0, **more)
        assert [hit.record for hit in found.hits] == [longer, same]
        assert [hit.score for hit in found.hits] == [1.0, 1.0]


async def test_ties_go_to_the_greater_id(acme):
    ids = [UUID(int=n) for n in (5, 1 << 127, 9, (1 << 127) + 1)]
    for record_id in ids:
        await told(acme, "same", [0.3, 0.7], record_id=record_id)
    found = await acme.recall(embedding=[1.0, 1.0], limit=3)
    assert [hit.record.record_id for hit in found.hits] == sorted(ids, reverse=True)[:3]


async def test_hits_below_the_least_score_do_not_count_towards_the_limit(acme):
    for n in range(6):
        await told(acme, f"v{n}", [1.0, n / 4])
    every = await acme.recall(embedding=[1.0, 0.0], limit=6)
    for cut in range(6):
        least = every.hits[cut].score
        found = await acme.recall(embedding=[1.0, 0.0], min_score=least)
        assert found.hits == every.hits[: cut + 1]
    nothing = await acme.recall(embedding=[-1.0, 0.0], min_score=0.5)
    assert nothing.hits == ()
    assert "no record matches" in nothing.note


@pytest.mark.parametrize("size", [1e-14, 1e14])
async def test_extreme_norms_still_give_a_cosine(acme, size):
    await told(acme, "same way", [size, 0.0])
    await told(acme, "across", [0.0, size])
    found = await acme.recall(embedding=[size, 0.0])
    assert texts(found) == ["same way", "across"]
    assert [hit.score for hit in found.hits] == pytest.approx([1.0, 0.0], abs=1e-6)


async def test_auto_takes_vectors_where_there_is_an_embedder(memory_factory):
    acme = memory_factory(embedder=HashingEmbedder(64)).for_tenant("acme")
    for text in ("the red invoice", "a blue sky"):
        await acme.remember(text=text, subject_keys="p")
    found = await acme.recall(text="red invoice", limit=1)
    assert (found.strategy, texts(found)) == ("vector", ["the red invoice"])
    assert (await acme.recall(text="invoice", strategy="lexical")).strategy == "lexical"
    assert (await acme.recall(text="invoice", strategy="vector")).strategy == "vector"
    assert (await acme.recall()).strategy == "recent"


async def test_an_embedding_of_the_callers_spares_the_embedder(memory_factory, plugs):
    embedder = plugs.RecordingEmbedder()
    acme = memory_factory(embedder=embedder).for_tenant("acme")
    await told(acme, "east", [1.0, 0.0])
    found = await acme.recall(text="east", embedding=[1.0, 0.0])
    assert (found.strategy, texts(found), embedder.calls) == ("vector", ["east"], [])


async def test_rows_of_another_model_are_skipped_and_counted(memory_factory, plugs):
    for model in ("one", "other"):
        memory = memory_factory(embedder=plugs.AnsweringEmbedder([[1.0, 0.0]], model))
        await memory.remember("acme", text=f"by {model}", subject_keys="p")
    found = await memory.recall("acme", text="x")
    assert texts(found) == ["by other"]
    assert "1 skipped because embedded by another model" in found.note


async def test_an_unnamed_model_is_told_apart_by_length(memory_factory, plugs):
    acme = memory_factory(embedder=plugs.AnsweringEmbedder([[1.0, 0.0]], None)).for_tenant("acme")
    await acme.remember(text="unnamed", subject_keys="p")
    await told(acme, "long", [1.0, 0.0, 0.0])
    found = await acme.recall(text="x")
    assert texts(found) == ["unnamed"]
    assert "1 skipped" in found.note
    assert texts(await acme.recall(embedding=[1.0, 0.0, 0.0])) == ["long"]


async def test_an_answer_that_is_empty_for_want_of_the_model_says_so(memory_factory, plugs):
    first = memory_factory(embedder=plugs.AnsweringEmbedder([[1.0, 0.0]], "one"))
    await first.remember("acme", text="x", subject_keys="p")
    other = memory_factory(embedder=plugs.AnsweringEmbedder([[1.0, 0.0, 0.0]], "other"))
    found = await other.recall("acme", text="x")
    assert found.hits == ()
    assert "1 skipped because embedded by another model" in found.note


async def test_one_name_with_two_lengths_is_two_models(memory_factory, plugs):
    for vector in ([1.0, 0.0], [1.0, 0.0, 0.0]):
        memory = memory_factory(embedder=plugs.AnsweringEmbedder([vector], "same"))
        await memory.remember("acme", text=f"{len(vector)}", subject_keys="p")
    assert texts(await memory.recall("acme", text="x")) == ["3"]


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [[1.0], [1.0]],
        [[]],
        [[math.nan]],
        [[0.0, 0.0]],
        [[1e39]],
        ["abc"],
    ],
)
async def test_an_embedder_that_answers_wrongly_stores_nothing(memory_factory, plugs, answer):
    embedder = plugs.AnsweringEmbedder(answer)
    memory = memory_factory(embedder=embedder)
    with pytest.raises(InvalidInputError) as refused:
        await memory.remember("acme", text="x", subject_keys="p")
    assert refused.value.field == "embedder"
    with pytest.raises(InvalidInputError):
        await memory.recall("acme", text="x")
    assert await memory.records("acme") == []
    embedder.answer = [[1.0]]
    await memory.remember("acme", text="x", subject_keys="p")
    assert len(await memory.records("acme")) == 1


async def test_vectors_of_two_lengths_in_one_answer_are_refused(memory_factory, plugs):
    memory = memory_factory(embedder=plugs.AnsweringEmbedder([[1.0], [1.0, 2.0]]))
    with pytest.raises(InvalidInputError, match="embedder: must return vectors of one length"):
        await memory.remember_many(
            "acme", items=[{"text": "x", "subject_keys": "p"}, {"text": "y", "subject_keys": "p"}]
        )
    assert await memory.records("acme") == []


async def test_what_the_embedder_raises_is_the_hosts_own(memory_factory, plugs):
    failure = TimeoutError("provider")
    memory = memory_factory(embedder=plugs.AnsweringEmbedder(failure))
    with pytest.raises(TimeoutError) as raised:
        await memory.remember("acme", text="x", subject_keys="p")
    assert raised.value is failure
    assert await memory.records("acme") == []


async def test_an_array_is_taken_without_its_library(acme):
    array = SimpleNamespace(tolist=lambda: [1.0, 0.0])
    await told(acme, "array", array)
    assert texts(await acme.recall(embedding=array)) == ["array"]
