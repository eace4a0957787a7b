"""Recall by keyword: BM25 over what is stored, the same in every store."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from memory import InvalidInputError


async def told(tenant, *texts, **more):
    return [(await tenant.remember(text=text, subject_keys="p", **more)).record for text in texts]


def texts(recall):
    return [hit.record.text for hit in recall.hits]


def weight(records, holding):
    return math.log(1 + (records - holding + 0.5) / (holding + 0.5))


def part(records, holding, count, length, mean):
    return weight(records, holding) * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))


async def test_scores_are_those_of_the_formula(acme):
    await told(acme, "tea tea milk", "tea", "milk and a biscuit with it", "the window")
    found = await acme.recall(text="tea milk nowhere", strategy="keyword")
    mean = (3 + 1 + 6 + 2) / 4
    assert found.strategy == "keyword"
    assert found.exact
    assert texts(found) == ["tea tea milk", "tea", "milk and a biscuit with it"]
    assert [hit.score for hit in found.hits] == pytest.approx(
        [
            part(4, 2, 2, 3, mean) + part(4, 2, 1, 3, mean),
            part(4, 2, 1, 1, mean),
            part(4, 2, 1, 6, mean),
        ],
        abs=1e-6,
    )


async def test_a_rare_word_counts_more_than_common_ones(acme):
    await told(acme, *(f"the order of number {n}" for n in range(20)), "a marzipan cake")
    asked = {"text": "the order of marzipan", "limit": 3}
    assert texts(await acme.recall(strategy="keyword", **asked))[0] == "a marzipan cake"
    assert "a marzipan cake" not in texts(await acme.recall(strategy="lexical", **asked))


async def test_a_repeated_term_of_the_question_counts_once(acme):
    await told(acme, "tea", "milk")
    once = await acme.recall(text="tea milk", strategy="keyword")
    assert (await acme.recall(text="Tea tea TEA milk", strategy="keyword")).hits == once.hits


async def test_hidden_versions_count_until_they_are_erased(acme):
    old, milk = await told(acme, "tea", "milk")
    await told(acme, "tea with milk")
    await acme.supersede(record_id=old.record_id, text="coffee")
    await told(acme, "milk", expires_at=datetime.now(UTC) - timedelta(days=1))

    async def score():
        found = await acme.recall(text="milk tea", strategy="keyword")
        assert texts(found) == ["tea with milk", "milk"]
        assert found.hits[1].record == milk
        return found.hits[1].score

    assert await score() == pytest.approx(part(5, 3, 1, 1, 7 / 5), abs=1e-6)
    await acme.forget_record(record_id=old.record_id)
    assert await score() == pytest.approx(part(4, 3, 1, 1, 6 / 4), abs=1e-6)


async def test_one_tenant_does_not_weigh_the_words_of_another(memory):
    acme, other = memory.for_tenant("acme"), memory.for_tenant("acme-corp")
    await told(acme, "tea", "milk")
    before = await acme.recall(text="tea", strategy="keyword")
    await told(other, *(f"tea number {n}" for n in range(9)))
    assert (await acme.recall(text="tea", strategy="keyword")).hits == before.hits


async def test_the_same_words_weigh_the_same_for_a_person_as_for_the_tenant(acme):
    await told(acme, "tea and milk", "tea", "milk")
    (ann,) = [(await acme.remember(text="tea for two", subject_keys="ann")).record]
    everybody = await acme.recall(text="tea two", strategy="keyword")
    hers = await acme.recall(text="tea two", strategy="keyword", subject_keys="ann")
    assert [hit.record for hit in hers.hits] == [ann]
    assert hers.hits[0].score == pytest.approx(everybody.hits[0].score, abs=1e-6)


async def test_a_least_score_leaves_out_what_is_below_and_fills_the_limit(acme):
    await told(acme, "tea", "tea and milk", "tea with milk and sugar", "milk")
    everything = await acme.recall(text="tea milk", strategy="keyword")
    least = everything.hits[1].score
    found = await acme.recall(text="tea milk", strategy="keyword", min_score=least - 1e-6, limit=2)
    assert found.hits == everything.hits[:2]
    beyond = everything.hits[0].score + 1
    none = await acme.recall(text="tea milk", strategy="keyword", min_score=beyond)
    assert none.hits == ()
    assert "no record matches" in none.note


async def test_ties_go_to_the_greater_id(acme):
    records = await told(acme, *["tea and milk"] * 5)
    found = await acme.recall(text="milk tea", strategy="keyword", limit=3)
    assert len({hit.score for hit in found.hits}) == 1
    expected = sorted((record.record_id for record in records), reverse=True)[:3]
    assert [hit.record.record_id for hit in found.hits] == expected


async def test_the_note_says_how_it_ranked(acme):
    await told(acme, "tea")
    found = await acme.recall(text="tea", strategy="keyword")
    for said in ("BM25", "k1 1.2", "b 0.75", "no stemming", "no semantic"):
        assert said in found.note
    without = await acme.recall(text="?!", strategy="keyword")
    assert (without.hits, without.exact) == ((), True)
    assert "no word to search for" in without.note


async def test_keyword_needs_a_text(acme):
    with pytest.raises(InvalidInputError, match="strategy"):
        await acme.recall(embedding=[1.0], strategy="keyword")
    assert (await acme.recall(text="tea", strategy="keyword")).hits == ()
