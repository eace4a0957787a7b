"""After an update, an erasure or a new model no way of asking finds what is no longer there."""

from __future__ import annotations

import pytest

from memory import HashingEmbedder
from recalling import everywhere, records_of, ways

EAST, NORTH = [1.0, 0.0], [0.0, 1.0]


async def told(tenant, text, embedding=EAST, **more):
    given = {"text": text, "subject_keys": "ann", "embedding": embedding, **more}
    return (await tenant.remember(**given)).record


async def updated_by(verb, tenant, old):
    """The second version of a record, by the verb."""
    if verb == "supersede":
        given = {"text": "note coffee", "embedding": NORTH}
        return (await tenant.supersede(record_id=old.record_id, **given)).record
    if verb == "remember":
        return await told(tenant, "note coffee", NORTH, record_key=old.record_key)
    given = {"kind": "summary", "text": "note coffee", "embedding": NORTH}
    return (await tenant.derive(sources=old.sources, record_key=old.record_key, **given)).record


@pytest.mark.parametrize("verb", ["supersede", "remember", "derive"])
async def test_an_old_version_is_found_in_no_way_unless_it_is_asked_for(acme, verb):
    source = await told(acme, "another line of words", [0.6, 0.8], kind="source")
    if verb == "derive":
        given = {"kind": "summary", "text": "note tea", "embedding": EAST, "record_key": "k"}
        old = (await acme.derive(sources=source, **given)).record
    else:
        old = await told(acme, "note tea", record_key="k")
    new = await updated_by(verb, acme, old)
    kinds = ["episodic", "summary"]
    for text, vector in (("note tea", EAST), ("note coffee", NORTH)):
        assert await everywhere(acme, text, vector, kinds=kinds) == [new]
        every = await everywhere(acme, text, vector, kinds=kinds, include_superseded=True)
        assert [item.record_id for item in every] == [old.record_id, new.record_id]
    versions = await acme.history(record_key="k")
    assert [(item.version, item.record_id) for item in versions] == [
        (2, new.record_id),
        (1, old.record_id),
    ]


async def test_the_old_similarity_is_gone_after_an_update(memory_factory):
    acme = memory_factory(embedder=HashingEmbedder(64)).for_tenant("acme")
    old = (await acme.remember(text="prefers green tea", subject_keys="ann")).record
    before = await acme.recall(text="prefers green tea")
    assert before.hits[0].score == pytest.approx(1, abs=1e-6)
    await acme.supersede(record_id=old.record_id, text="drinks coffee only")
    after = await acme.recall(text="prefers green tea")
    assert [hit.record.text for hit in after.hits] == ["drinks coffee only"]
    assert after.hits[0].score < 0.5


async def test_a_document_that_shrinks_leaves_no_chunk_behind(acme):
    chunks = [await told(acme, f"note chunk {n}", record_key=f"doc#{n}") for n in range(3)]
    whole = await told(acme, "note whole", NORTH, record_key="doc#0")
    for chunk in chunks[1:]:
        await acme.forget_record(record_id=chunk.record_id)
    for vector in (EAST, NORTH):
        assert await everywhere(acme, "note chunk", vector) == [whole]
    left = await everywhere(acme, "note chunk", EAST, include_superseded=True)
    assert [item.record_id for item in left] == [chunks[0].record_id, whole.record_id]


async def test_an_id_that_is_used_again_has_nothing_of_the_old_record(acme, bystander):
    old = await told(acme, "note tea", metadata={"a": 1}, kind="profile")
    await acme.derive(kind="summary", text="note derived", sources=old, embedding=EAST)
    await acme.forget_record(record_id=old.record_id)
    new = await told(acme, "note coffee", NORTH, record_id=old.record_id, subject_keys="bob")
    assert new.record_id == old.record_id
    assert await everywhere(acme, "note", EAST, subject_keys="bob") == [new]
    assert await everywhere(acme, "note", EAST, subject_keys="ann") == []
    found = await acme.recall(embedding=EAST, subject_keys="bob")
    assert found.hits[0].score == pytest.approx(0, abs=1e-6)
    assert (await acme.recall(text="tea", strategy="lexical")).hits == ()
    assert bystander in await acme.records()


async def test_what_was_recalled_before_is_not_recalled_after_an_erasure(memory_factory):
    here, there = memory_factory(), memory_factory()
    kept = await told(here.for_tenant("acme"), "note kept", subject_keys="bob")
    gone = await told(here.for_tenant("acme"), "note gone")
    for memory in (here, there, here):
        assert await everywhere(memory.for_tenant("acme"), "note", EAST) == [kept, gone]
    await here.forget("acme", subject_key="ann")
    for memory in (here, there):
        assert await everywhere(memory.for_tenant("acme"), "note", EAST) == [kept]
        for asked in ways("note gone", EAST).values():
            assert records_of(await memory.recall("acme", subject_keys="ann", **asked)) == []


class Named(HashingEmbedder):
    def __init__(self, dimensions, model):
        super().__init__(dimensions)
        self.model = model


@pytest.mark.parametrize("length", [8, 16])
async def test_two_models_side_by_side_are_each_found_by_their_own(memory_factory, length):
    one = memory_factory(embedder=Named(8, "one")).for_tenant("acme")
    other = memory_factory(embedder=Named(length, "other")).for_tenant("acme")
    first = (await one.remember(text="note first", subject_keys="ann")).record
    second = (await other.remember(text="note second", subject_keys="ann")).record
    unembedded = await told(memory_factory().for_tenant("acme"), "note third", None)
    for tenant, own in ((one, first), (other, second)):
        found = await tenant.recall(text="note")
        assert records_of(found) == [own]
        assert "1 skipped because embedded by another model" in found.note
        by_words = await tenant.recall(text="note", strategy="lexical")
        assert records_of(by_words) == [unembedded, second, first]
    receipt = await one.forget(subject_key="ann")
    assert receipt.counts.records == 3
    for tenant in (one, other):
        assert records_of(await tenant.recall(text="note")) == []


async def test_a_new_model_takes_over_version_by_version(memory_factory):
    one = memory_factory(embedder=Named(8, "one")).for_tenant("acme")
    other = memory_factory(embedder=Named(16, "other")).for_tenant("acme")
    old = (await one.remember(text="note tea", subject_keys="ann")).record
    new = (await other.supersede(record_id=old.record_id, text="note tea")).record
    assert records_of(await other.recall(text="note tea")) == [new]
    gone = await one.recall(text="note tea")
    assert (gone.hits, "1 skipped" in gone.note) == ((), True)
    assert records_of(await one.recall(text="note tea", include_superseded=True))[0].version == 1
