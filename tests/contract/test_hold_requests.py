"""What a hold defers: the request that is recorded, and how the release carries it out."""

from __future__ import annotations

import pytest

from holding import actions, kept, refused, told
from memory import Counts, UnknownRecordError

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB = "customer:ann", "customer:bob"


async def test_a_record_about_two_held_people_waits_for_both(acme, operator):
    both = await told(acme, "Ann met Bob", ANN, BOB)
    for person in (ANN, BOB):
        await acme.hold(subject_key=person)
    receipt = await refused(acme.forget(subject_key=ANN))
    assert (await operator.release(subject_key=ANN)).receipts == ()
    await kept(acme, both)
    assert (await refused(acme.forget_record(record_id=both))).held == 1
    receipts = (await operator.release(subject_key=BOB)).receipts
    assert [one.complete for one in receipts] == [True]
    assert receipts[0].erasure_id == receipt.erasure_id
    await kept(acme)
    assert (await actions(acme)).count("complete") == 3


async def test_a_release_carries_out_what_it_can_of_what_still_waits(acme, operator):
    ann = await told(acme, "Ann likes tea", ANN)
    both = await told(acme, "Ann met Bob", ANN, BOB)
    for person in (ANN, BOB):
        await acme.hold(subject_key=person)
    receipt = await refused(acme.forget(subject_key=ANN))
    (partly,) = (await operator.release(subject_key=ANN)).receipts
    assert (partly.erasure_id, partly.deferred, partly.held) == (receipt.erasure_id, True, 1)
    assert partly.counts == Counts(memories=1)
    assert await acme.get(record_id=ann.record_id) is None
    await kept(acme, both)
    (rest,) = (await operator.release(subject_key=BOB)).receipts
    assert (rest.counts, rest.complete) == (Counts(memories=1), True)
    assert [stone.memories for stone in await acme.erasure_history()] == [1, 1]


async def test_the_deferred_erasure_is_the_one_that_was_asked_for(acme, operator):
    profile = await told(acme, "Ann likes tea", ANN, kind="profile")
    note = await told(acme, "Ann called", ANN)
    await acme.hold(subject_key=ANN)
    receipt = await refused(
        acme.forget(subject_key=ANN, kinds=["profile", "belief"], reason="retention_policy")
    )
    assert receipt.scope == "kinds"
    request = (await acme.decisions())[0]
    assert (request.kinds, request.scope) == (("profile", "belief"), "kinds")
    (completed,) = (await operator.release(subject_key=ANN)).receipts
    assert (completed.reason, completed.scope) == ("retention_policy", "kinds")
    assert completed.kinds == {"profile": 1}
    assert await acme.get(record_id=profile.record_id) is None
    await kept(acme, note)
    (stone,) = await acme.erasure_history()
    assert (stone.reason, stone.scope) == ("retention_policy", "kinds")


async def test_one_held_record_is_erased_by_the_release_and_its_neighbour_stays(acme, operator):
    record = await told(acme, "Ann met Bob", ANN, BOB)
    neighbour = await told(acme, "Ann likes tea", ANN)
    await acme.hold(subject_key=BOB)
    receipt = await refused(acme.forget_record(record_id=record, reason="operator"))
    assert (receipt.scope, receipt.held, receipt.deferred) == ("record", 1, True)
    requests = [one for one in await acme.decisions() if one.action == "request"]
    assert {one.subject_hash for one in requests} == {
        acme.subject_fingerprint(subject_key=person) for person in (ANN, BOB)
    }
    assert {one.record_id for one in requests} == {record.record_id}
    (completed,) = (await operator.release(subject_key=BOB)).receipts
    assert (completed.reason, completed.scope) == ("operator", "record")
    assert completed.counts.records == 1
    with pytest.raises(UnknownRecordError):
        await acme.forget_record(record_id=record)
    await kept(acme, neighbour)
    completes = [one for one in await acme.decisions() if one.action == "complete"]
    assert {one.subject_hash for one in completes} == {one.subject_hash for one in requests}
    assert {one.erasure_id for one in completes} == {receipt.erasure_id}
    stones = await acme.erasure_history()
    assert {stone.erasure_id for stone in stones} == {receipt.erasure_id}
    assert len(stones) == 2


async def test_a_request_for_a_record_that_went_otherwise_is_closed(acme, operator):
    record = await told(acme, "Ann met Bob", ANN, BOB)
    for person in (ANN, BOB):
        await acme.hold(subject_key=person)
    await refused(acme.forget_record(record_id=record))
    await refused(acme.forget(subject_key=ANN))
    await operator.release(subject_key=ANN)
    receipts = (await operator.release(subject_key=BOB)).receipts
    assert sum(receipt.counts.memories for receipt in receipts) == 1
    assert (await operator.release(subject_key=BOB)).receipts == ()
    assert (await actions(acme)).count("complete") == 3


async def test_an_index_that_fails_after_a_release_is_outstanding_and_no_error(
    memory_factory, plugs
):
    broken = memory_factory("operator", indexes=[plugs.Index("index", broken=True)])
    acme = broken.for_tenant("acme")
    record = await told(acme, "Ann likes tea", ANN)
    await acme.register_artefact(adapter="index", artefact_id="a", sources=record)
    await acme.hold(subject_key=ANN)
    await refused(acme.forget(subject_key=ANN))
    (completed,) = (await acme.release(subject_key=ANN)).receipts
    assert (completed.complete, completed.outstanding) == (False, ("index",))
    assert completed.counts.memories == 1
    whole = memory_factory(indexes=[plugs.Index("index")])
    assert (await whole.purge_outstanding("acme")).outstanding == ()


async def test_each_finished_erasure_has_one_event(memory_factory, plugs):
    sink = plugs.Sink()
    acme = memory_factory("operator", events=sink).for_tenant("acme")
    await told(acme, "Ann likes tea", ANN)
    await acme.hold(subject_key=ANN)
    await refused(acme.forget(subject_key=ANN))
    await refused(acme.forget(subject_key=ANN))
    await acme.release(subject_key=ANN)
    assert [(event.memories, event.complete) for event in sink.events] == [
        (0, False),
        (0, False),
        (1, True),
        (0, True),
    ]


async def test_what_is_remembered_after_the_request_goes_with_it(acme, operator):
    await told(acme, "Ann likes tea", ANN)
    await acme.hold(subject_key=ANN)
    await refused(acme.forget(subject_key=ANN))
    await told(acme, "Ann likes coffee", ANN)
    (completed,) = (await operator.release(subject_key=ANN)).receipts
    assert completed.counts.memories == 2
    await kept(acme)
