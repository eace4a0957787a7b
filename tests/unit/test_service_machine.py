"""Random histories: whatever was done, an erasure is complete and its evidence adds up."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from memory import ExportedRecord, Memory, fingerprint

PEOPLE = ["ann", "bob", "cy", "dee"]

people = st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=3, unique=True)
picks = st.lists(st.integers(0, 50), min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.just("remember"), people, st.sampled_from([None, "k1", "k2"])),
    st.tuples(st.just("derive"), picks, st.sampled_from([None, "k1", "d1"])),
    st.tuples(st.just("supersede"), picks, people),
    st.tuples(st.just("relate"), picks, people),
    st.tuples(st.just("register"), picks, st.sampled_from(["a1", "a2", "a3"])),
    st.tuples(st.just("forget"), st.sampled_from(PEOPLE), st.sampled_from([None, "summary"])),
    st.tuples(st.just("forget_record"), picks, st.none()),
)


class Index:
    name = "index"

    def __init__(self):
        self.purged = set()

    async def purge(self, artefact_ids):
        self.purged |= set(artefact_ids)
        return len(artefact_ids)


class History:
    def __init__(self):
        self.index = Index()
        self.memory = Memory(subject_pepper="p", indexes=[self.index])
        self.acme = self.memory.for_tenant("acme")
        self.counted = 0

    @property
    def shelf(self):
        return self.memory._store._shelf("acme")

    def picked(self, picks):
        ids = sorted(self.shelf.rows)
        return [ids[pick % len(ids)] for pick in picks] if ids else []

    async def step(self, verb, first, second):
        if verb == "remember":
            await self.acme.remember(text="told", subject_keys=first, record_key=second)
        elif verb == "forget":
            await self.erased(self.acme.forget, subject_key=first, kinds=second)
        elif ids := self.picked(first):
            await self.change(verb, ids, second)
        self.check()

    async def change(self, verb, ids, second):
        if verb == "derive":
            await self.acme.derive(kind="summary", text="made", sources=ids, record_key=second)
        elif verb == "relate":
            await self.acme.relate(record_id=ids[0], subject_keys=second)
        elif verb == "register":
            await self.acme.register_artefact(adapter="index", artefact_id=second, sources=ids)
        elif verb == "forget_record":
            await self.erased(self.acme.forget_record, record_id=ids[0])
        else:
            row = self.shelf.rows[ids[0]].record
            if row.origin == "remembered" and row.superseded_at is None:
                await self.acme.supersede(record_id=ids[0], text="new", subject_keys=second)

    async def held(self, person):
        stream = self.acme.export(subject_key=person)
        return [entry.record_id async for entry in stream if isinstance(entry, ExportedRecord)]

    async def erased(self, verb, **arguments):
        before = dict(self.shelf.rows)
        artefacts = dict(self.shelf.artefacts)
        held = await self.held(arguments.get("subject_key", "ann"))
        rehearsal = await verb(**arguments, dry_run=True)
        receipt = await verb(**arguments, expect=rehearsal.closure)
        gone = before.keys() - self.shelf.rows.keys()
        same = {"erasure_id": receipt.erasure_id, "erased_at": receipt.erased_at}
        assert receipt == replace(
            rehearsal,
            **same,
            bystander_keys=(),
            complete=True,
            dry_run=False,
            anchor=receipt.anchor,
            completed_at=receipt.completed_at,
        )
        assert receipt.counts.records == len(gone)
        assert receipt.counts.artefacts == len(artefacts) - len(self.shelf.artefacts)
        assert receipt.closure == fingerprint.closure_digest(gone)
        assert not {item for _, item in artefacts.keys() - self.shelf.artefacts.keys()} - (
            self.index.purged
        )
        stones = [s for s in self.shelf.tombstones if s.erasure_id == receipt.erasure_id]
        assert tuple(sorted(stone.subject_hash for stone in stones)) == receipt.subject_hashes
        if "subject_key" in arguments:
            if arguments["kinds"] is None:
                assert fingerprint.closure_digest(held) == receipt.closure
            (stone,) = stones
            assert stone.memories + stone.derived == len(gone)
            if arguments["kinds"] is None:
                key = arguments["subject_key"]
                assert not any(key in row.subjects for row in self.shelf.rows.values())

    def check(self):
        rows, shelf = self.shelf.rows, self.shelf
        for record_id, row in rows.items():
            record = row.record
            assert (record.origin == "derived") is bool(record.sources)
            assert record.subject_keys == tuple(sorted(row.subjects))
            for source in record.sources:
                assert row.subjects.items() >= rows[source].subjects.items()
                assert record_id in shelf.derived_from[source]
        assert {made for all_made in shelf.derived_from.values() for made in all_made} <= set(rows)
        for line in shelf.lines.values():
            versions = [rows[item].record for item in line]
            assert [v.version for v in versions] == sorted({v.version for v in versions})
            assert all(v.superseded_at is not None for v in versions[:-1])
        assert {item for line in shelf.lines.values() for item in line} == set(rows)
        assert all(sources <= set(rows) for sources in shelf.artefacts.values())
        previous = ""
        for stone in shelf.tombstones:
            assert stone.previous == previous
            assert stone.digest == fingerprint.tombstone_digest(stone)
            previous = stone.digest


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=30))
def test_any_history_keeps_provenance_whole_and_erasures_complete(history):
    async def run():
        replayed = History()
        for step in history:
            await replayed.step(*step)

    asyncio.run(run())
