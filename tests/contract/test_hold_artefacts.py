"""A hold reaches what was made outside the database, whoever else it was made from."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory import PartialErasureError

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB, CAROL = "customer:ann", "customer:bob", "customer:carol"


@pytest.fixture
def index(plugs):
    return plugs.Index("index")


@pytest.fixture
def acme(memory_factory, index):
    return memory_factory("operator", indexes=[index]).for_tenant("acme")


async def told(tenant, *people, artefact=None, **more):
    record = (await tenant.remember(text="called", subject_keys=people, **more)).record
    if artefact is not None:
        await register(tenant, artefact, record)
    return record


async def register(tenant, artefact, *sources):
    await tenant.register_artefact(adapter="index", artefact_id=artefact, sources=sources)


async def owing(erasure):
    with pytest.raises(PartialErasureError) as partial:
        await erasure
    assert partial.value.receipt.outstanding == ("index",)
    return partial.value.receipt


PAST = datetime(2020, 1, 1, tzinfo=UTC)

BYSTANDERS = {
    "forget": lambda acme, record: acme.forget(subject_key=BOB),
    "forget_record": lambda acme, record: acme.forget_record(record_id=record),
    "expire": lambda acme, record: acme.expire(),
}


@pytest.mark.parametrize("path", BYSTANDERS)
@pytest.mark.parametrize("later", [False, True])
async def test_what_was_made_of_a_held_person_too_waits_for_the_release(acme, index, path, later):
    ann = await told(acme, ANN, artefact="of both")
    bob = await told(acme, BOB, artefact="of bob", expires_at=PAST)
    if not later:
        await acme.hold(subject_key=ANN)
    await register(acme, "of both", bob)
    if later:
        await acme.hold(subject_key=ANN)
    receipt = await owing(BYSTANDERS[path](acme, bob))
    assert (receipt.counts.memories, receipt.counts.artefacts, receipt.held) == (1, 2, 0)
    assert index.ids == ["of bob"]
    # Whoever asks again is told that it is owed, and another person's erasure is whole.
    assert (await acme.purge_outstanding()).outstanding == ("index",)
    await owing(acme.forget(subject_key=BOB))
    await told(acme, CAROL, artefact="of carol")
    assert (await acme.forget(subject_key=CAROL)).complete
    assert index.ids == ["of bob", "of carol"]
    assert await acme.get(record_id=ann.record_id) == ann

    await acme.release(subject_key=ANN)
    assert (await acme.purge_outstanding()).settled == 1
    assert index.ids == ["of bob", "of both", "of carol"]
    assert (await acme.forget(subject_key=BOB)).complete
    receipt = await acme.forget(subject_key=ANN)
    assert (receipt.counts.memories, receipt.counts.artefacts) == (1, 0)


async def test_a_debt_about_somebody_who_is_held_by_now_waits_too(acme, index, memory_factory):
    """Nobody's index was there when Bob was erased; what Ann's records went into is still there."""
    both = await told(acme, ANN, BOB, artefact="of both")
    without = memory_factory().for_tenant("acme")
    await owing(without.forget(subject_key=BOB))
    await told(acme, ANN)
    await acme.hold(subject_key=ANN)
    assert (await acme.purge_outstanding()).outstanding == ("index",)
    assert index.ids == []
    await acme.release(subject_key=ANN)
    assert (await acme.purge_outstanding()).settled == 1
    assert index.ids == ["of both"]
    assert await acme.get(record_id=both.record_id) is None


async def test_whoever_an_artefact_was_made_from_is_told_that_its_purge_is_owed(
    acme, index, memory_factory
):
    ann, bob = await told(acme, ANN), await told(acme, BOB)
    await register(acme, "of both", ann, bob)
    without = memory_factory().for_tenant("acme")
    await owing(without.forget(subject_key=BOB))
    await owing(without.forget(subject_key=ANN))
    assert (await acme.forget(subject_key=ANN)).complete
    assert index.ids == ["of both"]
