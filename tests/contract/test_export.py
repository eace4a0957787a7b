"""Export: everything held about a person, exactly what an erasure would take, and nothing more."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from memory import (
    ConflictError,
    ExportedRecord,
    InstallError,
    InvalidInputError,
    TenantRequiredError,
    Tombstone,
    fingerprint,
)

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)


async def exported(tenant, person="ann", **options):
    return [entry async for entry in tenant.export(subject_key=person, **options)]


async def records(tenant, person="ann", **options):
    entries = await exported(tenant, person, **options)
    return [entry for entry in entries if isinstance(entry, ExportedRecord)]


async def rehearsed(tenant, person="ann"):
    return await tenant.forget(subject_key=person, dry_run=True)


async def test_an_export_shows_a_record_whole_and_ready_for_json(acme, bystander):
    told = await acme.remember(
        text="Ann flies to Oslo, ask ann@example.com",
        subject_keys=["ann", "bob", "cy"],
        metadata={"trip": {"legs": [1, 2.5, None]}, "contact": "9876543210"},
        record_key="trip:1",
        occurred_at=NOW,
        embedding=[0.5, 0.25],
    )
    made = await acme.derive(kind="summary", text="An Oslo trip", sources=told)
    await acme.register_artefact(adapter="index", artefact_id="vec-1", sources=told)
    first, second = await records(acme, vectors=True)
    assert json.loads(json.dumps(first.to_dict())) == {
        "type": "record",
        "subject_key": "ann",
        "record_id": str(told.record.record_id),
        "origin": "remembered",
        "kind": "episodic",
        "text": told.record.text,
        "metadata": dict(told.record.metadata),
        "directly": True,
        "other_people": 2,
        "redacted": list(told.record.redacted),
        "record_key": "trip:1",
        "version": 1,
        "embedding_model": None,
        "embedding_dims": 2,
        "embedding": [0.5, 0.25],
        "occurred_at": "2024-05-01T12:00:00+00:00",
        "created_at": told.record.created_at.isoformat(),
        "expires_at": None,
        "superseded_at": None,
        "held": False,
        "sources": [],
        "derived": [str(made.record.record_id)],
        "artefacts": [{"adapter": "index", "artefact_id": "vec-1"}],
    }
    assert set(told.record.redacted) == {"text", "metadata.contact"}
    assert (second.origin, second.sources) == ("derived", (told.record.record_id,))
    assert (second.directly, second.other_people) == (False, 2)


async def test_other_people_are_counted_and_never_named(acme):
    await acme.remember(text="about three", subject_keys=["ann", "customer:bob", "customer:cy"])
    shown = json.dumps([entry.to_dict() for entry in await exported(acme)])
    assert '"other_people": 2' in shown
    assert "customer:" not in shown


async def test_vectors_are_in_it_only_when_asked_for(acme):
    await acme.remember(text="a", subject_keys="ann", embedding=[0.5, 0.25])
    await acme.remember(text="b", subject_keys="ann")
    assert [entry.embedding for entry in await records(acme)] == [None, None]
    assert [entry.embedding for entry in await records(acme, vectors=True)] == [(0.5, 0.25), None]


async def test_what_recall_hides_but_the_store_still_holds_is_in_it(acme, bystander):
    old = await acme.remember(text="old", subject_keys="ann", record_key="line")
    new = await acme.remember(text="new", subject_keys="ann", record_key="line")
    gone = await acme.remember(
        text="expired", subject_keys="ann", expires_at=NOW - timedelta(days=1)
    )
    found = {entry.record_id: entry for entry in await records(acme)}
    assert found.keys() == {item.record.record_id for item in (old, new, gone)}
    assert found[old.record.record_id].superseded_at is not None
    assert found[gone.record.record_id].expires_at == NOW - timedelta(days=1)
    assert await acme.get(record_id=gone.record) is None


async def test_the_evidence_about_the_person_follows_and_nobody_elses(acme, bystander):
    for person in ("ann", "bob", "ann"):
        await acme.remember(text="x", subject_keys=person)
        await acme.forget(subject_key=person)
    entries = await exported(acme)
    stones = [entry for entry in entries if isinstance(entry, Tombstone)]
    assert stones == entries
    history = await acme.erasure_history()
    assert stones == [history[2], history[0]]
    assert stones[0].to_dict()["subject_hash"] == acme.subject_fingerprint(subject_key="ann")
    assert stones[0].to_dict()["type"] == "tombstone"


async def test_decisions_about_the_person_and_a_hold_are_in_it(acme, bystander):
    await acme.remember(text="x", subject_keys=["ann", "bob"])
    await acme.hold(subject_key="ann")
    await acme.hold(subject_key="bob")
    record, *decided = await exported(acme)
    assert record.held
    assert [entry.action for entry in decided] == ["hold"]
    assert decided[0].to_dict()["type"] == "decision"


async def test_a_person_nothing_is_held_about_has_an_empty_export(acme, bystander):
    assert await exported(acme, "stranger") == []


async def test_tenants_are_exported_apart(memory):
    for tenant in ("acme", "globex"):
        await memory.remember(tenant, text=f"for {tenant}", subject_keys="ann")
    assert [e.text for e in await records(memory.for_tenant("acme"))] == ["for acme"]


async def test_a_bad_argument_is_refused_before_the_first_step(memory):
    with pytest.raises(TenantRequiredError):
        memory.export("", subject_key="ann")
    with pytest.raises(InvalidInputError, match="subject_key"):
        memory.export("acme", subject_key="")
    with pytest.raises(InvalidInputError, match="vectors"):
        memory.export("acme", subject_key="ann", vectors=1)


async def test_another_pepper_is_refused_instead_of_missing_the_evidence(memory_factory):
    acme = memory_factory().for_tenant("acme")
    await acme.remember(text="x", subject_keys="ann")
    with pytest.raises(InstallError):
        await exported(memory_factory(subject_pepper="other").for_tenant("acme"))
    assert len(await records(acme)) == 1


async def test_pages_join_without_a_gap_or_a_repetition(acme):
    told = await acme.remember_many(
        items=[{"text": f"note {n}", "subject_keys": "ann"} for n in range(250)]
    )
    found = await records(acme)
    assert [entry.record_id for entry in found] == sorted(one.record.record_id for one in told)


async def test_what_is_erased_meanwhile_is_left_out_and_what_comes_is_not_in_it(acme):
    told = await acme.remember_many(
        items=[{"text": f"note {n}", "subject_keys": "ann"} for n in range(150)]
    )
    stream = acme.export(subject_key="ann")
    first = await anext(stream)
    await acme.forget_record(record_id=told[149].record)
    await acme.remember(text="later", subject_keys="ann")
    rest = [entry async for entry in stream if isinstance(entry, ExportedRecord)]
    assert [entry.record_id for entry in (first, *rest)] == [
        one.record.record_id for one in told[:149]
    ]


async def test_the_export_can_be_closed_early_and_started_again(acme):
    await acme.remember_many(items=[{"text": "x", "subject_keys": "ann"} for _ in range(120)])
    for _ in range(8):
        stream = acme.export(subject_key="ann")
        await anext(stream)
        await stream.aclose()
    assert len(await records(acme)) == 120


PEOPLE = ("ann", "bob", "cy")


async def random_history(tenant, chance):
    """Memories, derivations, versions, later links and erasures of one kind, at random."""
    stored = []
    for number in range(chance.randint(1, 25)):
        people = chance.sample(PEOPLE, chance.randint(1, 2))
        verb = chance.choice(["remember", "remember", "derive", "derive", "relate", "key", "kind"])
        if verb == "derive" and stored:
            sources = chance.sample(stored, min(len(stored), chance.randint(1, 3)))
            kind = chance.choice(["summary", "digest"])
            stored.append((await tenant.derive(kind=kind, text="made", sources=sources)).record)
        elif verb == "relate" and stored:
            await tenant.relate(record_id=chance.choice(stored), subject_keys=people)
        elif verb == "kind":
            receipt = await tenant.forget(subject_key=people[0], kinds="digest", dry_run=True)
            await tenant.forget(subject_key=people[0], kinds="digest", expect=receipt.closure)
            stored = [item for item in stored if await tenant.get(record_id=item) is not None]
        else:
            key = chance.choice(["k1", "k2"]) if verb == "key" else None
            told = await tenant.remember(text=f"n{number}", subject_keys=people, record_key=key)
            stored.append(told.record)


async def test_an_export_is_exactly_what_an_erasure_takes_whatever_was_done(memory):
    sizes = []
    for seed in range(20):
        chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
        tenant = memory.for_tenant(f"tenant-{seed}")
        await random_history(tenant, chance)
        for person in PEOPLE:
            found = await records(tenant, person)
            rehearsal = await rehearsed(tenant, person)
            ids = [entry.record_id for entry in found]
            assert fingerprint.closure_digest(ids) == rehearsal.closure, (seed, person)
            assert len(ids) == rehearsal.counts.records
            sizes.append(len(ids))
        receipt = await tenant.forget(
            subject_key="ann",
            expect=fingerprint.closure_digest(
                [entry.record_id for entry in await records(tenant, "ann")]
            ),
        )
        assert receipt.complete
        assert await records(tenant, "ann") == []
    assert sum(sizes) > 200


class TestADryRunIsAPlan:
    async def test_it_is_carried_out_while_it_holds(self, acme, bystander):
        told = await acme.remember(text="x", subject_keys="ann")
        plan = await acme.forget_record(record_id=told.record, dry_run=True)
        done = await acme.forget_record(record_id=told.record, expect=plan.closure)
        assert (done.closure, done.counts) == (plan.closure, plan.counts)

    @pytest.mark.parametrize("verb", ["forget", "forget_record"])
    async def test_a_plan_that_grew_is_refused_and_nothing_goes(self, acme, bystander, verb):
        told = (await acme.remember(text="x", subject_keys="ann")).record
        call = getattr(acme, verb)
        named = {"subject_key": "ann"} if verb == "forget" else {"record_id": told}
        plan = await call(**named, dry_run=True)
        made = (await acme.derive(kind="summary", text="y", sources=told)).record
        with pytest.raises(ConflictError, match="expect"):
            await call(**named, expect=plan.closure)
        assert await acme.get(record_id=told) == told
        assert await acme.get(record_id=made) == made
        assert await acme.erasure_history() == []
        again = await call(**named, dry_run=True)
        assert (await call(**named, expect=again.closure)).counts.records == 2

    async def test_a_plan_that_shrank_is_refused_too(self, acme, bystander):
        kept = (await acme.remember(text="x", subject_keys="ann")).record
        gone = (await acme.remember(text="y", subject_keys="ann")).record
        plan = await rehearsed(acme)
        await acme.forget_record(record_id=gone)
        with pytest.raises(ConflictError, match="expect"):
            await acme.forget(subject_key="ann", expect=plan.closure)
        assert await acme.get(record_id=kept) == kept
        assert len(await acme.erasure_history()) == 1

    async def test_whatever_lands_between_is_erased_by_plan_or_not_at_all(self, memory):
        outcomes = set()
        for turn in range(12):
            tenant = memory.for_tenant(f"tenant-{turn}")
            told = (await tenant.remember(text="x", subject_keys="ann")).record
            plan = await rehearsed(tenant)

            async def derives(tenant=tenant, told=told, turn=turn):
                await asyncio.sleep(turn * 0.0005)
                return await tenant.derive(kind="summary", text="y", sources=told)

            made, erased = await asyncio.gather(
                derives(),
                tenant.forget(subject_key="ann", expect=plan.closure),
                return_exceptions=True,
            )
            held = await records(tenant)
            if isinstance(erased, ConflictError):
                assert [entry.origin for entry in held] == ["remembered", "derived"]
                assert await tenant.erasure_history() == []
            else:
                # The derive came second, and found its source gone.
                assert isinstance(made, Exception)
                assert erased.counts.records == 1
                assert held == []
            outcomes.add(type(erased).__name__)
        assert outcomes <= {"ConflictError", "Receipt"}
