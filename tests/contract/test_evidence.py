"""Tombstones, their chain, receipts' anchors and events."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from memory import InstallError, fingerprint

ANN, BOB = "customer:ann", "customer:bob"


async def told(tenant, text, *people):
    return (await tenant.remember(text=text, subject_keys=people)).record


async def test_tombstones_form_a_chain_that_anybody_can_recompute(acme):
    for n in range(3):
        await told(acme, f"note {n}", ANN, BOB)
        await acme.forget_record(record_id=(await acme.records())[0].record_id)
    await acme.forget(subject_key=ANN)
    chain = (await acme.erasure_history())[::-1]
    assert [stone.seq for stone in chain] == list(range(1, 8))
    previous = ""
    for stone in chain:
        assert stone.previous == previous
        assert stone.digest == fingerprint.tombstone_digest(stone)
        assert stone.format == fingerprint.TOMBSTONE_FORMAT == 1
        previous = stone.digest
    forged = replace(chain[1], memories=chain[1].memories + 1)
    assert fingerprint.tombstone_digest(forged) != forged.digest


async def test_the_receipts_anchor_is_the_newest_tombstone(acme):
    record = await told(acme, "x", ANN, BOB)
    receipts = [
        await acme.forget_record(record_id=record.record_id),
        await acme.forget(subject_key=ANN),
    ]
    newest = await acme.erasure_history()
    assert [(r.anchor.seq, r.anchor.digest) for r in receipts] == [
        (newest[1].seq, newest[1].digest),
        (newest[0].seq, newest[0].digest),
    ]


async def test_a_tombstone_counts_what_the_receipt_counts_and_names_nobody(acme):
    ann = await told(acme, "Ann called", ANN)
    await acme.derive(kind="summary", text="s", sources=[ann, await told(acme, "Bob", BOB)])
    receipt = await acme.forget(subject_key=ANN, reason="retention_policy")
    (stone,) = await acme.erasure_history()
    assert (stone.memories, stone.derived, stone.provenance_edges, stone.artefacts) == (
        receipt.counts.memories,
        receipt.counts.derived,
        receipt.counts.provenance_edges,
        receipt.counts.artefacts,
    )
    assert stone.subject_hash == acme.subject_fingerprint(subject_key=ANN)
    assert (stone.reason, stone.scope) == ("retention_policy", "subject")
    assert stone.erasure_id == receipt.erasure_id
    assert ANN not in repr(stone) + repr(receipt)


async def test_history_is_newest_first_and_limited(acme):
    for n in range(4):
        await acme.forget(subject_key=f"p{n}")
    assert [stone.seq for stone in await acme.erasure_history(limit=3)] == [4, 3, 2]


async def test_history_is_paged_back_to_the_first_without_a_gap_or_a_repetition(acme):
    for n in range(7):
        await acme.forget(subject_key=f"p{n}")
    pages, before = [], None
    while page := await acme.erasure_history(before=before, limit=3):
        pages.append([stone.seq for stone in page])
        before = page[-1].seq
    assert pages == [[7, 6, 5], [4, 3, 2], [1]]


async def test_a_persons_evidence_is_found_behind_any_number_of_others(memory):
    acme, other = memory.for_tenant("acme"), memory.for_tenant("acme-corp")
    await acme.forget(subject_key=ANN)
    await acme.hold(subject_key=BOB)
    for n in range(101):
        await acme.forget(subject_key=f"p{n}")
        await acme.hold(subject_key=f"p{n}")
    await acme.forget(subject_key=ANN)
    await other.forget(subject_key=ANN)
    ours = acme.subject_fingerprint(subject_key=ANN)
    assert ours not in [stone.subject_hash for stone in (await acme.erasure_history())[1:]]
    stones = await acme.erasure_history(subject_key=ANN)
    assert [(stone.seq, stone.subject_hash) for stone in stones] == [(103, ours), (1, ours)]
    assert await acme.erasure_history(subject_key=ANN, limit=1) == stones[:1]
    assert await acme.erasure_history(subject_key=ANN, before=103) == stones[1:]
    assert await acme.erasure_history(subject_key="nobody") == []
    (held,) = await acme.decisions(subject_key=BOB)
    bob = acme.subject_fingerprint(subject_key=BOB)
    assert (held.action, held.subject_hash) == ("hold", bob)
    assert await acme.decisions(subject_key=BOB, before=held.seq) == []
    assert held not in await acme.decisions()


async def test_decisions_are_paged_back_to_the_first(acme):
    for n in range(4):
        await acme.hold(subject_key=f"p{n}")
    newest = await acme.decisions(limit=3)
    (oldest,) = await acme.decisions(before=newest[-1].seq, limit=3)
    assert [one.seq for one in newest] == sorted((one.seq for one in newest), reverse=True)
    assert oldest.subject_hash == acme.subject_fingerprint(subject_key="p0")


async def test_another_pepper_finds_no_evidence_and_is_refused_rather_than_told_so(memory_factory):
    await memory_factory(subject_pepper="first").forget("acme", subject_key=ANN)
    second = memory_factory(subject_pepper="second").for_tenant("acme")
    for read in (second.erasure_history, second.decisions):
        with pytest.raises(InstallError):
            await read(subject_key=ANN)
    assert len(await second.erasure_history()) == 1


async def test_chains_of_tenants_are_apart(memory):
    await memory.forget("acme", subject_key="p")
    await memory.forget("acme-corp", subject_key="p")
    (ours,) = await memory.erasure_history("acme")
    (theirs,) = await memory.erasure_history("acme-corp")
    assert (ours.seq, theirs.seq, theirs.previous) == (1, 1, "")
    assert ours.subject_hash != theirs.subject_hash


async def test_one_event_follows_each_erasure_and_none_a_rehearsal(memory_factory, plugs):
    sink = plugs.Sink()
    acme = memory_factory(events=sink).for_tenant("acme")
    record = await told(acme, "Ann called", ANN)
    await acme.derive(kind="summary", text="s", sources=record)
    await acme.forget(subject_key=ANN, dry_run=True)
    assert sink.events == []
    receipt = await acme.forget(subject_key=ANN)
    (event,) = sink.events
    assert event.erasure_id == receipt.erasure_id
    assert (event.memories, event.derived, event.provenance_edges, event.artefacts) == (1, 1, 1, 0)
    assert (event.reason, event.scope, event.complete) == ("subject_request", "subject", True)
    assert (event.outstanding, event.completed_at) == ((), receipt.completed_at)
    assert (event.seq, event.digest) == (receipt.anchor.seq, receipt.anchor.digest)
    kept = await told(acme, "Bob called", BOB)
    await acme.forget_record(record_id=kept.record_id)
    assert [event.scope for event in sink.events] == ["subject", "record"]


async def test_a_failing_sink_neither_undoes_nor_hides(memory_factory, plugs, logs):
    acme = memory_factory(events=plugs.Sink(broken=True)).for_tenant("acme")
    await told(acme, "Ann called", ANN)
    receipt = await acme.forget(subject_key=ANN)
    assert receipt.complete
    assert await acme.records() == []
    assert "RuntimeError" in logs.text
    assert "secret-sink" not in logs.text


async def test_the_default_event_is_a_line_of_counts(acme, logs):
    await told(acme, "planted words", ANN)
    receipt = await acme.forget(subject_key=ANN)
    (line,) = [r.getMessage() for r in logs.records if r.name == "memory.erasure"]
    assert str(receipt.erasure_id) in line
    assert "memories=1 derived=0" in line
    for planted in (ANN, "planted", "acme", receipt.subject_hashes[0]):
        assert planted not in line
    assert UUID(line.split()[1].rstrip(":")) == receipt.erasure_id
