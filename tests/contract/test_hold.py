"""Legal holds: what they keep, what goes beside them, and what is left once they are lifted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from holding import actions, everything, kept, made, refused, told
from memory import Counts

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB, CAROL = "customer:ann", "customer:bob", "customer:carol"


async def test_a_held_person_keeps_everything_and_is_erased_by_the_release(acme, operator):
    first = await told(acme, "Ann likes tea", ANN)
    summary = await made(acme, "tea", first)
    decision = await acme.hold(subject_key=ANN)
    assert decision.action == "hold"
    assert decision.subject_hash == acme.subject_fingerprint(subject_key=ANN)
    assert decision.at.utcoffset() is not None
    receipt = await refused(acme.forget(subject_key=ANN))
    assert (receipt.held, receipt.deferred) == (2, True)
    assert receipt.counts == Counts()
    assert (receipt.kinds, receipt.cascade_depth, receipt.bystanders) == ({}, 0, 0)
    assert receipt.anchor is None
    await kept(acme, first, summary)
    assert await acme.erasure_history() == []

    released = await operator.release(subject_key=ANN)
    assert released.decision.action == "release"
    (completed,) = released.receipts
    assert completed.erasure_id == receipt.erasure_id
    assert completed.counts == Counts(memories=1, derived=1, provenance_edges=1)
    assert (completed.complete, completed.held, completed.deferred) == (True, 0, False)
    assert completed.subject_hashes == receipt.subject_hashes
    await kept(acme)
    (stone,) = await acme.erasure_history()
    assert (stone.erasure_id, stone.memories, stone.derived) == (receipt.erasure_id, 1, 1)
    assert (stone.seq, stone.digest) == (completed.anchor.seq, completed.anchor.digest)
    assert await actions(acme) == ["hold", "request", "release", "complete"]
    request = (await acme.decisions())[2]
    assert (request.erasure_id, request.reason) == (receipt.erasure_id, "subject_request")


async def test_another_persons_erasure_works_beside_a_hold(acme):
    ann = await told(acme, "Ann likes tea", ANN)
    bob = await told(acme, "Bob likes milk", BOB)
    await made(acme, "milk", bob)
    await acme.hold(subject_key=ANN)
    receipt = await acme.forget(subject_key=BOB)
    assert (receipt.counts.records, receipt.complete, receipt.held) == (2, True, 0)
    await kept(acme, ann)


async def test_a_hold_may_come_before_any_record(acme, operator):
    await acme.hold(subject_key=ANN)
    receipt = await refused(acme.forget(subject_key=ANN))
    assert (receipt.held, receipt.deferred) == (0, True)
    record = await told(acme, "Ann likes tea", ANN)
    assert (await refused(acme.forget_record(record_id=record))).held == 1
    await kept(acme, record)
    receipts = (await operator.release(subject_key=ANN)).receipts
    assert sum(receipt.counts.memories for receipt in receipts) == 1
    await kept(acme)


async def test_an_erasure_of_nobody_left_is_completed_with_zero(acme, operator):
    await acme.hold(subject_key=ANN)
    receipt = await refused(acme.forget(subject_key=ANN))
    (completed,) = (await operator.release(subject_key=ANN)).receipts
    assert (completed.counts, completed.complete) == (Counts(), True)
    (stone,) = await acme.erasure_history()
    assert (stone.erasure_id, stone.memories) == (receipt.erasure_id, 0)


async def test_what_is_written_later_takes_the_hold_over(acme, operator):
    await acme.hold(subject_key=ANN)
    bob = await told(acme, "Bob likes milk", BOB)
    digest = await made(acme, "milk", bob)
    ann = await told(acme, "Ann likes tea", ANN)
    both = await made(acme, "tea", ann, bob)
    new = (await acme.supersede(record_id=ann.record_id, text="Ann likes coffee")).record
    ann = await acme.get(record_id=ann.record_id)
    for record, held in ((ann, 2), (both, 1), (new, 1)):
        assert (await refused(acme.forget_record(record_id=record))).held == held
    bob = await acme.relate(record_id=bob.record_id, subject_keys=ANN)
    receipt = await refused(acme.forget(subject_key=BOB))
    assert (receipt.counts.records, receipt.held) == (0, 3)
    for record in (bob, ann, both, new):
        assert await acme.get(record_id=record.record_id) is not None
    held = await acme.get(record_id=digest.record_id)
    assert ANN in held.subject_keys
    assert (await refused(acme.forget_record(record_id=held))).held == 1
    await operator.release(subject_key=ANN)
    assert await everything(acme) == []


async def test_a_held_bystander_keeps_what_leads_to_them_and_no_more(acme, operator):
    """Ann's erasure, where a digest of two of her records is also about Bob, who is held."""
    root = await told(acme, "Ann met Bob's neighbour", ANN)
    other = await told(acme, "Ann likes tea", ANN)
    bob = await told(acme, "Bob likes milk", BOB)
    digest = await made(acme, "neighbours", root, bob)
    gone = [await made(acme, "a meeting", root), await made(acme, "tea", other)]
    deep = await made(acme, "a meeting, in short", *gone)
    await acme.hold(subject_key=BOB)
    rehearsal = await acme.forget(subject_key=ANN, dry_run=True)
    assert (rehearsal.held, rehearsal.deferred, rehearsal.complete) == (2, True, False)

    receipt = await refused(acme.forget(subject_key=ANN))
    # root, from which the held digest was made, and the digest; all else of Ann's is gone.
    assert (receipt.held, receipt.deferred, receipt.bystanders) == (2, True, 0)
    assert receipt.counts == Counts(memories=1, derived=3, provenance_edges=4)
    assert (receipt.kinds, receipt.cascade_depth) == ({"episodic": 1, "summary": 3}, 1)
    assert receipt == replace(
        rehearsal,
        erasure_id=receipt.erasure_id,
        dry_run=False,
        anchor=receipt.anchor,
        erased_at=receipt.erased_at,
    )
    await kept(acme, root, bob, digest)
    for record in (other, *gone, deep):
        assert await acme.get(record_id=record.record_id) is None
    (stone,) = await acme.erasure_history()
    assert (stone.memories, stone.derived) == (1, 3)
    assert stone.digest == receipt.anchor.digest

    (completed,) = (await operator.release(subject_key=BOB)).receipts
    assert completed.erasure_id == receipt.erasure_id
    assert completed.counts == Counts(memories=1, derived=1, provenance_edges=2)
    assert (completed.complete, completed.bystanders) == (True, 1)
    await kept(acme, bob)


