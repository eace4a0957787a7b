"""External indexes: what they owe, who is told, and how an erasure resumes."""

from __future__ import annotations

import pytest

from memory import InvalidInputError, PartialErasureError, UnknownSourceError

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB = "customer:ann", "customer:bob"


async def told(tenant, text, *people):
    return (await tenant.remember(text=text, subject_keys=people)).record


async def test_everything_made_from_the_records_is_purged(memory_factory, plugs, bystander):
    vectors, cache, idle = plugs.Index("vectors"), plugs.Index("cache"), plugs.Index("idle")
    sink = plugs.Sink()
    acme = memory_factory(indexes=[vectors, cache, idle], events=sink).for_tenant("acme")
    record = await told(acme, "Ann called", ANN)
    await acme.register_artefact(adapter="vectors", artefact_id="v1", sources=record)
    await acme.register_artefact(adapter="vectors", artefact_id="zoe", sources=bystander)
    await acme.derive(
        kind="summary", text="s", sources=record, artefacts=[("vectors", "v2"), ("cache", "c1")]
    )
    await acme.register_artefact(adapter="vectors", artefact_id="v2", sources=record)
    receipt = await acme.forget(subject_key=ANN)
    assert (receipt.counts.artefacts, receipt.adapters) == (3, ("cache", "vectors"))
    assert (receipt.outstanding, receipt.complete) == ((), True)
    assert receipt.completed_at >= receipt.erased_at
    assert vectors.ids == ["v1", "v2"]
    assert (cache.asked, idle.asked) == ([["c1"]], [])
    assert (await acme.erasure_history())[0].artefacts == 3
    assert sink.events[0].complete
    assert (await acme.forget(subject_key="customer:zoe", dry_run=True)).counts.artefacts == 1


async def test_registering_again_changes_nothing_and_adds_what_is_new(memory_factory, plugs):
    index = plugs.Index("index")
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    ann, bob = await told(acme, "Ann", ANN), await told(acme, "Bob", BOB)
    for sources in (ann, ann, [ann, bob], [ann, bob]):
        await acme.register_artefact(adapter="index", artefact_id="a", sources=sources)
    assert (await acme.forget(subject_key=ANN, dry_run=True)).counts.artefacts == 1
    assert (await acme.forget(subject_key=BOB)).counts.artefacts == 1
    assert index.asked == [["a"]]


async def test_an_artefact_of_several_records_goes_with_any(memory_factory, plugs):
    index = plugs.Index("index")
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    ann, bob = await told(acme, "Ann", ANN), await told(acme, "Bob", BOB)
    await acme.register_artefact(adapter="index", artefact_id="both", sources=[ann, bob])
    await acme.register_artefact(adapter="index", artefact_id="grown", sources=[ann])
    await acme.register_artefact(adapter="index", artefact_id="grown", sources=[bob])
    await acme.register_artefact(adapter="index", artefact_id="bob", sources=[bob])
    assert (await acme.forget(subject_key=ANN)).counts.artefacts == 2
    assert index.ids == ["both", "grown"]
    assert (await acme.forget(subject_key=BOB)).counts.artefacts == 1
    assert index.ids == ["bob", "both", "grown"]


async def test_a_failing_index_leaves_a_debt_and_nothing_readable(memory_factory, plugs, logs):
    broken, sound = plugs.Index("broken", broken=True), plugs.Index("sound")
    sink = plugs.Sink()
    acme = memory_factory(indexes=[broken, sound], events=sink).for_tenant("acme")
    record = await told(acme, "Ann called", ANN)
    for adapter in ("broken", "sound"):
        await acme.register_artefact(adapter=adapter, artefact_id="secret-artefact", sources=record)
    with pytest.raises(PartialErasureError) as partial:
        await acme.forget(subject_key=ANN)
    receipt = partial.value.receipt
    assert (receipt.complete, receipt.completed_at) == (False, None)
    assert (receipt.adapters, receipt.outstanding) == (("broken", "sound"), ("broken",))
    assert await acme.get(record_id=record.record_id) is None
    assert (sink.events[0].complete, sink.events[0].outstanding) == (False, ("broken",))
    assert sink.events[0].completed_at is None
    for said in (logs.text, str(partial.value), repr(receipt)):
        assert "secret-artefact" not in said
    assert partial.value.__context__ is None

    still = await acme.purge_outstanding()
    assert (still.settled, still.outstanding) == (0, ("broken",))
    broken.broken = False
    done = await acme.purge_outstanding()
    assert (done.settled, done.adapters, done.outstanding) == (1, ("broken",), ())
    again = await acme.purge_outstanding()
    assert (again.settled, again.adapters, again.outstanding) == (0, (), ())
    assert sound.asked == [["secret-artefact"]]


