"""What goes with a person, what stays, and what the receipt says about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from memory import ConflictError, Counts, InvalidInputError

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB = "customer:ann", "customer:bob"


async def told(tenant, text, *people, **more):
    return (await tenant.remember(text=text, subject_keys=people, **more)).record


async def made(tenant, text, *sources, kind="summary", **more):
    return (await tenant.derive(kind=kind, text=text, sources=sources, **more)).record


async def everything_about(tenant, person):
    return await tenant.records(subject_keys=person, limit=1_000)


async def test_a_person_goes_with_all_that_was_derived(acme):
    first = await told(acme, "Ann likes tea", ANN, embedding=[1.0, 2.0])
    second = await told(acme, "Ann moved", ANN, kind="summary")
    summary = await made(acme, "tea and a move", first, second, embedding=[1.0, 2.0])
    digest = await made(acme, "a customer moved", summary, kind="digest")
    before = datetime.now(UTC)
    receipt = await acme.forget(subject_key=ANN)
    assert receipt.counts == Counts(memories=2, derived=2, provenance_edges=3, artefacts=0)
    assert receipt.counts.records == 4
    assert receipt.kinds == {"digest": 1, "episodic": 1, "summary": 2}
    assert (receipt.cascade_depth, receipt.bystanders, receipt.held) == (2, 0, 0)
    assert (receipt.reason, receipt.scope, receipt.tenant_key) == (
        "subject_request",
        "subject",
        "acme",
    )
    assert receipt.subject_hashes == (acme.subject_fingerprint(subject_key=ANN),)
    assert (receipt.complete, receipt.dry_run, receipt.outstanding) == (True, False, ())
    assert before <= receipt.erased_at <= receipt.completed_at <= datetime.now(UTC)
    for record in (first, second, summary, digest):
        assert await acme.get(record_id=record.record_id) is None
        assert await acme.history(record_key=record.record_key) == []
    for asked in ({"text": "tea moved customer"}, {"embedding": [1.0, 2.0]}, {}):
        assert (await acme.recall(subject_keys=ANN, **asked)).hits == ()
    assert await everything_about(acme, ANN) == []


async def test_forgetting_somebody_unknown_says_zero_every_time(acme):
    for _ in range(2):
        receipt = await acme.forget(subject_key="customer:nobody")
        assert receipt.counts == Counts()
        assert (receipt.kinds, receipt.cascade_depth, receipt.bystanders) == ({}, 0, 0)
        assert receipt.complete
        assert receipt.anchor is not None
    assert [stone.memories for stone in await acme.erasure_history()] == [0, 0]


async def test_forgetting_twice_counts_once(acme):
    await told(acme, "Ann likes tea", ANN)
    assert (await acme.forget(subject_key=ANN)).counts.memories == 1
    assert (await acme.forget(subject_key=ANN)).counts.memories == 0


async def test_a_person_may_be_remembered_again(acme):
    own = uuid4()
    await told(acme, "before", ANN, record_id=own)
    await acme.forget(subject_key=ANN)
    after = await told(acme, "after", ANN, record_id=own)
    assert await everything_about(acme, ANN) == [after]


async def test_a_memory_about_two_people_goes_with_either(acme):
    both = await told(acme, "Ann met Bob", ANN, BOB)
    bob = await told(acme, "Bob likes milk", BOB)
    rehearsal = await acme.forget(subject_key=ANN, dry_run=True)
    assert (rehearsal.bystanders, rehearsal.bystander_keys) == (1, (BOB,))
    receipt = await acme.forget(subject_key=ANN)
    assert (receipt.counts.memories, receipt.bystanders, receipt.bystander_keys) == (1, 1, ())
    assert await acme.get(record_id=both.record_id) is None
    assert await everything_about(acme, BOB) == [bob]


async def test_a_digest_of_five_goes_with_one_and_the_four_stay(acme):
    people = [f"customer:{name}" for name in ("a", "b", "c", "d", "e")]
    memories = [await told(acme, f"told by {person}", person) for person in people]
    digest = await made(acme, "five people", *memories, kind="digest")
    rehearsal = await acme.forget(subject_key=people[2], dry_run=True)
    assert rehearsal.bystander_keys == (*people[:2], *people[3:])
    receipt = await acme.forget(subject_key=people[2])
    assert receipt.counts == Counts(memories=1, derived=1, provenance_edges=5)
    assert (receipt.bystanders, receipt.cascade_depth) == (4, 1)
    assert await acme.get(record_id=digest.record_id) is None
    for person, memory in zip(people, memories, strict=True):
        expected = [] if person == people[2] else [memory]
        assert await everything_about(acme, person) == expected


async def test_a_digest_can_be_derived_anew_without_the_person(acme):
    ann, bob = await told(acme, "Ann", ANN), await told(acme, "Bob", BOB)
    await made(acme, "Ann and Bob", ann, bob, record_key="digest")
    without = await made(acme, "Bob", bob, record_key="digest")
    await acme.forget(subject_key=ANN)
    assert await everything_about(acme, BOB) == [without, bob]
    assert await acme.history(record_key="digest") == [without]


async def test_a_thousand_derivations_go_in_one_call(acme):
    last = await told(acme, "start", ANN)
    for n in range(1_000):
        last = await made(acme, f"step {n}", last)
    receipt = await acme.forget(subject_key=ANN)
    assert receipt.counts == Counts(memories=1, derived=1_000, provenance_edges=1_000)
    assert receipt.cascade_depth == 1_000
    assert await everything_about(acme, ANN) == []


async def test_the_depth_is_the_shortest_way_of_the_farthest(acme):
    root = await told(acme, "root", ANN)
    near = await made(acme, "near", root)
    far = await made(acme, "far", near)
    await made(acme, "both ways", root, far)
    assert (await acme.forget(subject_key=ANN)).cascade_depth == 2


async def test_more_records_than_any_page_go_at_once(acme):
    count = 2_001
    await acme.remember_many(
        items=[{"text": f"note {n}", "subject_keys": ANN} for n in range(count)]
    )
    receipt = await acme.forget(subject_key=ANN)
    assert receipt.counts.memories == count
    assert (await acme.erasure_history())[0].memories == count
    assert await everything_about(acme, ANN) == []


async def test_superseded_and_expired_records_go_too(memory_factory):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    acme = memory_factory(clock=lambda: now).for_tenant("acme")
    old = await told(acme, "v1", ANN)
    await acme.supersede(record_id=old.record_id, text="v2")
    await told(acme, "gone by noon", ANN, expires_at=datetime(2026, 1, 1, 12, tzinfo=UTC))
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert (await acme.forget(subject_key=ANN)).counts.memories == 3


async def test_kinds_narrow_the_roots_and_not_the_cascade(acme):
    profile = await told(acme, "Ann likes tea", ANN, kind="profile")
    episode = await told(acme, "Ann called", ANN)
    of_profile = await made(acme, "tea", profile)
    of_episode = await made(acme, "a call", episode)
    receipt = await acme.forget(subject_key=ANN, kinds="profile")
    assert (receipt.scope, receipt.counts.memories, receipt.counts.derived) == ("kinds", 1, 1)
    assert await everything_about(acme, ANN) == [of_episode, episode]
    assert await acme.get(record_id=of_profile.record_id) is None
    assert (await acme.erasure_history())[0].scope == "kinds"


async def test_kinds_reach_what_was_only_inherited(acme):
    episode = await told(acme, "Ann called", ANN)
    summary = await made(acme, "a call", episode)
    digest = await made(acme, "calls", summary, kind="digest")
    receipt = await acme.forget(subject_key=ANN, kinds=["summary", "profile"])
    assert receipt.counts == Counts(memories=0, derived=2, provenance_edges=2)
    assert receipt.cascade_depth == 1
    assert await everything_about(acme, ANN) == [episode]
    assert await acme.get(record_id=digest.record_id) is None


async def test_a_dry_run_equals_the_real_run_and_changes_nothing(acme):
    both = await told(acme, "Ann met Bob", ANN, BOB)
    summary = await made(acme, "a meeting", both, artefacts=[("index", "a1")])
    held = await acme.records(limit=1_000)
    rehearsal = await acme.forget(subject_key=ANN, dry_run=True)
    assert await acme.records(limit=1_000) == held
    assert await acme.erasure_history() == []
    assert (rehearsal.dry_run, rehearsal.complete, rehearsal.anchor) == (True, False, None)
    assert (rehearsal.completed_at, rehearsal.outstanding) == (None, ())
    assert rehearsal.adapters == ("index",)
    real = await acme.forget_record(record_id=summary.record_id, dry_run=True)
    assert real.counts == Counts(memories=0, derived=1, provenance_edges=1, artefacts=1)
    with pytest.raises(Exception, match="not confirmed by") as partial:
        await acme.forget(subject_key=ANN)
    receipt = partial.value.receipt
    assert receipt == replace(
        rehearsal,
        erasure_id=receipt.erasure_id,
        bystander_keys=(),
        outstanding=("index",),
        dry_run=False,
        anchor=receipt.anchor,
        erased_at=receipt.erased_at,
    )


async def test_what_was_approved_is_what_goes(acme):
    await told(acme, "one", ANN)
    approved = (await acme.forget(subject_key=ANN, dry_run=True)).closure
    later = await told(acme, "two", ANN)
    with pytest.raises(ConflictError):
        await acme.forget(subject_key=ANN, expect=approved)
    assert later in await everything_about(acme, ANN)
    assert len(await everything_about(acme, ANN)) == 2
    assert await acme.erasure_history() == []
    approved = (await acme.forget(subject_key=ANN, dry_run=True)).closure
    receipt = await acme.forget(subject_key=ANN, expect=approved)
    assert (receipt.counts.memories, receipt.closure) == (2, approved)


async def test_the_reason_is_a_code(acme):
    for reason in ("subject_request", "retention_policy", "operator"):
        receipt = await acme.forget(subject_key=ANN, reason=reason)
        assert receipt.reason == reason
    with pytest.raises(InvalidInputError):
        await acme.forget(subject_key=ANN, reason="Ann rang on Monday")
    assert len(await acme.erasure_history()) == 3


async def test_forgetting_never_asks_the_embedder(memory_factory, plugs):
    embedder = plugs.RecordingEmbedder()
    acme = memory_factory(embedder=embedder).for_tenant("acme")
    record = await told(acme, "Ann", ANN)
    await told(acme, "Ann again", ANN)
    asked = len(embedder.calls)
    await acme.forget_record(record_id=record.record_id)
    await acme.forget(subject_key=ANN)
    assert len(embedder.calls) == asked