async def test_two_holds_are_lifted_by_one_release(acme, operator):
    record = await told(acme, "Ann likes tea", ANN)
    for _ in range(2):
        await acme.hold(subject_key=ANN)
    await kept(acme, record)
    await operator.release(subject_key=ANN)
    assert (await acme.forget(subject_key=ANN)).counts.memories == 1
    assert await actions(acme) == ["hold", "hold", "release"]


async def test_releasing_somebody_who_is_not_held_erases_nothing(acme, operator):
    record = await told(acme, "Ann likes tea", ANN)
    assert (await operator.release(subject_key=ANN)).receipts == ()
    await kept(acme, record)


async def test_an_artefact_of_a_kept_record_is_not_purged(memory_factory, plugs):
    index = plugs.Index("index")
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    operator = memory_factory("operator", indexes=[index]).for_tenant("acme")
    root = await told(acme, "Ann met Bob's neighbour", ANN)
    other = await told(acme, "Ann likes tea", ANN)
    bob = await told(acme, "Bob", BOB)
    await made(acme, "neighbours", root, bob, artefacts=[("index", "digest")])
    await acme.register_artefact(adapter="index", artefact_id="root", sources=root)
    await acme.register_artefact(adapter="index", artefact_id="other", sources=other)
    await acme.hold(subject_key=BOB)
    receipt = await refused(acme.forget(subject_key=ANN))
    assert (index.ids, receipt.counts.artefacts) == (["other"], 1)
    (completed,) = (await operator.release(subject_key=BOB)).receipts
    assert (completed.counts.artefacts, completed.outstanding) == (2, ())
    assert index.ids == ["digest", "other", "root"]


async def test_decisions_are_listed_newest_first_and_name_nobody(acme, operator, memory):
    before = datetime.now(UTC)
    await acme.hold(subject_key=ANN)
    await acme.hold(subject_key=BOB)
    await operator.release(subject_key=ANN)
    found = await acme.decisions()
    assert [one.action for one in found] == ["release", "hold", "hold"]
    assert [one.seq for one in found] == sorted((one.seq for one in found), reverse=True)
    assert all(abs((one.at - before).total_seconds()) < 3_600 for one in found)
    assert await acme.decisions(limit=1) == found[:1]
    assert "ann" not in repr(found)
    assert await memory.decisions("acme-corp") == []


async def test_a_dry_run_of_a_held_erasure_records_nothing(acme):
    record = await told(acme, "Ann likes tea", ANN)
    await acme.hold(subject_key=ANN)
    rehearsal = await acme.forget(subject_key=ANN, dry_run=True)
    assert (rehearsal.counts, rehearsal.held, rehearsal.deferred) == (Counts(), 1, True)
    rehearsal = await acme.forget_record(record_id=record, dry_run=True)
    assert (rehearsal.counts, rehearsal.held, rehearsal.deferred) == (Counts(), 1, True)
    assert await actions(acme) == ["hold"]
    await kept(acme, record)


async def test_a_hold_of_one_tenant_keeps_nothing_of_another(memory_factory):
    memory = memory_factory()
    other = memory.for_tenant("other")
    await told(other, "Ann likes tea", ANN)
    await memory.hold("acme", subject_key=ANN)
    assert (await other.forget(subject_key=ANN)).complete
    assert (await memory.forget("acme", subject_key=CAROL)).complete
