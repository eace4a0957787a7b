"""Recall by words and meaning at once: both real scores for every candidate, scaled and added."""

from __future__ import annotations

import pytest

from memory import HashingEmbedder, InvalidInputError

EAST, NORTH, BETWEEN, WEST = [1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [-1.0, 0.0]


async def told(tenant, text, embedding=None, subject_keys="p", **more):
    given = {"text": text, "subject_keys": subject_keys, "embedding": embedding, **more}
    return (await tenant.remember(**given)).record


def scores(recall):
    return {hit.record.text: hit.score for hit in recall.hits}


async def test_each_side_finds_what_the_other_misses_and_both_are_added(acme):
    await told(acme, "tea", NORTH)
    await told(acme, "milk", EAST)
    await told(acme, "tea milk", BETWEEN)
    await told(acme, "window", WEST)
    found = await acme.recall(text="tea", embedding=EAST, strategy="hybrid")
    assert found.strategy == "hybrid"
    keyword = {
        hit.record.text: hit.score
        for hit in (await acme.recall(text="tea", strategy="keyword")).hits
    }
    share = keyword["tea milk"] / keyword["tea"]
    expected = {
        "tea milk": share + (0.8 + 1) / 2,
        "tea": 1 + (0 + 1) / 2,
        "milk": 0 + 1,
        "window": 0,
    }
    assert scores(found) == pytest.approx(expected, abs=1e-6)
    assert list(scores(found)) == sorted(expected, key=lambda text: -expected[text])


async def test_without_a_vector_or_with_one_of_another_model_the_cosine_is_the_least(acme):
    await told(acme, "tea one", EAST)
    await told(acme, "tea two", WEST)
    await told(acme, "tea three")
    await told(acme, "tea four", [1.0, 0.0, 0.0])
    found = await acme.recall(text="tea", embedding=EAST, strategy="hybrid")
    by_text = scores(found)
    assert by_text["tea two"] == by_text["tea three"] == by_text["tea four"]
    assert by_text["tea one"] == pytest.approx(by_text["tea two"] + 1, abs=1e-6)
    assert "1 skipped because embedded by another model" in found.note


async def test_a_text_is_embedded_once_and_its_words_are_used(memory_factory):
    acme = memory_factory(embedder=HashingEmbedder(64)).for_tenant("acme")
    await told(acme, "prefers green tea")
    await told(acme, "asked for the window")
    found = await acme.recall(text="green tea", strategy="hybrid")
    assert list(scores(found)) == ["prefers green tea", "asked for the window"]
    assert scores(found) == pytest.approx({"prefers green tea": 2, "asked for the window": 0})


async def test_it_is_exact_while_neither_side_leaves_a_candidate_out(acme):
    items = [
        {"text": f"tea number {n}", "subject_keys": "p", "embedding": [1.0, n / 100]}
        for n in range(120)
    ]
    await acme.remember_many(items=items[:99])
    asked = {"text": "tea", "embedding": EAST, "strategy": "hybrid"}
    found = await acme.recall(**asked)
    assert found.exact
    assert "the best 100 of each side are the candidates" in found.note
    await acme.remember_many(items=items[99:])
    found = await acme.recall(**asked)
    assert not found.exact
    assert len((await acme.recall(limit=115, **asked)).hits) == 115


@pytest.mark.parametrize("full", [{"text": "tea"}, {"text": "milk", "embedding": BETWEEN}])
async def test_one_side_that_is_full_may_leave_a_candidate_out(acme, full):
    await told(acme, "tea", NORTH)
    items = [{"subject_keys": "p", **full} for _ in range(99)]
    asked = {"text": "tea", "embedding": EAST, "strategy": "".join("hybrid")}
    await acme.remember_many(items=items[:98])
    found = await acme.recall(**asked)
    assert (found.strategy, found.exact) == ("hybrid", True)
    await acme.remember_many(items=items[98:])
    assert not (await acme.recall(**asked)).exact
    assert (await acme.recall(limit=101, **asked)).exact


async def test_words_alone_or_meaning_alone_still_answer(acme):
    await told(acme, "tea", EAST)
    await told(acme, "milk", WEST)
    no_words = await acme.recall(text="?!", embedding=EAST, strategy="hybrid")
    assert scores(no_words) == pytest.approx({"tea": 1, "milk": 0})
    no_vectors = await acme.recall(text="milk", embedding=[1.0, 0.0, 0.0], strategy="hybrid")
    assert scores(no_vectors) == {"milk": 1.0}


async def test_a_neighbouring_turn_lends_a_part_of_its_score(acme):
    lines = [
        ("what would you like to drink", "ann"),
        ("tea with milk", "ann"),
        ("how is the weather", "bob"),
        ("as always", "ann"),
        ("see you on friday", "ann"),
    ]
    for n, (text, person) in enumerate(lines):
        await told(acme, text, [1.0, n / 4], subject_keys=person)
    asked = {"text": "tea", "embedding": [1.0, 0.25], "strategy": "hybrid"}
    plain = scores(await acme.recall(**asked))
    near = scores(await acme.recall(**asked, neighbours=0.5))
    people = {person: [text for text, who in lines if who == person] for person in ("ann", "bob")}
    expected = {}
    for text, person in lines:
        turns = people[person]
        at = turns.index(text)
        beside = turns[max(at - 1, 0) : at] + turns[at + 1 : at + 2]
        expected[text] = plain[text] + 0.5 * max([plain[turn] for turn in beside], default=0)
    assert near == pytest.approx(expected, abs=1e-6)
    assert near["how is the weather"] == plain["how is the weather"]


async def test_a_derived_record_has_no_neighbours_and_is_none(acme):
    first = await told(acme, "tea for ann", EAST, subject_keys="ann")
    await acme.derive(kind="summary", text="tea", sources=first, embedding=EAST)
    await told(acme, "milk for ann", NORTH, subject_keys="ann")
    asked = {"text": "tea", "embedding": EAST, "strategy": "hybrid"}
    plain = scores(await acme.recall(**asked))
    near = scores(await acme.recall(**asked, neighbours=1.0))
    assert near["tea"] == plain["tea"]
    assert near["milk for ann"] == pytest.approx(plain["milk for ann"] + plain["tea for ann"])


async def test_a_least_score_is_on_the_scale_of_the_sum(acme):
    await told(acme, "tea", EAST)
    await told(acme, "tea milk", NORTH)
    await told(acme, "milk", WEST)
    asked = {"text": "tea", "embedding": EAST, "strategy": "hybrid"}
    everything = await acme.recall(**asked)
    found = await acme.recall(**asked, min_score=everything.hits[1].score - 1e-6)
    assert found.hits == everything.hits[:2]
    assert (await acme.recall(**asked, min_score=2.1)).hits == ()


async def test_hybrid_needs_a_text_and_a_vector(acme, memory_factory):
    for asked in ({"text": "tea"}, {"embedding": EAST}, {}):
        with pytest.raises(InvalidInputError, match="strategy"):
            await acme.recall(strategy="hybrid", **asked)
    with_embedder = memory_factory(embedder=HashingEmbedder(2)).for_tenant("acme")
    with pytest.raises(InvalidInputError, match="strategy"):
        await with_embedder.recall(embedding=EAST, strategy="hybrid")
    assert (await with_embedder.recall(text="tea", strategy="hybrid")).hits == ()
    assert (await acme.recall(text="tea", embedding=EAST, strategy="hybrid")).hits == ()


async def test_neither_strategy_is_chosen_unasked(acme, memory_factory):
    await told(acme, "tea", EAST)
    assert (await acme.recall(text="tea")).strategy == "lexical"
    assert (await acme.recall(text="tea", embedding=EAST)).strategy == "vector"
    with_embedder = memory_factory(embedder=HashingEmbedder(2)).for_tenant("acme")
    assert (await with_embedder.recall(text="tea")).strategy == "vector"
