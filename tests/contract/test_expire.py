"""Retention: what is due goes with what was derived from it, and nothing else does."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from memory import (
    Counts,
    InvalidInputError,
    LegalHoldError,
    PartialErasureError,
    UnknownRecordError,
)

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB = "customer:ann", "customer:bob"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def acme(memory_factory):
    """A tenant on the day after NOON."""
    return memory_factory(clock=lambda: NOON + 24 * HOUR).for_tenant("acme")


async def told(tenant, text, *people, **more):
    return (await tenant.remember(text=text, subject_keys=people, **more)).record


async def made(tenant, text, *sources, **more):
    return (await tenant.derive(kind="summary", text=text, sources=sources, **more)).record


async def test_what_was_derived_from_an_expired_record_stays_visible_until_expire(acme):
    expired = await told(acme, "Ann is 42", ANN, expires_at=NOON)
    summary = await made(acme, "Somebody is 42", expired)
    assert await acme.get(record_id=expired.record_id) is None
    assert await acme.get(record_id=summary.record_id) == summary
    assert [hit.record for hit in (await acme.recall(text="42")).hits] == [summary]
    assert (await acme.expire()).counts == Counts(memories=1, derived=1, provenance_edges=1)
    assert await acme.get(record_id=summary.record_id) is None


async def left(tenant, *records):
    """Which of the records are there, whatever recall hides."""
    found = []
    for record in records:
        with contextlib.suppress(UnknownRecordError):
            await tenant.forget_record(record_id=record, dry_run=True)
            found.append(record)
    return found


async def test_what_has_expired_goes_with_what_was_derived_from_it(acme):
    due = await told(acme, "gone by noon", ANN, expires_at=NOON)
    to_the_instant = await told(acme, "gone now", ANN, BOB, expires_at=NOON + 24 * HOUR)
    later = await told(acme, "stays a day", ANN, expires_at=NOON + 48 * HOUR)
    never = await told(acme, "stays", ANN)
    summary = await made(acme, "both", due, never)
    digest = await made(acme, "in short", summary)
    receipt = await acme.expire()
    assert receipt.counts == Counts(memories=2, derived=2, provenance_edges=3)
    assert (receipt.reason, receipt.scope) == ("retention_policy", "retention")
    assert (receipt.kinds, receipt.cascade_depth) == ({"episodic": 2, "summary": 2}, 2)
    assert (receipt.complete, receipt.held, receipt.deferred) == (True, 0, False)
    assert receipt.completed_at >= receipt.erased_at
    assert (receipt.subject_hashes, receipt.closure, receipt.bystanders) == ((), "", 0)
    assert await left(acme, due, to_the_instant, later, never, summary, digest) == [later, never]
    stones = await acme.erasure_history()
    assert {stone.erasure_id for stone in stones} == {receipt.erasure_id}
    assert {stone.reason for stone in stones} == {"retention_policy"}
    assert {stone.scope for stone in stones} == {"retention"}
    by_person = {stone.subject_hash: (stone.memories, stone.derived) for stone in stones}
    assert by_person == {
        acme.subject_fingerprint(subject_key=ANN): (2, 2),
        acme.subject_fingerprint(subject_key=BOB): (1, 0),
    }
    assert receipt.anchor.seq == stones[0].seq


async def test_nothing_due_is_nothing_erased(acme):
    record = await told(acme, "stays", ANN, expires_at=NOON + 48 * HOUR)
    receipt = await acme.expire()
    assert (receipt.counts, receipt.kinds, receipt.complete) == (Counts(), {}, True)
    assert receipt.anchor is None
    assert await acme.erasure_history() == []
    assert await left(acme, record) == [record]


async def test_the_moment_may_lie_back_and_not_ahead(acme):
    first = await told(acme, "first", ANN, expires_at=NOON)
    second = await told(acme, "second", ANN, expires_at=NOON + HOUR)
    receipt = await acme.expire(now=NOON)
    assert receipt.counts.memories == 1
    assert await left(acme, first, second) == [second]
    with pytest.raises(InvalidInputError) as caught:
        await acme.expire(now=NOON + 25 * HOUR)
    assert caught.value.field == "now"
    assert await left(acme, second) == [second]


async def test_an_age_limit_takes_the_kinds_it_names(acme, bystander):
    day, older = NOON, NOON - HOUR
    chat = await told(acme, "old chat", ANN, kind="chat", occurred_at=older)
    young = await told(acme, "young chat", ANN, kind="chat", occurred_at=day)
    profile = await told(acme, "old profile", ANN, kind="profile", occurred_at=older)
    due = await told(acme, "expired", ANN, expires_at=NOON)
    receipt = await acme.expire(kinds="chat", older_than=24 * HOUR)
    assert receipt.kinds == {"chat": 1, "episodic": 1}
    assert await left(acme, chat, young, profile, due) == [young, profile]
    receipt = await acme.expire(kinds=["note", "profile"], older_than=24 * HOUR)
    assert receipt.kinds == {"profile": 1}
    assert await left(acme, chat, young, profile) == [young]


async def test_an_age_limit_without_kinds_takes_any(memory_factory):
    acme = memory_factory(clock=lambda: NOON).for_tenant("elsewhere")
    old = await told(acme, "old", ANN, kind="chat", occurred_at=NOON - 3 * HOUR)
    new = await told(acme, "new", ANN, occurred_at=NOON - HOUR)
    assert (await acme.expire(older_than=2 * HOUR)).kinds == {"chat": 1}
    assert await left(acme, old, new) == [new]


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("kinds", {"kinds": "chat"}),
        ("kinds.0", {"kinds": ["Ann's"], "older_than": HOUR}),
        ("older_than", {"older_than": timedelta()}),
        ("older_than", {"older_than": -HOUR}),
        ("older_than", {"older_than": 3_600}),
        ("older_than", {"older_than": timedelta.max}),
        ("now", {"now": datetime(2025, 1, 1)}),  # noqa: DTZ001
        ("batch", {"batch": 0}),
        ("batch", {"batch": 1_001}),
    ],
)
async def test_a_wrong_argument_erases_nothing(acme, field, wrong):
    due = await told(acme, "expired", ANN, expires_at=NOON)
    with pytest.raises(InvalidInputError) as caught:
        await acme.expire(**wrong)
    assert caught.value.field == field
    assert await left(acme, due) == [due]


@pytest.mark.parametrize("batch", [1, 2, 3, 1_000])
async def test_the_receipt_is_the_sum_of_the_batches(acme, batch):
    due = []
    for n in range(7):
        people = [ANN, BOB][: 1 + n % 2]
        expires = NOON - (n // 2) * HOUR
        due.append(await told(acme, f"note {n}", *people, expires_at=expires))
    shared = await made(acme, "of the first and the last", due[0], due[-1])
    single = [await made(acme, f"summary {n}", due[n]) for n in (2, 3)]
    for n in (0, 6):
        await acme.register_artefact(adapter="index", artefact_id="shared", sources=due[n])
    with pytest.raises(PartialErasureError) as partial:
        await acme.expire(batch=batch)
    receipt = partial.value.receipt
    assert receipt.counts == Counts(memories=7, derived=3, provenance_edges=4, artefacts=1)
    assert receipt.kinds == {"episodic": 7, "summary": 3}
    assert (receipt.adapters, receipt.outstanding) == (("index",), ("index",))
    assert await left(acme, *due, shared, *single) == []
    counted = {}
    for stone in await acme.erasure_history():
        memories, derived = counted.get(stone.subject_hash, (0, 0))
        counted[stone.subject_hash] = (memories + stone.memories, derived + stone.derived)
    assert counted == {
        acme.subject_fingerprint(subject_key=ANN): (7, 3),
        acme.subject_fingerprint(subject_key=BOB): (3, 1),
    }


@pytest.mark.parametrize("batch", [1, 2, 1_000])
async def test_what_a_hold_keeps_is_passed_by_and_counted(acme, memory_factory, batch):
    held = [await told(acme, f"held {n}", ANN, expires_at=NOON) for n in range(3)]
    root = await told(acme, "root of a held digest", BOB, expires_at=NOON - HOUR)
    due = [await told(acme, f"due {n}", BOB, expires_at=NOON + n * HOUR) for n in range(3)]
    digest = await made(acme, "digest", root, held[0])
    summary = await made(acme, "summary", root)
    await acme.hold(subject_key=ANN)
    receipt = await acme.expire(batch=batch)
    assert receipt.counts == Counts(memories=3, derived=1, provenance_edges=1)
    # Due and kept; the digest is kept too, and was not due.
    assert (receipt.held, receipt.complete, receipt.deferred) == (4, False, False)
    assert receipt.completed_at is None
    assert await left(acme, *held, root, *due, digest, summary) == [*held, root, digest]
    assert [one.action for one in await acme.decisions()] == ["hold"]
    operator = memory_factory("operator", clock=lambda: NOON + 24 * HOUR).for_tenant("acme")
    assert (await operator.release(subject_key=ANN)).receipts == ()
    again = await acme.expire(batch=batch)
    assert again.counts == Counts(memories=4, derived=1, provenance_edges=2)
    assert (again.held, again.complete) == (0, True)


async def test_an_index_is_asked_and_an_event_says_so(memory_factory, plugs):
    index, sink = plugs.Index("index"), plugs.Sink()
    acme = memory_factory(indexes=[index], events=sink, clock=lambda: NOON).for_tenant("acme")
    due = await told(acme, "due", ANN, expires_at=NOON)
    await made(acme, "summary", due, artefacts=[("index", "a1")])
    receipt = await acme.expire()
    assert (receipt.complete, receipt.adapters, receipt.outstanding) == (True, ("index",), ())
    assert index.ids == ["a1"]
    (event,) = sink.events
    assert (event.memories, event.derived, event.scope) == (1, 1, "retention")


@pytest.mark.parametrize("batch", [1, 1_000])
async def test_what_a_hold_keeps_is_counted_once_where_two_rules_name_it(acme, batch):
    long_ago = NOON - 48 * HOUR
    both = await told(acme, "old and expired", ANN, occurred_at=long_ago, expires_at=NOON)
    old = await told(acme, "old", ANN, occurred_at=long_ago)
    expired = await told(acme, "expired", ANN, occurred_at=NOON + 20 * HOUR, expires_at=NOON)
    due = await told(acme, "of Bob", BOB, occurred_at=long_ago, expires_at=NOON)
    await acme.hold(subject_key=ANN)
    receipt = await acme.expire(older_than=24 * HOUR, batch=batch)
    assert (receipt.held, receipt.counts.records) == (3, 1)
    assert await left(acme, both, old, expired, due) == [both, old, expired]


async def test_a_version_that_expired_goes_and_its_successor_stays(acme):
    old = await told(acme, "v1", ANN, expires_at=NOON, record_key="plan")
    new = await told(acme, "v2", ANN, record_key="plan")
    assert (await acme.expire()).counts.memories == 1
    assert await left(acme, old, new) == [new]
    assert await acme.history(record_key="plan") == [new]


async def test_expiring_does_not_defer_to_a_later_release(acme):
    await told(acme, "held", ANN, expires_at=NOON)
    await acme.hold(subject_key=ANN)
    assert (await acme.expire()).held == 1
    with pytest.raises(LegalHoldError):
        await acme.forget(subject_key=ANN)
