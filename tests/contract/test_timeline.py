"""A person's timeline: what was decided and done about them, in order, and nobody else's."""

from __future__ import annotations

import pytest

from memory import InvalidInputError, LegalHoldError, PartialErasureError, certificate
from plugged import Index, told

ANN, BOB = "customer:ann", "customer:bob"


def events(timeline):
    return [moment.event for moment in timeline.moments]


async def test_what_was_decided_and_done_stands_in_order(memory_factory, operator, bystander):
    index = Index("vectors", fault=OSError("of Ann"))
    acme = memory_factory("operator", indexes=[index]).for_tenant("acme")
    await told(acme, ANN, vectors="of Ann")
    await told(acme, ANN, vectors="of Ann too")
    made = await told(acme, BOB)
    await acme.hold(subject_key=ANN)
    with pytest.raises(LegalHoldError) as held:
        await acme.forget(subject_key=ANN)
    erasure_id = held.value.receipt.erasure_id
    await acme.release(subject_key=ANN)

    seen = await acme.timeline(subject_key=ANN)
    # The release's own steps are of one transaction; what is owed stands last.
    assert events(seen)[:2] == ["hold", "request"]
    assert sorted(events(seen)[2:-1]) == ["complete", "erased", "release"]
    owed = seen.moments[-1]
    assert (owed.event, owed.adapter, owed.artefacts, owed.attempts) == ("owed", "vectors", 2, 1)
    of_it = [m for m in seen.moments if m.event not in ("hold", "release")]
    assert {moment.erasure_id for moment in of_it} == {erasure_id}
    [erased] = [moment for moment in seen.moments if moment.event == "erased"]
    assert (erased.memories, erased.derived, erased.artefacts) == (2, 0, 2)
    assert (erased.reason, erased.scope) == ("subject_request", "subject")

    index.fault = None
    assert (await acme.purge_outstanding()).settled == 2
    await acme.forget(subject_key=ANN, block_future=True)
    await acme.readmit(subject_key=ANN)
    after = await acme.timeline(subject_key=ANN)
    purged = after.moments[5]
    assert (purged.event, purged.adapter, purged.artefacts) == ("purged", "vectors", 2)
    assert purged.erasure_id == erasure_id
    assert sorted(events(after)[6:8]) == ["block", "erased"]
    assert events(after)[8:] == ["readmit"]
    assert [m.at for m in after.moments] == sorted(m.at for m in after.moments)

    assert await acme.get(record_id=made.record_id) == made
    assert events(await acme.timeline(subject_key=BOB)) == []


async def test_what_an_index_purged_at_different_times_stands_at_the_last(memory_factory):
    class Halting(Index):
        """Fails at the second call."""

        async def purge(self, artefact_ids):
            if len(self.asked) == 1:
                self.asked.append([])
                raise OSError
            return await super().purge(artefact_ids)

    acme = memory_factory(indexes=[Halting("vectors")]).for_tenant("acme")
    record = await told(acme, ANN)
    artefacts = [("vectors", f"a{n}") for n in range(1_001)]
    await acme.derive(kind="summary", text="x", sources=record, artefacts=artefacts)
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    first = (await acme.timeline(subject_key=ANN)).moments[1:]
    assert [(m.event, m.artefacts, m.attempts) for m in first] == [
        ("purged", 1_000, 0),
        ("owed", 1, 1),
    ]
    assert (await acme.purge_outstanding()).settled == 1
    [purged] = (await acme.timeline(subject_key=ANN)).moments[1:]
    assert (purged.event, purged.artefacts) == ("purged", 1_001)
    assert purged.at > first[0].at


async def test_what_an_index_owes_was_tried_as_often_as_the_most_of_it(memory_factory):
    acme = memory_factory(indexes=[Index("vectors", fault=OSError())]).for_tenant("acme")
    record = await told(acme, ANN)
    artefacts = [("vectors", f"a{n}") for n in range(1_001)]
    await acme.derive(kind="summary", text="x", sources=record, artefacts=artefacts)
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    owed = (await acme.timeline(subject_key=ANN)).moments[-1]
    assert (owed.event, owed.artefacts, owed.attempts) == ("owed", 1_001, 1)


