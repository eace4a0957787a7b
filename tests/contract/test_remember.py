from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest

from memory import ConflictError, InvalidInputError, Item


async def test_a_memory_comes_back_as_it_was_told(acme):
    noon = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    told = await acme.remember(
        text="Ann prefers tea",
        subject_keys=["customer:ann", "company:initech"],
        kind="profile",
        metadata={"drink": {"hot": True, "cups": [1, 2.5, None]}},
        record_key="ann/drink",
        occurred_at=noon,
        expires_at=noon + timedelta(days=365_000),
        embedding=[0.1, -2],
    )
    record = told.record
    assert told.redactions == ()
    assert (record.tenant_key, record.origin, record.kind) == ("acme", "remembered", "profile")
    assert record.text == "Ann prefers tea"
    assert record.metadata == {"drink": {"hot": True, "cups": [1, 2.5, None]}}
    assert record.subject_keys == ("company:initech", "customer:ann")
    assert (record.sources, record.redacted) == ((), ())
    assert (record.record_key, record.version, record.superseded_at) == ("ann/drink", 1, None)
    assert (record.embedding_model, record.embedding_dims) == (None, 2)
    assert record.occurred_at == noon
    assert record.occurred_at.tzinfo is UTC
    assert record.expires_at == noon + timedelta(days=365_000)
    assert record.created_at.utcoffset() == timedelta(0)
    assert await acme.get(record_id=record.record_id) == record
    assert await acme.get(record_id=str(record.record_id)) == record


async def test_what_is_not_given_has_its_default(acme):
    before = datetime.now(UTC)
    record = (await acme.remember(text="Ann called", subject_keys="customer:ann")).record
    assert before <= record.occurred_at <= datetime.now(UTC)
    assert (record.kind, record.metadata, record.expires_at) == ("episodic", {}, None)
    assert record.record_key == str(record.record_id)
    assert record.record_id.version == 7
    assert record.embedding_dims is None


async def test_the_clock_of_the_host_decides_when_it_occurred(memory_factory):
    then = datetime(2020, 1, 1, tzinfo=UTC)
    memory = memory_factory(clock=lambda: then)
    told = await memory.remember("acme", text="Ann called", subject_keys="customer:ann")
    assert told.record.occurred_at == then


async def test_a_naive_clock_is_refused(memory_factory):
    memory = memory_factory(clock=datetime.now)
    with pytest.raises(InvalidInputError, match="clock: must have a time zone"):
        await memory.remember("acme", text="Ann called", subject_keys="customer:ann")


async def test_a_returned_record_shares_nothing_with_the_store(acme):
    given = {"order": {"ids": [1]}}
    record = (await acme.remember(text="x", subject_keys="p", metadata=given)).record
    given["order"]["ids"].append(2)
    record.metadata["order"]["ids"].append(3)
    again = await acme.get(record_id=record.record_id)
    assert again.metadata == {"order": {"ids": [1]}}
    again.metadata.clear()
    assert (await acme.recall()).hits[0].record.metadata == {"order": {"ids": [1]}}


async def test_a_repeated_subject_counts_once(acme):
    record = (await acme.remember(text="x", subject_keys=["p", "q", "p"])).record
    assert record.subject_keys == ("p", "q")


async def test_a_thousand_subjects_fit(acme):
    people = [f"customer:{n:04}" for n in range(1_000)]
    record = (await acme.remember(text="all hands", subject_keys=people)).record
    assert record.subject_keys == tuple(people)


async def test_a_retry_with_an_own_id_returns_the_stored_record(acme):
    given = {
        "text": "Ann called",
        "subject_keys": ["customer:ann", "p"],
        "metadata": {"a": [1, {"b": None}]},
        "record_id": uuid4(),
    }
    first = await acme.remember(**given)
    again = await acme.remember(**{**given, "subject_keys": ["p", "customer:ann"]})
    assert again.record == first.record
    assert len(await acme.records()) == 1


async def test_a_retry_after_a_newer_version_returns_the_stored_record(acme):
    given = {"text": "v1", "subject_keys": "p", "record_key": "k", "record_id": uuid4()}
    await acme.remember(**given)
    newer = (await acme.remember(text="v2", subject_keys="p", record_key="k")).record
    again = (await acme.remember(**given)).record
    assert (again.text, again.version) == ("v1", 1)
    assert await acme.get(record_id=newer.record_id) == newer
    assert len(await acme.history(record_key="k")) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"text": "Ann wrote"},
        {"kind": "profile"},
        {"metadata": {"a": 2}},
        {"metadata": {"a": True}},
        {"subject_keys": ["customer:ann", "customer:bob"]},
        {"record_key": "line"},
        {"occurred_at": datetime(2026, 1, 2, tzinfo=UTC)},
        {"expires_at": datetime(2999, 1, 2, tzinfo=UTC)},
    ],
    ids=lambda other: "-".join(other),
)
async def test_an_id_that_holds_other_content_conflicts(acme, other):
    given = {
        "text": "Ann called",
        "subject_keys": "customer:ann",
        "metadata": {"a": 1},
        "occurred_at": datetime(2026, 1, 1, tzinfo=UTC),
        "expires_at": datetime(2999, 1, 1, tzinfo=UTC),
        "record_id": uuid4(),
    }
    stored = (await acme.remember(**given)).record
    with pytest.raises(ConflictError):
        await acme.remember(**{**given, **other})
    assert (await acme.remember(**given)).record == stored
    assert await acme.records() == [stored]


