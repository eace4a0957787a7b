from __future__ import annotations

from uuid import uuid4

import pytest

from memory import ConflictError, Counts, UnknownRecordError

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB, CY = "customer:ann", "customer:bob", "customer:cy"


async def told(tenant, text, *people):
    return (await tenant.remember(text=text, subject_keys=people)).record


async def test_one_record_goes_with_what_was_derived_and_the_rest_stays(acme):
    gone = await told(acme, "Ann met Bob", ANN, BOB)
    kept = await told(acme, "Cy called", CY)
    summary = (await acme.derive(kind="summary", text="s", sources=[gone, kept])).record
    receipt = await acme.forget_record(record_id=gone.record_id, reason="operator")
    assert (receipt.scope, receipt.reason) == ("record", "operator")
    assert receipt.counts == Counts(memories=1, derived=1, provenance_edges=2)
    assert (receipt.cascade_depth, receipt.bystanders) == (1, 1)
    assert await acme.get(record_id=gone.record_id) is None
    assert await acme.get(record_id=summary.record_id) is None
    assert await acme.get(record_id=kept.record_id) == kept


async def test_each_of_its_people_gets_a_tombstone_of_their_own(acme):
    gone = await told(acme, "Ann met Bob", ANN, BOB)
    kept = await told(acme, "Cy called", CY)
    await acme.derive(kind="summary", text="s", sources=[gone, kept], artefacts=[("index", "a1")])
    with pytest.raises(Exception, match="not confirmed by") as partial:
        await acme.forget_record(record_id=gone.record_id)
    receipt = partial.value.receipt
    by_hash = {stone.subject_hash: stone for stone in await acme.erasure_history()}
    hashes = {name: acme.subject_fingerprint(subject_key=name) for name in (ANN, BOB, CY)}
    assert receipt.subject_hashes == tuple(sorted(hashes.values()))
    assert by_hash.keys() == set(hashes.values())
    for name, memories in ((ANN, 1), (BOB, 1), (CY, 0)):
        stone = by_hash[hashes[name]]
        assert (stone.memories, stone.derived, stone.provenance_edges, stone.artefacts) == (
            memories,
            1,
            2,
            1,
        )
        assert (stone.scope, stone.erasure_id) == ("record", receipt.erasure_id)


async def test_a_derived_record_goes_alone(acme):
    source = await told(acme, "Ann called", ANN)
    summary = (await acme.derive(kind="summary", text="s", sources=source)).record
    receipt = await acme.forget_record(record_id=summary.record_id)
    assert receipt.counts == Counts(memories=0, derived=1, provenance_edges=1)
    assert await acme.records(subject_keys=ANN) == [source]


async def test_other_versions_stay(acme):
    old = await told(acme, "v1", ANN)
    new = (await acme.supersede(record_id=old.record_id, text="v2")).record
    await acme.forget_record(record_id=old.record_id)
    assert await acme.history(record_key=old.record_key) == [new]


async def test_an_unknown_record_leaves_no_evidence(memory, acme):
    foreign = await told(memory.for_tenant("acme-corp"), "x", ANN)
    gone = await told(acme, "x", ANN)
    await acme.forget_record(record_id=gone.record_id)
    for unknown in (uuid4(), foreign.record_id, gone.record_id):
        with pytest.raises(UnknownRecordError):
            await acme.forget_record(record_id=unknown)
    assert len(await acme.erasure_history()) == 1
    assert await memory.get("acme-corp", record_id=foreign.record_id) == foreign


async def test_a_dry_run_says_what_would_go_and_expect_holds_it_to_that(acme):
    gone = await told(acme, "Ann called", ANN)
    rehearsal = await acme.forget_record(record_id=gone.record_id, dry_run=True)
    assert (rehearsal.counts.memories, rehearsal.complete) == (1, False)
    await acme.derive(kind="summary", text="s", sources=gone)
    with pytest.raises(ConflictError):
        await acme.forget_record(record_id=gone.record_id, expect=rehearsal.closure)
    assert await acme.get(record_id=gone.record_id) == gone
    rehearsal = await acme.forget_record(record_id=gone.record_id, dry_run=True)
    receipt = await acme.forget_record(record_id=gone.record_id, expect=rehearsal.closure)
    assert receipt.counts.records == 2