async def test_no_rendering_of_it_shows_a_key_or_what_was_said(memory_factory):
    index = Index("vectors", fault=OSError("of Ann"))
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await acme.remember(text="planted", subject_keys=[ANN, BOB], metadata={"planted": "planted"})
    await told(acme, ANN, vectors="planted")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    seen = await acme.timeline(subject_key=ANN)
    assert events(seen) == ["erased", "owed"]
    shown = [seen.text(), seen.svg(), seen._repr_html_(), repr(seen), str(seen.to_dict())]
    for rendering in shown:
        for secret in ("planted", ANN, BOB, "acme"):
            assert secret not in rendering
    assert "2 memories, 0 derived" in seen.text()
    assert "Purge still owed by vectors" in seen.svg()
    # What Ann asked for is no evidence about Bob, of whom a memory went too.
    assert events(await acme.timeline(subject_key=BOB)) == []


async def test_a_long_one_keeps_its_newest_moments_and_says_so(acme):
    for _ in range(3):
        await acme.hold(subject_key=ANN)
    await acme.hold(subject_key=BOB)
    whole = await acme.timeline(subject_key=ANN, limit=3)
    assert (len(whole.moments), whole.cut) == (3, False)
    short = await acme.timeline(subject_key=ANN, limit=2)
    assert (short.moments, short.cut) == (whole.moments[1:], True)
    assert "what came before is left out" in short.svg()


async def test_nobody_has_an_empty_one_and_tenants_have_theirs_apart(memory):
    await memory.hold("acme", subject_key=ANN)
    assert events(await memory.timeline("acme", subject_key=ANN)) == ["hold"]
    other = await memory.timeline("globex", subject_key=ANN)
    assert (other.moments, other.cut) == ((), False)
    assert "nothing was decided and nothing was erased" in other.text()
    with pytest.raises(InvalidInputError, match="subject_key"):
        await memory.timeline("acme", subject_key="")
    with pytest.raises(InvalidInputError, match="limit"):
        await memory.timeline("acme", subject_key=ANN, limit=1_001)


async def test_what_another_erasure_left_owed_about_a_person_is_in_theirs(memory_factory, plugs):
    index = plugs.Index("vectors", broken=True)
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    joint = await acme.remember(text="of both", subject_keys=[ANN, BOB])
    await acme.register_artefact(adapter="vectors", artefact_id="both", sources=joint)
    alone = await acme.remember(text="of Ann", subject_keys=ANN)
    await acme.register_artefact(adapter="vectors", artefact_id="alone", sources=alone)
    beside = await acme.remember(text="of Cy", subject_keys="customer:cy")
    with pytest.raises(PartialErasureError) as stopped:
        await acme.forget(subject_key=ANN)
    with pytest.raises(PartialErasureError) as again:
        await acme.forget(subject_key=BOB)
    seen = await acme.timeline(subject_key=BOB)
    assert events(seen) == ["erased", "owed"]
    # Of what Ann's erasure left, Bob's is the one copy of the record that was also about him.
    owed = seen.moments[-1]
    assert (owed.erasure_id, owed.artefacts) == (stopped.value.receipt.erasure_id, 1)
    assert (await acme.timeline(subject_key=ANN)).moments[-1].artefacts == 2
    assert events(await acme.timeline(subject_key="customer:cy")) == []
    stones = await acme.erasure_history(subject_key=BOB)
    page = certificate(stones, receipt=again.value.receipt, indexes=[])
    assert "Certificate of an incomplete erasure" in page
    index.broken = False
    await acme.purge_outstanding()
    assert events(await acme.timeline(subject_key=BOB)) == ["erased"]
    assert await acme.get(record_id=beside.record.record_id) == beside.record


async def test_an_index_of_any_name_forges_no_line(memory_factory):
    name = "x\n2026-01-01 00:00:00  Erased\x1b[31m" + "y" * 90
    acme = memory_factory().for_tenant("acme")
    made = await acme.remember(text="of Ann", subject_keys=ANN)
    await acme.register_artefact(adapter=name, artefact_id="one", sources=made)
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    seen = await acme.timeline(subject_key=ANN)
    assert seen.moments[-1].adapter == name
    lines = seen.text().split("\n")
    assert len(lines) == 1 + len(seen.moments) == 3
    assert all(line.isprintable() for line in lines)
    assert "Purge still owed by x\\u000a2026" in lines[-1]
    assert "\x1b" not in seen.svg() + seen.moments[-1].heading
