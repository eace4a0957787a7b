"""What counts as a purge, what stays owed, and whom a failing index may not hurt."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from memory import ConflictError, InvalidInputError, PartialErasureError, UnknownSourceError
from plugged import FAULTS, Index, Verified, told

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB = "customer:ann", "customer:bob"
SOON = timedelta(seconds=0.2)


async def until(index):
    """Wait for the index to be asked."""
    async with asyncio.timeout(20):
        await index.called.wait()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_purge_that_is_not_confirmed_stays_owed(memory_factory, plugs, logs, fault):
    kind, cause, said = FAULTS[fault]
    odd, sound, sink = kind(fault=cause), plugs.Index("sound"), plugs.Sink()
    acme = memory_factory(indexes=[odd, sound], events=sink, purge_timeout=SOON).for_tenant("acme")
    await told(acme, ANN, odd="of Ann", sound="of Ann")
    with pytest.raises(PartialErasureError) as partial:
        await acme.forget(subject_key=ANN)
    assert partial.value.receipt.outstanding == ("odd",)
    assert [event.outstanding for event in sink.events] == [("odd",)]
    assert (odd.asked, sound.asked) == ([["of Ann"]], [["of Ann"]])
    assert odd.ended == (1 if cause in ("hangs", "hangs on") and kind is Index else 0)
    assert f"index odd did not purge: {said}" in logs.text
    assert "of Ann" not in logs.text
    assert (await acme.purge_outstanding()).outstanding == ("odd",)
    odd.fault = None
    assert (await acme.purge_outstanding()).settled == 1
    assert (await acme.forget(subject_key=ANN)).complete


async def test_an_index_that_hangs_delays_no_other_debt(memory_factory, plugs):
    hanging, sound = Index("hanging", "hangs"), plugs.Index("sound")
    both = memory_factory(indexes=[hanging, sound], purge_timeout=timedelta(minutes=1))
    acme = both.for_tenant("acme")
    await told(acme, ANN, hanging="a", sound="a")
    forgetting = asyncio.create_task(acme.forget(subject_key=ANN))
    other = memory_factory(indexes=[sound]).for_tenant("acme")
    await until(hanging)
    for _ in range(500):
        if (await other.purge_outstanding()).outstanding == ("hanging",):
            break
        await asyncio.sleep(0.01)
    assert (await other.purge_outstanding()).outstanding == ("hanging",)
    # Another person's erasure is whole meanwhile.
    await told(acme, BOB, sound="b")
    assert (await acme.forget(subject_key=BOB)).complete
    forgetting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forgetting
    assert sorted(sound.ids) == ["a", "b"]


async def test_the_caller_may_cancel_and_the_debt_is_free_at_once(memory_factory):
    index = Index(fault="hangs")
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="a")
    forgetting = asyncio.create_task(acme.forget(subject_key=ANN))
    await until(index)
    forgetting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forgetting
    assert index.ended == 1
    index.fault = None
    # The index was not to blame: a worker need not wait.
    assert (await acme.purge_outstanding(due_only=True)).settled == 1


async def test_a_worker_waits_after_a_failure_and_a_call_by_hand_does_not(memory_factory):
    index = Index(fault=OSError())
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="a")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    waiting = await acme.purge_outstanding(due_only=True)
    assert (waiting.settled, waiting.outstanding, len(index.asked)) == (0, ("odd",), 1)
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    await acme.purge_outstanding()
    assert len(index.asked) == 3
    await told(acme, BOB, odd="b")
    index.fault = None
    assert (await acme.forget(subject_key=BOB)).complete
    assert (await acme.purge_outstanding(due_only=True)).outstanding == ("odd",)
    assert (await acme.purge_outstanding()).settled == 1
    with pytest.raises(InvalidInputError):
        await acme.purge_outstanding(due_only="yes")


async def test_what_makes_a_call_fail_does_not_fail_other_debts(memory_factory):
    class Choosy(Index):
        async def purge(self, artefact_ids):
            self.asked.append(list(artefact_ids))
            if "poison" in artefact_ids:
                raise ValueError
            return len(artefact_ids)

    index = Choosy()
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="poison")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    await told(acme, BOB, odd="of Bob")
    assert (await acme.forget(subject_key=BOB)).complete
    await told(acme, BOB, odd="of Bob")
    await memory_forget(memory_factory, BOB)
    done = await acme.purge_outstanding()
    assert (done.settled, done.outstanding) == (1, ("odd",))
    assert index.asked == [["poison"], ["of Bob"], ["of Bob"], ["poison"]]


async def memory_forget(memory_factory, person):
    """Forget by a process that has no index."""
    with pytest.raises(PartialErasureError):
        await memory_factory().for_tenant("acme").forget(subject_key=person)


async def test_an_erasure_answers_for_its_own_people(memory_factory):
    index = Index(fault=OSError())
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="a")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    assert (await acme.forget(subject_key="customer:cid")).adapters == ()
    index.fault = None
    index.asked.clear()
    await told(acme, BOB, odd="b")
    receipt = await acme.forget(subject_key=BOB)
    assert (receipt.complete, index.asked) == (True, [["b"]])
    assert (await acme.purge_outstanding()).settled == 1


async def test_each_debt_is_asked_for_once_in_a_drain(memory_factory):
    index = Verified(fault=lambda ids: [item for item in ids if item < "a1100"])
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    record = await told(acme, ANN)
    ids = [f"a{n:04}" for n in range(2_500)]
    await acme.derive(kind="s", text="s", sources=record, artefacts=[("odd", i) for i in ids])
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    # What the index still has does not keep it from being asked for the rest.
    assert sorted(item for batch in index.asked for item in batch) == ids
    assert max(map(len, index.asked)) <= 1_000
    index.fault = None
    assert (await acme.purge_outstanding()).settled == 1_100


async def test_two_drains_at_once_do_nothing_twice(memory_factory, plugs):
    class Slow(plugs.Index):
        async def purge(self, artefact_ids):
            await asyncio.sleep(0.02)
            return await super().purge(artefact_ids)

    index = Slow("index")
    acme = memory_factory().for_tenant("acme")
    record = await told(acme, ANN)
    ids = [f"a{n:04}" for n in range(3_000)]
    await acme.derive(kind="s", text="s", sources=record, artefacts=[("index", i) for i in ids])
    await memory_forget(memory_factory, ANN)
    drains = [memory_factory(indexes=[index]).purge_outstanding("acme") for _ in range(3)]
    done = await asyncio.gather(*drains)
    assert sum(each.settled for each in done) == 3_000
    assert index.ids == ids
    assert (await acme.purge_outstanding()).adapters == ()


async def test_an_artefact_is_not_registered_while_its_purge_is_owed(memory_factory):
    index = Index(fault=OSError())
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="digest")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    record = await told(acme, BOB, odd="other")
    with pytest.raises(ConflictError, match="purge"):
        await acme.register_artefact(adapter="odd", artefact_id="digest", sources=record)
    before = await acme.records()
    with pytest.raises(ConflictError):
        await acme.derive(
            kind="s", text="s", sources=record, artefacts=[("odd", "new"), ("odd", "digest")]
        )
    assert await acme.records() == before
    index.fault = None
    await acme.purge_outstanding()
    await acme.register_artefact(adapter="odd", artefact_id="digest", sources=record)
    await acme.register_artefact(adapter="odd", artefact_id="digest", sources=record)
    assert (await acme.forget(subject_key=BOB)).counts.artefacts == 2
    assert index.asked[-1] == ["digest", "other"]


async def test_an_entry_written_after_the_erasure_is_noticed_by_registering_again(
    memory_factory, plugs
):
    index = plugs.Index("odd")
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    record = await told(acme, ANN, odd="late")
    assert (await acme.forget(subject_key=ANN)).complete
    # Here the host writes what it has registered.
    with pytest.raises(UnknownSourceError):
        await acme.register_artefact(adapter="odd", artefact_id="late", sources=record)
    other = await told(acme, BOB, odd="in time")
    await acme.register_artefact(adapter="odd", artefact_id="in time", sources=other)
    assert (await acme.forget(subject_key=BOB)).counts.artefacts == 1


async def test_a_refused_derive_registers_nothing(memory, acme):
    await told(acme, ANN)
    foreign = await told(memory.for_tenant("acme-corp"), BOB)
    with pytest.raises(Exception, match="sources"):
        await acme.derive(kind="s", text="s", sources=foreign, artefacts=[("odd", "a")])
    assert (await acme.forget(subject_key=ANN, dry_run=True)).counts.artefacts == 0
    mine = await told(acme, ANN)
    await acme.derive(kind="s", text="s", sources=mine, artefacts=[("odd", "a")])
    assert (await acme.forget(subject_key=ANN, dry_run=True)).counts.artefacts == 1


@pytest.mark.parametrize("timeout", [timedelta(), timedelta(seconds=-1), 30, timedelta(days=2)])
def test_a_timeout_is_a_length_of_time(memory_factory, timeout):
    with pytest.raises(InvalidInputError) as refused:
        memory_factory(purge_timeout=timeout)
    assert refused.value.field == "purge_timeout"
    memory_factory(purge_timeout=timedelta(seconds=30))
