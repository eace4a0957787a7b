from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from memory import ConflictError, InvalidInputError, UnknownRecordError


async def test_a_record_key_names_a_line_of_versions(acme):
    v1 = (await acme.remember(text="tea", subject_keys="p", record_key="drink")).record
    v2 = (await acme.remember(text="coffee", subject_keys="p", record_key="drink")).record
    newest, oldest = await acme.history(record_key="drink")
    assert (newest, oldest.record_id) == (v2, v1.record_id)
    assert (newest.version, oldest.version) == (2, 1)
    assert newest.superseded_at is None
    assert oldest.superseded_at is not None
    assert newest.sources == ()
    assert (await acme.get(record_id=v1.record_id)) == oldest
    assert await acme.records() == [v2]
    assert [hit.record for hit in (await acme.recall(text="tea coffee")).hits] == [v2]


async def test_a_record_without_a_key_is_its_own_line(acme):
    record = (await acme.remember(text="tea", subject_keys="p")).record
    assert await acme.history(record_key=str(record.record_id)) == [record]
    assert await acme.history(record_key="nothing") == []


async def test_lines_of_two_tenants_are_apart(memory):
    for tenant in ("acme", "acme-corp"):
        await memory.remember(tenant, text=tenant, subject_keys="p", record_key="k")
    assert [r.text for r in await memory.history("acme", record_key="k")] == ["acme"]


async def test_supersede_rewrites_a_memory_without_a_person(acme):
    old = (
        await acme.remember(
            text="Ann and Initech agreed",
            subject_keys=["customer:ann", "company:initech"],
            kind="semantic",
            metadata={"deal": 1},
            expires_at=datetime(2999, 1, 1, tzinfo=UTC),
            occurred_at=datetime(2020, 1, 1, tzinfo=UTC),
        )
    ).record
    new = (
        await acme.supersede(
            record_id=old.record_id, text="Initech agreed", subject_keys="company:initech"
        )
    ).record
    assert new.subject_keys == ("company:initech",)
    assert (new.kind, new.metadata, new.expires_at) == ("semantic", {"deal": 1}, old.expires_at)
    assert (new.record_key, new.version, new.sources) == (old.record_key, 2, ())
    assert new.occurred_at > old.occurred_at
    await acme.forget(subject_key="customer:ann")
    assert await acme.records() == [new]
    assert await acme.history(record_key=old.record_key) == [new]


async def test_supersede_keeps_what_is_not_given(acme):
    old = (await acme.remember(text="tea", subject_keys=["p", "q"], metadata={"a": 1})).record
    text_only = (await acme.supersede(record_id=old.record_id, text="coffee")).record
    assert (text_only.text, text_only.subject_keys) == ("coffee", ("p", "q"))
    people_only = (await acme.supersede(record_id=text_only.record_id, subject_keys="q")).record
    assert (people_only.text, people_only.subject_keys) == ("coffee", ("q",))
    all_of_it = (
        await acme.supersede(
            record_id=people_only.record_id,
            text="water",
            kind="profile",
            metadata={"b": 2},
            occurred_at=datetime(2021, 1, 1, tzinfo=UTC),
            expires_at=datetime(2999, 1, 1, tzinfo=UTC),
            embedding=[1.0],
        )
    ).record
    assert (all_of_it.kind, all_of_it.metadata, all_of_it.embedding_dims) == (
        "profile",
        {"b": 2},
        1,
    )
    assert all_of_it.occurred_at == datetime(2021, 1, 1, tzinfo=UTC)
    assert all_of_it.version == 4


async def test_a_kept_text_is_not_masked_twice(acme):
    old = await acme.remember(
        text="write to ann@example.com",
        subject_keys="p",
        metadata={"mail": "ann@example.com", "n": 1},
    )
    new = await acme.supersede(record_id=old.record.record_id, subject_keys="q")
    assert (new.record.text, new.record.redacted) == (old.record.text, old.record.redacted)
    assert new.redactions == ()
    newer = await acme.supersede(
        record_id=new.record.record_id, text="write to nobody", metadata={"n": 2}
    )
    assert newer.record.redacted == ()


async def test_supersede_embeds_anew(memory_factory, plugs):
    embedder = plugs.RecordingEmbedder()
    acme = memory_factory(embedder=embedder).for_tenant("acme")
    old = (await acme.remember(text="tea", subject_keys="p")).record
    new = (await acme.supersede(record_id=old.record_id, subject_keys="q")).record
    assert embedder.calls == [["tea"], ["tea"]]
    assert new.embedding_model == embedder.model


async def test_a_supersede_that_lost_the_race_conflicts(acme):
    old = (await acme.remember(text="tea", subject_keys="p")).record
    new = (await acme.supersede(record_id=old.record_id, text="coffee")).record
    with pytest.raises(ConflictError, match="record_id: a newer version has taken its place"):
        await acme.supersede(record_id=old.record_id, text="water")
    assert await acme.records() == [new]
    assert (await acme.supersede(record_id=new.record_id, text="water")).record.version == 3


async def test_supersede_needs_a_record_that_is_there(memory, acme):
    foreign = (await memory.remember("acme-corp", text="x", subject_keys="p")).record
    for unknown in (uuid4(), foreign.record_id):
        with pytest.raises(UnknownRecordError):
            await acme.supersede(record_id=unknown, text="y")
    assert await acme.records() == []


async def test_supersede_needs_something_new(acme):
    old = (await acme.remember(text="tea", subject_keys="p")).record
    with pytest.raises(InvalidInputError) as refused:
        await acme.supersede(record_id=old.record_id, metadata={"a": 1})
    assert refused.value.field == "text"
    assert await acme.records() == [old]


async def test_a_derived_record_is_derived_again_not_superseded(acme):
    source = (await acme.remember(text="tea", subject_keys="p")).record
    v1 = (await acme.derive(kind="summary", text="s", sources=source, record_key="sum")).record
    with pytest.raises(InvalidInputError) as refused:
        await acme.supersede(record_id=v1.record_id, text="s2")
    assert refused.value.field == "record_id"
    v2 = (await acme.derive(kind="summary", text="s2", sources=source, record_key="sum")).record
    assert [record.version for record in await acme.history(record_key="sum")] == [2, 1]
    assert v2 in await acme.records()
    assert v1.record_id not in [record.record_id for record in await acme.records()]


async def test_every_version_goes_with_its_people(acme):
    old = (await acme.remember(text="v1", subject_keys="p")).record
    await acme.supersede(record_id=old.record_id, text="v2")
    await acme.supersede(record_id=(await acme.records())[0].record_id, text="v3", subject_keys="q")
    receipt = await acme.forget(subject_key="p")
    assert receipt.counts.records == 2
    assert [record.text for record in await acme.history(record_key=old.record_key)] == ["v3"]


async def test_a_line_whose_newest_version_was_erased_goes_on(acme):
    await acme.remember(text="v1", subject_keys="p", record_key="k")
    await acme.remember(text="v2", subject_keys="q", record_key="k")
    (_, old) = await acme.history(record_key="k")
    await acme.forget(subject_key="q")
    assert await acme.records() == []
    again = (await acme.remember(text="v3", subject_keys="p", record_key="k")).record
    assert await acme.records() == [again]
    assert again.version > 1
    assert await acme.get(record_id=old.record_id) == old
