from __future__ import annotations

from uuid import uuid4

import pytest

from memory import ProvenanceRequiredError, UnknownRecordError, UnknownSourceError


async def told(tenant, text, *people):
    return (await tenant.remember(text=text, subject_keys=people)).record


async def test_a_derived_record_is_about_everybody_its_sources_are_about(acme):
    a = await told(acme, "Ann likes tea", "customer:ann")
    b = await told(acme, "Bob and Cy like milk", "customer:bob", "customer:cy")
    derived = (
        await acme.derive(
            kind="digest",
            text="Likes tea and milk",
            sources=[b, a.record_id, str(a.record_id)],
            metadata={"n": 2},
            embedding=[1.0],
        )
    ).record
    assert (derived.origin, derived.kind, derived.metadata) == ("derived", "digest", {"n": 2})
    assert derived.subject_keys == ("customer:ann", "customer:bob", "customer:cy")
    assert derived.sources == tuple(sorted([a.record_id, b.record_id]))
    assert derived.embedding_dims == 1
    assert await acme.get(record_id=derived.record_id) == derived
    assert derived in await acme.records(subject_keys="customer:bob")


async def test_a_derived_record_without_a_source_is_refused(acme):
    for nothing in ([], (), None):
        with pytest.raises(ProvenanceRequiredError) as refused:
            await acme.derive(kind="summary", text="x", sources=nothing)
        assert refused.value.field == "sources"
    assert await acme.records() == []
    source = await told(acme, "x", "p")
    assert (await acme.derive(kind="summary", text="x", sources=source)).record.sources


async def test_a_missing_source_is_named_at_once_and_nothing_is_stored(memory, acme):
    source = await told(acme, "mine", "p")
    foreign = await told(memory.for_tenant("acme-corp"), "theirs", "p")
    for unknown in (uuid4(), foreign, foreign.record_id):
        with pytest.raises(UnknownSourceError):
            await acme.derive(kind="summary", text="x", sources=[source, unknown])
    assert await acme.records() == [source]
    receipt = await acme.forget(subject_key="p", dry_run=True)
    assert (receipt.counts.derived, receipt.counts.provenance_edges) == (0, 0)


async def test_an_erased_source_is_an_unknown_one(acme):
    source = await told(acme, "x", "p")
    await acme.forget(subject_key="p")
    with pytest.raises(UnknownSourceError):
        await acme.derive(kind="summary", text="x", sources=source)


async def test_a_superseded_source_is_allowed(acme):
    old = await told(acme, "old", "p")
    await acme.supersede(record_id=old.record_id, text="new")
    derived = (await acme.derive(kind="summary", text="of old", sources=old)).record
    assert derived.sources == (old.record_id,)


async def test_a_rolling_summary_is_made_from_the_one_before(acme):
    summary = await told(acme, "start", "p0")
    for n in range(1, 4):
        turn = await told(acme, f"turn {n}", f"p{n}")
        summary = (
            await acme.derive(
                kind="summary", text=f"sum {n}", sources=[summary, turn], record_key="rolling"
            )
        ).record
    assert summary.version == 3
    assert summary.subject_keys == ("p0", "p1", "p2", "p3")
    receipt = await acme.forget(subject_key="p1")
    assert (receipt.counts.memories, receipt.counts.derived, receipt.cascade_depth) == (1, 3, 3)
    assert await acme.history(record_key="rolling") == []


async def test_one_source_may_serve_many_and_come_twice(acme):
    source = await told(acme, "x", "p")
    for n in range(3):
        made = await acme.derive(kind="summary", text=f"s{n}", sources=[source, source])
        assert made.record.sources == (source.record_id,)
    assert (await acme.forget(subject_key="p")).counts.provenance_edges == 3


async def test_a_person_recognised_later_is_linked_to_all_that_was_derived(acme):
    source = await told(acme, "she called", "customer:ann")
    summary = (await acme.derive(kind="summary", text="a call", sources=source)).record
    digest = (await acme.derive(kind="digest", text="calls", sources=summary)).record
    related = await acme.relate(record_id=source.record_id, subject_keys=["customer:bob", "x"])
    assert related.subject_keys == ("customer:ann", "customer:bob", "x")
    for record in (source, summary, digest):
        now = await acme.get(record_id=record.record_id)
        assert now.subject_keys == ("customer:ann", "customer:bob", "x")
    receipt = await acme.forget(subject_key="customer:bob")
    assert (receipt.counts.memories, receipt.counts.derived) == (1, 2)
    assert await acme.records() == []


async def test_relating_twice_changes_nothing(acme):
    record = await told(acme, "she called", "customer:ann")
    once = await acme.relate(record_id=record.record_id, subject_keys="customer:bob")
    assert await acme.relate(record_id=record.record_id, subject_keys="customer:bob") == once


async def test_a_person_linked_to_a_derived_record_only_takes_that_one(acme):
    source = await told(acme, "x", "customer:ann")
    summary = (await acme.derive(kind="summary", text="s", sources=source)).record
    await acme.relate(record_id=summary.record_id, subject_keys="customer:bob")
    assert (await acme.get(record_id=source.record_id)).subject_keys == ("customer:ann",)
    receipt = await acme.forget(subject_key="customer:bob")
    assert (receipt.counts.memories, receipt.counts.derived) == (0, 1)
    assert await acme.records() == [source]


async def test_relate_needs_a_record_that_is_there(memory, acme):
    foreign = await told(memory.for_tenant("acme-corp"), "x", "p")
    for unknown in (uuid4(), foreign.record_id):
        with pytest.raises(UnknownRecordError):
            await acme.relate(record_id=unknown, subject_keys="q")
    assert (await memory.get("acme-corp", record_id=foreign.record_id)).subject_keys == ("p",)
