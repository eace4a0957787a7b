"""Who is blocked is not remembered again, whoever writes and however late, until readmitted."""

from __future__ import annotations

from uuid import uuid4

import pytest

from memory import (
    Counts,
    InvalidInputError,
    LegalHoldError,
    SubjectBlockedError,
    UnknownSourceError,
)

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB = "customer:ann", "customer:bob"


async def told(tenant, text, *people, **more):
    return (await tenant.remember(text=text, subject_keys=people, **more)).record


async def about(tenant, person):
    return await tenant.records(subject_keys=person, limit=1_000)


async def actions(tenant):
    return [decision.action for decision in reversed(await tenant.decisions())]


async def test_every_write_about_a_blocked_person_is_refused_and_stores_nothing(acme):
    own = uuid4()
    gone = await told(acme, "Ann likes tea", ANN, record_id=own)
    bob = await told(acme, "Bob likes milk", BOB, record_key="bob")
    receipt = await acme.forget(subject_key=ANN, block_future=True)
    assert (receipt.counts.memories, receipt.complete) == (1, True)
    one = {"text": "Ann likes tea", "subject_keys": ANN}
    writes = {
        "remember": acme.remember(**one),
        "beside another": acme.remember(text="Ann met Bob", subject_keys=[BOB, ANN]),
        "a new version": acme.remember(**one, record_key="bob"),
        "a retry": acme.remember(**one, record_id=own, occurred_at=gone.occurred_at),
        "in a batch": acme.remember_many(
            items=[{"text": "Bob", "subject_keys": BOB}, one, {"text": "x", "subject_keys": BOB}]
        ),
        "supersede": acme.supersede(record_id=bob, text="Ann, too", subject_keys=[BOB, ANN]),
        "relate": acme.relate(record_id=bob.record_id, subject_keys=ANN),
    }
    for name, write in writes.items():
        with pytest.raises(SubjectBlockedError) as caught:
            await write
        assert "ann" not in str(caught.value), name
    with pytest.raises(UnknownSourceError):
        await acme.derive(kind="summary", text="tea", sources=own)
    assert await about(acme, ANN) == []
    assert await about(acme, BOB) == [bob]
    assert await acme.history(record_key="bob") == [bob]
    assert (await told(acme, "Bob likes tea", BOB)).subject_keys == (BOB,)


async def test_what_a_hold_kept_of_a_blocked_person_is_not_derived_from(acme, operator):
    ann, bob = await told(acme, "Ann likes tea", ANN), await told(acme, "Bob", BOB)
    summary = (await acme.derive(kind="summary", text="tea", sources=ann)).record
    await acme.hold(subject_key=ANN)
    with pytest.raises(LegalHoldError) as caught:
        await acme.forget(subject_key=ANN, block_future=True)
    assert caught.value.receipt.held == 2
    for sources in (ann, summary, [bob, ann]):
        with pytest.raises(SubjectBlockedError):
            await acme.derive(kind="summary", text="tea again", sources=sources)
    with pytest.raises(SubjectBlockedError):
        await acme.supersede(record_id=ann.record_id, text="Ann likes coffee")
    assert len(await about(acme, ANN)) == 2
    assert [record.version for record in await acme.history(record_key=ann.record_key)] == [1]
    await operator.release(subject_key=ANN)
    assert await about(acme, ANN) == []
    with pytest.raises(SubjectBlockedError):
        await told(acme, "Ann", ANN)
    assert await actions(acme) == ["hold", "block", "request", "release", "complete"]


async def test_a_person_of_whom_nothing_was_stored_can_be_blocked(acme):
    receipt = await acme.forget(subject_key=ANN, block_future=True)
    assert (receipt.counts, receipt.complete) == (Counts(), True)
    with pytest.raises(SubjectBlockedError):
        await told(acme, "Ann", ANN)
    assert await about(acme, ANN) == []
    (decision,) = await acme.decisions()
    assert (decision.action, decision.erasure_id) == ("block", receipt.erasure_id)
    assert decision.subject_hash == receipt.subject_hashes[0]


async def test_readmission_lifts_the_block_and_is_recorded(acme, operator):
    for _ in range(2):
        await acme.forget(subject_key=ANN, block_future=True)
    decision = await operator.readmit(subject_key=ANN)
    assert decision.action == "readmit"
    assert decision.subject_hash == acme.subject_fingerprint(subject_key=ANN)
    record = await told(acme, "Ann is back", ANN)
    assert await about(acme, ANN) == [record]
    assert await actions(acme) == ["block", "block", "readmit"]


async def test_a_plain_erasure_neither_blocks_nor_readmits(acme):
    await told(acme, "Ann", ANN)
    await acme.forget(subject_key=ANN)
    await told(acme, "Ann again", ANN)
    await acme.forget(subject_key=ANN, block_future=True)
    await acme.forget(subject_key=ANN)
    with pytest.raises(SubjectBlockedError):
        await told(acme, "Ann", ANN)


async def test_a_readmission_before_the_release_outlasts_it(acme, operator):
    await told(acme, "Ann", ANN)
    await acme.hold(subject_key=ANN)
    with pytest.raises(LegalHoldError):
        await acme.forget(subject_key=ANN, block_future=True)
    await operator.readmit(subject_key=ANN)
    (completed,) = (await operator.release(subject_key=ANN)).receipts
    assert completed.counts.memories == 1
    record = await told(acme, "Ann is back", ANN)
    assert await about(acme, ANN) == [record]


async def test_a_dry_run_blocks_nobody(acme):
    rehearsal = await acme.forget(subject_key=ANN, block_future=True, dry_run=True)
    assert rehearsal.dry_run
    await told(acme, "Ann", ANN)
    assert await acme.decisions() == []


async def test_a_refused_expectation_blocks_nobody(acme):
    approved = (await acme.forget(subject_key=ANN, dry_run=True)).closure
    record = await told(acme, "Ann", ANN)
    with pytest.raises(Exception, match="expect"):
        await acme.forget(subject_key=ANN, expect=approved, block_future=True)
    assert await about(acme, ANN) == [record]
    await told(acme, "Ann again", ANN)
    assert await acme.decisions() == []


@pytest.mark.parametrize("wrong", [{"kinds": "profile"}, {"block_future": None}])
async def test_a_block_is_of_a_whole_person(acme, wrong):
    record = await told(acme, "Ann", ANN, kind="profile")
    with pytest.raises(InvalidInputError) as caught:
        await acme.forget(subject_key=ANN, **{"block_future": True, **wrong})
    assert caught.value.field == "block_future"
    assert await about(acme, ANN) == [record]
    assert await acme.decisions() == []


async def test_a_block_is_of_one_tenant(memory):
    await memory.forget("acme", subject_key=ANN, block_future=True)
    assert (await memory.remember("other", text="Ann", subject_keys=ANN)).record.version == 1
    await memory.forget("other", subject_key=ANN)
