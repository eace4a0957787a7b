from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memory import InvalidInputError


async def told(tenant, *texts):
    return [(await tenant.remember(text=text, subject_keys="p")).record for text in texts]


def texts(recall):
    return [hit.record.text for hit in recall.hits]


async def test_words_rank_by_the_share_of_distinct_query_terms(acme):
    await told(acme, "the blue invoice", "the red invoice was paid", "a blue sky", "nothing else")
    found = await acme.recall(text="Paid the RED invoice, the red one!")
    assert found.strategy == "lexical"
    assert found.exact
    assert texts(found) == ["the red invoice was paid", "the blue invoice"]
    assert [hit.score for hit in found.hits] == [pytest.approx(4 / 5), pytest.approx(2 / 5)]


async def test_the_note_says_what_a_search_by_words_cannot_do(acme):
    await told(acme, "the invoice")
    found = await acme.recall(text="invoice")
    for said in ("share of distinct query terms", "no stemming", "no synonyms", "no semantic"):
        assert said in found.note
    assert "nothing found" not in found.note


async def test_words_are_not_stemmed(acme):
    await told(acme, "one invoice")
    assert texts(await acme.recall(text="invoices")) == []
    assert texts(await acme.recall(text="INVOICE")) == ["one invoice"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("मुझे हिंदी में जवाब दें", "हिंदी"),
        ("தமிழ் மொழியில் பேசுங்கள்", "தமிழ்"),
        ("東京都に住んでいます", "東京"),
        ("한국어로 답장", "한국어"),
        ("\uff37\uff49\uff44\uff45 letters", "wide"),
        ("Straße 12", "STRASSE"),
        ("cafe\u0301", "caf\u00e9"),
    ],
)
async def test_words_of_any_script_are_found(acme, text, query):
    await told(acme, text, "something else")
    assert texts(await acme.recall(text=query)) == [text]


async def test_ties_go_to_the_greater_id(acme):
    ids = [UUID(int=n) for n in (5, 1 << 127, 9, (1 << 127) + 1)]
    for record_id in ids:
        await acme.remember(text="same words", subject_keys="p", record_id=record_id)
    found = await acme.recall(text="same words", limit=3)
    assert [hit.record.record_id for hit in found.hits] == sorted(ids, reverse=True)[:3]


async def test_the_limit_counts_hits(acme):
    await told(acme, *(f"note {n}" for n in range(12)))
    assert len((await acme.recall(text="note")).hits) == 8
    assert len((await acme.recall(text="note", limit=1)).hits) == 1
    assert len((await acme.recall(text="note", limit=1_000)).hits) == 12
    assert len((await acme.recall(limit=5)).hits) == 5


async def test_hits_below_the_least_score_are_left_out(acme):
    await told(acme, "one two three", "one two", "one", *["one"] * 8)
    found = await acme.recall(text="one two three", min_score=2 / 3)
    assert texts(found) == ["one two three", "one two"]
    assert len((await acme.recall(text="one two three", min_score=1 / 3, limit=20)).hits) == 11
    nothing = await acme.recall(text="one two three four", min_score=1)
    assert nothing.hits == ()
    assert "no record matches" in nothing.note


async def test_without_a_text_the_most_recent_come_first(acme):
    day = datetime(2026, 1, 1, tzinfo=UTC)
    for n in (1, 3, 2):
        await acme.remember(text=f"day {n}", subject_keys="p", occurred_at=day + timedelta(days=n))
    found = await acme.recall()
    assert found.strategy == "recent"
    assert texts(found) == ["day 3", "day 2", "day 1"]
    assert {hit.score for hit in found.hits} == {0.0}
    assert "newest first" in found.note


async def test_equal_times_go_to_the_greater_id(acme):
    day = datetime(2026, 1, 1, tzinfo=UTC)
    for n in (1, 3, 2):
        await acme.remember(text=f"n{n}", subject_keys="p", occurred_at=day, record_id=UUID(int=n))
    assert texts(await acme.recall()) == ["n3", "n2", "n1"]


async def test_an_empty_answer_says_that_the_tenant_holds_nothing(memory):
    await told(memory.for_tenant("acme-corp"), "the invoice")
    for asked in ({}, {"text": "invoice"}, {"embedding": [1.0]}):
        found = await memory.recall("acme", **asked)
        assert found.hits == ()
        assert "this tenant holds no records" in found.note


async def test_an_empty_answer_says_that_nothing_matches(acme):
    await told(acme, "the invoice")
    for asked in ({"text": "receipt"}, {"subject_keys": "q"}, {"embedding": [1.0]}):
        found = await acme.recall(**asked)
        assert found.hits == ()
        assert "no record matches" in found.note


async def test_a_query_without_words_is_an_honest_empty_answer(acme):
    await told(acme, "?! is what she said")
    found = await acme.recall(text="?!")
    assert (found.hits, found.strategy, found.exact) == ((), "lexical", True)
    assert "no word" in found.note
    assert texts(await acme.recall(text="?! she")) == ["?! is what she said"]


async def test_a_named_strategy_uses_what_it_needs(acme):
    await told(acme, "the invoice")
    assert (await acme.recall(text="invoice", strategy="recent")).strategy == "recent"
    found = await acme.recall(text="invoice", embedding=[1.0], strategy="lexical")
    assert (found.strategy, texts(found)) == ("lexical", ["the invoice"])


async def test_a_strategy_without_what_it_needs_is_refused(acme):
    for asked in (
        {"strategy": "vector"},
        {"strategy": "vector", "text": "x"},
        {"strategy": "lexical"},
        {"strategy": "lexical", "embedding": [1.0]},
        {"strategy": "hybrid-of-my-own"},
    ):
        with pytest.raises(InvalidInputError) as refused:
            await acme.recall(**asked)
        assert refused.value.field == "strategy"


async def test_a_superseded_version_is_not_recalled(acme):
    old = (await acme.remember(text="old words", subject_keys="p", embedding=[1.0])).record
    await acme.supersede(record_id=old.record_id, text="new words", embedding=[1.0])
    for asked in ({"text": "old words"}, {"embedding": [1.0]}, {}):
        assert texts(await acme.recall(**asked)) == ["new words"]


async def test_an_expired_record_is_hidden_everywhere_at_once(memory_factory):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    acme = memory_factory(clock=lambda: now).for_tenant("acme")
    record = (
        await acme.remember(
            text="until noon",
            subject_keys="p",
            expires_at=now + timedelta(hours=1),
            embedding=[1.0],
        )
    ).record
    asked = ({"text": "until"}, {"embedding": [1.0]}, {})
    assert all([(await acme.recall(**query)).hits for query in asked])
    now += timedelta(hours=1)
    assert not any([(await acme.recall(**query)).hits for query in asked])
    assert await acme.get(record_id=record.record_id) is None
    assert await acme.history(record_key=record.record_key) == []
    assert await acme.records() == []
    now -= timedelta(microseconds=1)
    assert await acme.get(record_id=record.record_id) == record