async def test_forgetting_again_resumes_and_counts_nothing_twice(memory_factory, plugs):
    index = plugs.Index("index", broken=True)
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    record = await told(acme, "Ann called", ANN)
    await acme.register_artefact(adapter="index", artefact_id="a1", sources=record)
    for counted in (1, 0):
        with pytest.raises(PartialErasureError) as partial:
            await acme.forget(subject_key=ANN)
        assert partial.value.receipt.counts.artefacts == counted
        assert partial.value.receipt.outstanding == ("index",)
    index.broken = False
    receipt = await acme.forget(subject_key=ANN)
    assert (receipt.complete, receipt.counts.records, receipt.counts.artefacts) == (True, 0, 0)
    assert index.asked == [["a1"]] * 3
    assert (await acme.forget(subject_key=ANN)).adapters == ()


async def test_an_index_unknown_to_this_process_is_reported_not_skipped(memory_factory, plugs):
    acme = memory_factory().for_tenant("acme")
    record = await told(acme, "Ann called", ANN)
    await acme.register_artefact(adapter="elsewhere", artefact_id="a1", sources=record)
    with pytest.raises(PartialErasureError) as partial:
        await acme.forget(subject_key=ANN)
    assert partial.value.receipt.outstanding == ("elsewhere",)
    assert (await acme.purge_outstanding()).outstanding == ("elsewhere",)
    index = plugs.Index("elsewhere")
    done = await memory_factory(indexes=[index]).purge_outstanding("acme")
    assert (done.settled, done.outstanding, index.asked) == (1, (), [["a1"]])


async def test_an_index_that_still_has_it_has_not_purged(memory_factory, plugs):
    index = plugs.StubbornIndex("index", broken=True)
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    record = await told(acme, "Ann called", ANN)
    await acme.register_artefact(adapter="index", artefact_id="a1", sources=record)
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    index.broken = False
    assert (await acme.purge_outstanding()).settled == 1


async def test_many_artefacts_are_purged_in_batches(memory_factory, plugs):
    index = plugs.Index("index")
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    record = await told(acme, "Ann called", ANN)
    ids = [f"a{n:05}" for n in range(2_500)]
    await acme.derive(
        kind="summary", text="s", sources=record, artefacts=[("index", item) for item in ids]
    )
    assert (await acme.forget(subject_key=ANN)).counts.artefacts == 2_500
    assert len(index.asked) < 10
    assert index.ids == ids


async def test_debts_of_two_tenants_are_apart(memory_factory, plugs):
    index = plugs.Index("index", broken=True)
    memory = memory_factory(indexes=[index])
    for tenant in ("acme", "globex"):
        record = await told(memory.for_tenant(tenant), "x", "p")
        await memory.register_artefact(
            tenant, adapter="index", artefact_id=f"of {tenant}", sources=record
        )
        with pytest.raises(PartialErasureError):
            await memory.forget(tenant, subject_key="p")
    index.broken = False
    index.asked.clear()
    assert (await memory.purge_outstanding("acme")).settled == 1
    assert index.asked == [["of acme"]]


async def test_an_artefact_needs_records_that_are_there(memory, acme):
    mine = await told(acme, "x", ANN)
    foreign = await told(memory.for_tenant("acme-corp"), "x", "p")
    with pytest.raises(UnknownSourceError):
        await acme.register_artefact(adapter="i", artefact_id="a", sources=[mine, foreign])
    assert (await acme.forget(subject_key=ANN)).counts.artefacts == 0


async def test_two_indexes_of_one_name_are_refused(memory_factory, plugs):
    with pytest.raises(InvalidInputError) as refused:
        memory_factory(indexes=[plugs.Index("same"), plugs.Index("same")])
    assert refused.value.field == "indexes"
    memory_factory(indexes=[plugs.Index("one"), plugs.Index("other")])
