"""An artefact of two tenants goes with the last claim, and neither learns of the other's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from memory import PartialErasureError

ANN = "customer:ann"


async def told(memory, tenant, person, *artefacts):
    record = (await memory.remember(tenant, text="called", subject_keys=person)).record
    for artefact_id in artefacts:
        await memory.register_artefact(
            tenant, adapter="index", artefact_id=artefact_id, sources=record
        )
    return record


async def test_a_shared_artefact_is_purged_with_the_last_claim(memory_factory, plugs):
    index = plugs.Index("index")
    memory = memory_factory(indexes=[index])
    await told(memory, "acme", ANN, "shared", "of acme")
    await told(memory, "globex", ANN, "shared")
    receipt = await memory.forget("acme", subject_key=ANN)
    assert (receipt.complete, receipt.counts.artefacts) == (True, 2)
    assert index.ids == ["of acme"]
    assert (await memory.purge_outstanding("acme")).adapters == ()
    assert (await memory.forget("globex", subject_key=ANN)).complete
    assert index.ids == ["of acme", "shared"]


async def test_an_artefact_of_the_same_id_in_another_index_is_another(memory_factory, plugs):
    index, other = plugs.Index("index"), plugs.Index("other")
    memory = memory_factory(indexes=[index, other])
    await told(memory, "acme", ANN, "same")
    record = await told(memory, "globex", ANN)
    await memory.register_artefact("globex", adapter="other", artefact_id="same", sources=record)
    await memory.forget("acme", subject_key=ANN)
    assert (index.ids, other.ids) == (["same"], [])


def shown(receipt):
    """A receipt but for what differs by chance."""
    names = ("subject_hashes", "closure", "anchor", "erased_at", "completed_at")
    rest = {name: None for name in names} | {"erasure_id": "", "tenant_key": ""}
    return replace(receipt, **rest)


async def test_what_a_tenant_sees_does_not_depend_on_the_other(memory_factory, plugs, logs):
    """The same history beside a neighbour that claims the artefact and beside one that does not."""
    seen = []
    for name, claimed in (("alone", "another"), ("shared", "guessed")):
        logs.clear()
        index, sink = plugs.StubbornIndex("index"), plugs.Sink()
        memory = memory_factory(indexes=[index], events=sink)
        await told(memory, f"{name}-neighbour", ANN, claimed)
        await told(memory, name, ANN, "guessed")
        receipts = [await memory.forget(name, subject_key=ANN) for _ in range(2)]
        done = await memory.purge_outstanding(name)
        assert index.ids == ([] if claimed == "guessed" else ["guessed"])
        stones = [(stone.memories, stone.artefacts) for stone in await memory.erasure_history(name)]
        said = [record.msg for record in logs.records if record.name.startswith("memory")]
        events = [(event.complete, event.artefacts, event.outstanding) for event in sink.events]
        seen.append(([shown(each) for each in receipts], done, stones, said, events))
    assert seen[0] == seen[1]


async def test_an_index_that_is_down_settles_no_retained_artefact(memory_factory, plugs):
    """Else the outage would tell: a claim of another tenant's, and the erasure is complete."""

    class Down(plugs.StubbornIndex):
        async def present(self, artefact_ids):
            if self.broken:
                raise ConnectionError
            return []

    index = Down("index", broken=True)
    memory = memory_factory(indexes=[index])
    for name, claimed in (("alone", "another"), ("shared", "guessed")):
        await told(memory, f"{name}-neighbour", ANN, claimed)
        await told(memory, name, ANN, "guessed")
        with pytest.raises(PartialErasureError):
            await memory.forget(name, subject_key=ANN)
    index.broken = False
    for name in ("alone", "shared"):
        assert (await memory.purge_outstanding(name)).settled == 1


async def test_an_index_that_has_a_retained_artefact_still_has_settled_it(memory_factory, plugs):
    index = plugs.StubbornIndex("index", broken=True)
    memory = memory_factory(indexes=[index])
    for tenant in ("acme", "globex"):
        await told(memory, tenant, ANN, "shared")
    assert (await memory.forget("acme", subject_key=ANN)).complete
    with pytest.raises(PartialErasureError):
        await memory.forget("globex", subject_key=ANN)
    index.broken = False
    assert (await memory.purge_outstanding("globex")).settled == 1
    assert "shared" in index.ids


@pytest.mark.parametrize("order", [("acme", "globex"), ("globex", "acme"), None])
async def test_when_both_erase_at_once_the_artefact_is_purged(memory_factory, plugs, order):
    index, idle = plugs.Index("index"), memory_factory()
    memory = memory_factory(indexes=[index])
    for tenant in ("acme", "globex"):
        await told(memory, tenant, ANN, "shared")
    if order is None:
        await asyncio.gather(
            *(memory.forget(tenant, subject_key=ANN) for tenant in ("acme", "globex"))
        )
    else:
        for tenant in ("acme", "globex"):
            with pytest.raises(PartialErasureError):
                await idle.forget(tenant, subject_key=ANN)
        for tenant in order:
            assert (await memory.purge_outstanding(tenant)).settled == 1
    assert set(index.ids) == {"shared"}
    for tenant in ("acme", "globex"):
        assert (await memory.purge_outstanding(tenant)).adapters == ()


async def test_a_claim_that_was_given_up_retains_nothing(memory_factory, plugs):
    index = plugs.Index("index")
    memory = memory_factory(indexes=[index])
    await told(memory, "globex", ANN, "shared")
    assert (await memory.forget("globex", subject_key=ANN)).complete
    await told(memory, "acme", ANN, "shared")
    assert (await memory.forget("acme", subject_key=ANN)).complete
    assert index.asked == [["shared"], ["shared"]]
