"""A host that never recalls by words need not pay for them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory import HashingEmbedder, InvalidInputError

DAY = datetime(2026, 1, 10, tzinfo=UTC)


def texts(found):
    return [hit.record.text for hit in found.hits]


@pytest.fixture
def wordless(memory_factory):
    return memory_factory(postings=False).for_tenant("acme")


async def test_recall_by_person_time_and_vector_works_without_postings(wordless):
    for text, person, vector in (("tea", "ann", [1.0, 0.0]), ("coffee", "bob", [0.0, 1.0])):
        await wordless.remember(text=text, subject_keys=person, embedding=vector, occurred_at=DAY)
    assert texts(await wordless.recall(subject_keys="ann")) == ["tea"]
    assert texts(await wordless.recall(since=DAY)) == ["coffee", "tea"]
    assert texts(await wordless.recall(embedding=[0.1, 0.9])) == ["coffee", "tea"]
    assert texts(await wordless.recall(embedding=[0.1, 0.9], subject_keys="ann")) == ["tea"]
    assert len(await wordless.records()) == 2


async def test_a_text_and_an_embedder_need_no_postings(memory_factory):
    acme = memory_factory(postings=False, embedder=HashingEmbedder(64)).for_tenant("acme")
    await acme.remember(text="red invoice", subject_keys="ann")
    found = await acme.recall(text="red invoice")
    assert (found.strategy, texts(found)) == ("vector", ["red invoice"])


@pytest.mark.parametrize("strategy", ["lexical", "keyword", "hybrid", "auto"])
async def test_by_words_is_refused_without_postings(wordless, strategy):
    await wordless.remember(text="tea", subject_keys="ann")
    with pytest.raises(InvalidInputError) as refused:
        await wordless.recall(text="tea", strategy=strategy)
    assert refused.value.field == "strategy"
    assert "without postings" in refused.value.rule
    assert texts(await wordless.recall(text="tea", strategy="recent")) == ["tea"]


async def test_every_writing_verb_leaves_the_words_out(memory, wordless):
    acme = memory.for_tenant("acme")
    told = (await wordless.remember(text="tea one", subject_keys="ann")).record
    many = await wordless.remember_many(items=[{"text": "tea two", "subject_keys": "ann"}])
    await wordless.derive(kind="summary", text="tea three", sources=many[0])
    await wordless.supersede(record_id=told.record_id, text="tea four")
    with_words = (await acme.remember(text="tea five", subject_keys="ann")).record
    found = await acme.recall(text="tea", include_superseded=True)
    assert [hit.record for hit in found.hits] == [with_words]
    assert len(await acme.records(include_superseded=True)) == 5


async def test_a_retry_is_the_same_content_with_postings_and_without(memory, wordless):
    given = {
        "text": "tea",
        "subject_keys": "ann",
        "record_id": "0190a9c0-0000-7000-8000-00000000000a",
    }
    first = await wordless.remember(**given)
    assert await memory.remember("acme", **given) == first
    assert len(await wordless.records()) == 1


async def test_erasure_is_whole_without_postings(memory, wordless, bystander):
    told = await wordless.remember(text="tea", subject_keys="customer:ann")
    await wordless.derive(kind="summary", text="drinks", sources=told)
    assert (await memory.forget("acme", subject_key="customer:ann")).counts.records == 2
    assert bystander in await wordless.records()


@pytest.mark.parametrize("value", [None, 1, "no"])
def test_the_switch_is_true_or_false(memory_factory, value):
    with pytest.raises(InvalidInputError, match="postings: must be True or False"):
        memory_factory(postings=value)
