"""A whole tenant goes, batch by batch, and evidence is all that stays."""

from __future__ import annotations

import pytest

from memory import Counts, InvalidInputError, LegalHoldError, PartialErasureError

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB = "customer:ann", "customer:bob"


@pytest.fixture
def doomed(memory):
    """A tenant beside the bystander's two."""
    return memory.for_tenant("doomed")


async def told(tenant, text, *people, **more):
    return (await tenant.remember(text=text, subject_keys=people, **more)).record


async def made(tenant, text, *sources, **more):
    return (await tenant.derive(kind="summary", text=text, sources=sources, **more)).record


@pytest.mark.parametrize("batch", [1, 2, 1_000])
async def test_everything_goes_and_the_receipt_adds_up(doomed, batch):
    ann = [await told(doomed, f"note {n}", ANN) for n in range(3)]
    both = await told(doomed, "Ann met Bob", ANN, BOB, record_key="meeting")
    new = (await doomed.supersede(record_id=both.record_id, text="they met")).record
    summary = await made(doomed, "notes", ann[0], both)
    digest = await made(doomed, "in short", summary)
    receipt = await doomed.forget_tenant(confirm="doomed", batch=batch)
    assert receipt.counts == Counts(memories=5, derived=2, provenance_edges=3)
    assert (receipt.reason, receipt.scope) == ("operator", "tenant")
    assert (receipt.kinds, receipt.complete) == ({"episodic": 5, "summary": 2}, True)
    assert await doomed.records() == []
    assert await doomed.history(record_key="meeting") == []
    for record in (*ann, both, new, summary, digest):
        assert await doomed.get(record_id=record.record_id) is None
    counted = {}
    for stone in await doomed.erasure_history():
        assert (stone.scope, stone.erasure_id) == ("tenant", receipt.erasure_id)
        memories, derived = counted.get(stone.subject_hash, (0, 0))
        counted[stone.subject_hash] = (memories + stone.memories, derived + stone.derived)
    assert counted == {
        doomed.subject_fingerprint(subject_key=ANN): (5, 2),
        doomed.subject_fingerprint(subject_key=BOB): (2, 2),
    }
    again = await doomed.forget_tenant(confirm="doomed", reason="subject_request")
    assert (again.counts, again.anchor, again.complete) == (Counts(), None, True)


@pytest.mark.parametrize("confirm", ["", "doome", "acme", None, True])
async def test_it_must_be_confirmed_by_the_tenants_key(doomed, confirm):
    record = await told(doomed, "stays", ANN)
    with pytest.raises(InvalidInputError) as caught:
        await doomed.forget_tenant(confirm=confirm)
    assert caught.value.field == "confirm"
    assert await doomed.records() == [record]


@pytest.mark.parametrize("batch", [1, 1_000])
async def test_held_people_keep_their_records(doomed, memory_factory, batch):
    ann = await told(doomed, "Ann", ANN)
    bob = await told(doomed, "Bob", BOB)
    root = await told(doomed, "of Bob, in a digest about Ann", BOB)
    digest = await made(doomed, "digest", ann, root)
    summary = await made(doomed, "summary", root)
    await doomed.hold(subject_key=ANN)
    with pytest.raises(LegalHoldError) as caught:
        await doomed.forget_tenant(confirm="doomed", batch=batch)
    receipt = caught.value.receipt
    assert receipt.counts == Counts(memories=1, derived=1, provenance_edges=1)
    assert (receipt.held, receipt.complete, receipt.deferred) == (3, False, False)
    assert await doomed.records() == sorted(
        [ann, root, digest], key=lambda record: record.record_id, reverse=True
    )
    for record in (bob, summary):
        assert await doomed.get(record_id=record.record_id) is None
    # A hold that stays, and is not undone by the erasure around it.
    later = await told(doomed, "Ann again", ANN)
    with pytest.raises(LegalHoldError):
        await doomed.forget_record(record_id=later)
    operator = memory_factory("operator").for_tenant("doomed")
    await operator.release(subject_key=ANN)
    assert (await doomed.forget_tenant(confirm="doomed")).complete
    assert await doomed.records() == []


async def test_artefacts_become_purges(doomed, memory_factory, plugs):
    record = await told(doomed, "Ann", ANN)
    await made(doomed, "summary", record, artefacts=[("index", "a1"), ("cache", "c1")])
    await doomed.register_artefact(adapter="index", artefact_id="a2", sources=record)
    with pytest.raises(PartialErasureError) as partial:
        await doomed.forget_tenant(confirm="doomed")
    receipt = partial.value.receipt
    assert (receipt.counts.artefacts, receipt.outstanding) == (3, ("cache", "index"))
    indexes = [plugs.Index("index"), plugs.Index("cache")]
    assert (await memory_factory(indexes=indexes).purge_outstanding("doomed")).settled == 3
    assert [index.ids for index in indexes] == [["a1", "a2"], ["c1"]]


async def test_who_is_blocked_stays_blocked(doomed):
    await told(doomed, "Ann", ANN)
    await doomed.forget(subject_key=BOB, block_future=True)
    await doomed.forget_tenant(confirm="doomed")
    with pytest.raises(Exception, match="not to be remembered"):
        await told(doomed, "Bob", BOB)
    assert (await told(doomed, "Ann", ANN)).version == 1