async def test_one_id_may_serve_two_tenants(memory):
    mine = uuid4()
    a = await memory.remember("acme", text="x", subject_keys="p", record_id=mine)
    b = await memory.remember("acme-corp", text="y", subject_keys="p", record_id=mine)
    assert (a.record.text, b.record.text) == ("x", "y")
    assert (await memory.get("acme", record_id=mine)).text == "x"


async def test_many_are_stored_in_order_with_one_embedding_call(memory_factory, plugs):
    embedder = plugs.RecordingEmbedder()
    acme = memory_factory(embedder=embedder).for_tenant("acme")
    items = [
        {"text": "first", "subject_keys": "p"},
        Item(text="second", subject_keys="q", embedding=[1.0, 0.0]),
        Item(text="third", subject_keys=["p", "q"], kind="profile", metadata={"n": 3}),
    ]
    stored = [item.record for item in await acme.remember_many(items=items)]
    assert [record.text for record in stored] == ["first", "second", "third"]
    assert embedder.calls == [["first", "third"]]
    assert [record.embedding_model for record in stored] == [embedder.model, None, embedder.model]
    assert [await acme.get(record_id=record.record_id) for record in stored] == stored


async def test_an_empty_batch_is_an_empty_answer(memory_factory, plugs):
    embedder = plugs.RecordingEmbedder()
    assert await memory_factory(embedder=embedder).remember_many("acme", items=[]) == []
    assert embedder.calls == []


async def test_a_batch_with_one_bad_item_stores_nothing(acme):
    good = {"text": "good", "subject_keys": "p"}
    bad = [
        ({"text": "", "subject_keys": "p"}, "items.2.text"),
        ({"text": "x", "subject_keys": ["p", ""]}, "items.2.subject_keys.1"),
        ({"text": "x"}, "items.2.subject_keys"),
        ({"subject_keys": "p"}, "items.2.text"),
        ({"text": "x", "subject_keys": "p", "colour": "red"}, "items.2"),
        ("text", "items.2"),
        (Item(text="x", subject_keys="p", embedding=[0.0]), "items.2.embedding"),
    ]
    for item, field in bad:
        with pytest.raises(InvalidInputError) as refused:
            await acme.remember_many(items=[good, good, item])
        assert refused.value.field == field
    for items in (good, "tea", "", b"tea", b"", {}, None, 7, {"tea"}, iter([good])):
        with pytest.raises(InvalidInputError, match="items: must be a sequence"):
            await acme.remember_many(items=items)
    assert (await acme.recall()).hits == ()
    assert len(await acme.remember_many(items=[good, good])) == 2


async def test_a_batch_in_which_one_id_conflicts_stores_nothing(acme):
    taken = uuid4()
    await acme.remember(text="taken", subject_keys="p", record_id=taken)
    batch = [
        {"text": "new", "subject_keys": "p"},
        {"text": "other", "subject_keys": "p", "record_id": taken},
    ]
    with pytest.raises(ConflictError):
        await acme.remember_many(items=batch)
    assert [record.text for record in await acme.records()] == ["taken"]
    batch[1]["text"] = "taken"
    assert len(await acme.remember_many(items=batch)) == 2
    assert len(await acme.records()) == 2


async def test_an_id_twice_in_a_batch_is_one_record_or_a_conflict(acme):
    item = {"text": "once", "subject_keys": "p", "record_id": uuid4()}
    first, second = await acme.remember_many(items=[item, item])
    assert first.record == second.record
    with pytest.raises(ConflictError):
        await acme.remember_many(
            items=[{**item, "record_id": uuid4()}, *({**item, "text": t} for t in "ab")]
        )
    assert len(await acme.records()) == 1


async def test_a_key_twice_in_a_batch_is_two_versions(acme):
    await acme.remember(text="v1", subject_keys="p", record_key="k")
    await acme.remember_many(
        items=[{"text": text, "subject_keys": "p", "record_key": "k"} for text in ("v2", "v3")]
    )
    versions = await acme.history(record_key="k")
    assert [(record.text, record.version) for record in versions] == [
        ("v3", 3),
        ("v2", 2),
        ("v1", 1),
    ]
    assert [record.superseded_at is None for record in versions] == [True, False, False]
    assert [record.text for record in await acme.records()] == ["v3"]


async def test_many_tasks_may_write_at_once(acme):
    await asyncio.gather(
        *(acme.remember(text=f"note {n}", subject_keys=f"p{n % 3}") for n in range(30))
    )
    assert len(await acme.records(limit=100)) == 30
    assert len(await acme.records(subject_keys="p1")) == 10


async def test_a_text_with_an_unbroken_blob_is_stored_and_found(acme):
    blob = "QUJD" * 1_000
    record = (await acme.remember(text=f"attachment {blob}", subject_keys="p")).record
    assert [hit.record for hit in (await acme.recall(text=blob)).hits] == [record]


async def test_the_longest_text_and_metadata_fit(acme):
    text = "é" * (32 * 1024)
    metadata = {"note": "x" * (64 * 1024 - 12)}
    record = (await acme.remember(text=text, subject_keys="p", metadata=metadata)).record
    assert (record.text, record.metadata) == (text, metadata)
