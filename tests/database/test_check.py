"""What check() finds: each kind of damage as itself, and nothing in a sound database."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

import psycopg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

import memory
from memory import (
    Anchor,
    InstallError,
    InvalidInputError,
    LegalHoldError,
    Memory,
    PartialErasureError,
)
from memory.maintenance.checks import rows
from memory.maintenance.checks.faults import FAULTS
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from restores import damage
from servers import Database


@dataclass(frozen=True)
class Furnished:
    database: Database
    told: UUID
    made: UUID
    other: UUID
    ann: str
    bob: str
    anchor: Anchor

    def statement(self, template: str) -> str:
        names = {name: getattr(self, name) for name in ("told", "made", "other", "ann", "bob")}
        return template.format(**names, none=UUID(int=7))


async def furnish(database: Database) -> Furnished:
    """Two tenants that hold one of everything, and have forgotten somebody."""
    async with Memory(PostgresStore(database.app_url), subject_pepper="p") as service:
        found = {}
        for tenant in ("acme", "globex"):
            home = service.for_tenant(tenant)
            told = await home.remember(
                text="Ann likes tea", subject_keys=["ann", "bob"], embedding=[1.0, 2.0]
            )
            other = await home.remember(text="Bob likes tea", subject_keys="bob")
            made = await home.derive(kind="summary", text="They like tea", sources=told)
            await home.register_artefact(adapter="index", artefact_id="a1", sources=told)
            for person in ("cid", "dee"):
                gone = await home.remember(text="gone", subject_keys=person)
                if person == "cid":
                    await home.register_artefact(adapter="index", artefact_id="a2", sources=gone)
                    with pytest.raises(PartialErasureError):
                        await home.forget(subject_key=person)
                else:
                    receipt = await home.forget(subject_key=person)
            assert receipt.anchor is not None
            found[tenant] = Furnished(
                database=database,
                told=told.record.record_id,
                made=made.record.record_id,
                other=other.record.record_id,
                ann=home.subject_fingerprint(subject_key="ann"),
                bob=home.subject_fingerprint(subject_key="bob"),
                anchor=receipt.anchor,
            )
    return found["acme"]


@pytest.fixture
async def furnished(database: Database) -> Furnished:
    return await furnish(database)


async def codes(furnished: Furnished, **options: object) -> set[str]:
    report = await memory.check(furnished.database.owner_url, **options)  # type: ignore[arg-type]
    assert {fault.tenant_key for fault in report.faults} <= {"acme"}
    return {fault.code for fault in report.faults}


async def test_a_sound_database_has_no_fault(furnished: Furnished) -> None:
    steps: list[tuple[str, int]] = []
    lines = [line async for line in memory.export_tombstones(furnished.database.owner_url)]
    report = await memory.check(
        furnished.database.owner_url,
        anchors={"acme": furnished.anchor},
        tombstones=lines,
        progress=lambda step, done: steps.append((step, done)),
    )
    assert (report.faults, report.ok, report.tenants) == ((), True, 2)
    with psycopg.connect(furnished.database.superuser_url) as superuser:
        looked = [
            "records",
            "record_subjects",
            "provenance",
            "postings",
            "artefacts",
            "purges",
            "subjects",
            "tombstones",
        ]
        counts = [
            superuser.execute(f"select count(*) from memory.{name}").fetchone() for name in looked
        ]
    assert report.rows == sum(count[0] for count in counts if count)
    assert [step for step, _ in groupby(step for step, _ in steps)] == ["tenants", "rows"] * 2


async def test_holds_blocks_and_what_they_deferred_are_no_fault(furnished: Furnished) -> None:
    async with Memory(PostgresStore(furnished.database.app_url), subject_pepper="p") as service:
        acme = service.for_tenant("acme")
        await acme.hold(subject_key="ann")
        await acme.derive(kind="summary", text="more tea", sources=furnished.told)
        with pytest.raises(LegalHoldError):
            await acme.forget(subject_key="bob")
        await acme.forget(subject_key="eve", block_future=True)
        with pytest.raises(LegalHoldError):
            await acme.forget_tenant(confirm="acme")
        assert await codes(furnished) == set()
    operator = furnished.database.operator_url
    async with Memory(PostgresStore(operator), subject_pepper="p") as service:
        await service.release("acme", subject_key="ann")
        await service.readmit("acme", subject_key="eve")
        assert await codes(furnished) == set()


async def test_an_empty_database_has_none_either(database: Database) -> None:
    report = await memory.check(database.owner_url)
    assert (report.faults, report.tenants, report.rows) == ((), 0, 0)


DAMAGES = {
    "subject_missing": ["delete from memory.record_subjects where record_id = '{other}'"],
    "derived_sourceless": ["delete from memory.provenance where derived_id = '{made}'"],
    "subject_not_inherited": [
        "delete from memory.record_subjects where record_id = '{made}' and subject_key = 'ann'"
    ],
    "subject_two_hashes": [
        "update memory.record_subjects set subject_hash = repeat('0', 64)"
        " where record_id = '{other}'"
    ],
    "link_orphan": [
        "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
        " values ('acme', '{none}', 'bob', '{bob}')"
    ],
    "edge_orphan": [
        "insert into memory.provenance (tenant_key, derived_id, source_id)"
        " values ('acme', '{made}', '{none}')"
    ],
    "edge_orphan derived": [
        "insert into memory.provenance (tenant_key, derived_id, source_id)"
        " values ('acme', '{none}', '{told}')"
    ],
    "posting_orphan": [
        "insert into memory.postings (tenant_key, term, record_id) values ('acme', 'x', '{none}')"
    ],
    "postings_missing": ["delete from memory.postings where record_id = '{other}'"],
    "artefact_orphan": [
        "insert into memory.artefacts (tenant_key, adapter, artefact_id, record_id)"
        " values ('acme', 'index', 'a9', '{none}')"
    ],
    "purge_stale": [
        "update memory.purges set requested_at = now() - interval '2 days'"
        " where tenant_key = 'acme'"
    ],
    "counts_off": [
        "insert into memory.tenant_counts (tenant_key, records, terms) values ('acme', 1, 0)"
    ],
    "counts_off terms": [
        "insert into memory.tenant_counts (tenant_key, records, terms) values ('acme', 0, 1)"
    ],
    "hold_missing": [
        "update memory.subjects set held = true where tenant_key = 'acme' and subject_hash ="
        " '{ann}'",
        "insert into memory.decisions (tenant_key, subject_hash, action)"
        " values ('acme', '{ann}', 'hold')",
    ],
    "hold_stale": ["update memory.records set held = true where record_id = '{other}'"],
    "decision_not_enforced": [
        "insert into memory.decisions (tenant_key, subject_hash, action)"
        " values ('acme', '{ann}', 'hold'), ('acme', '{bob}', 'block'), ('acme', '{bob}',"
        " 'readmit')"
    ],
    "decision_not_enforced block": [
        "insert into memory.decisions (tenant_key, subject_hash, action)"
        " values ('acme', '{ann}', 'release'), ('acme', '{ann}', 'block')"
    ],
    "flag_undecided": [
        "update memory.subjects set blocked = true where tenant_key = 'acme' and subject_hash ="
        " '{ann}'"
    ],
    "evidence_unsealed": [
        "insert into memory.pending_evidence (tenant_key, erasure_id, subject_hash, reason, scope,"
        " memories, derived, provenance_edges, artefacts) values ('acme', '{none}', '{ann}',"
        " 'operator', 'record', 1, 0, 0, 0)"
    ],
    "chain_digest": [
        "update memory.tombstones set memories = 9 where tenant_key = 'acme' and seq = 1"
    ],
    "chain_gap": ["delete from memory.tombstones where tenant_key = 'acme' and seq = 1"],
    "chain_head": ["delete from memory.tombstones where tenant_key = 'acme' and seq = 2"],
    "chain_head gone": ["delete from memory.chain_heads where tenant_key = 'acme'"],
    "chain_head edited": [
        "update memory.chain_heads set digest = repeat('0', 64) where tenant_key = 'acme'"
    ],
    "chain_broken": [
        "update memory.tombstones set previous = repeat('0', 64)"
        " where tenant_key = 'acme' and seq = 2",
        "update memory.tombstones as t set digest = memory.tombstone_digest(t)"
        " where tenant_key = 'acme' and seq = 2",
        "update memory.chain_heads as h set digest = t.digest from memory.tombstones as t"
        " where t.tenant_key = h.tenant_key and t.seq = h.seq and h.tenant_key = 'acme'",
    ],
    # A person who was forgotten and stands again, alone or beside others.
    "resurrected": [
        "update memory.record_subjects set subject_key = 'cid', subject_hash = (select"
        " subject_hash from memory.tombstones where tenant_key = 'acme' and seq = 1)"
        " where record_id = '{other}'"
    ],
    "older_than_erasure": [
        "update memory.record_subjects set subject_key = 'cid', subject_hash = (select"
        " subject_hash from memory.tombstones where tenant_key = 'acme' and seq = 1)"
        " where record_id in ('{told}', '{made}') and subject_key = 'ann'"
    ],
}


@pytest.mark.parametrize("name", DAMAGES)
async def test_each_damage_is_found_as_itself(furnished: Furnished, name: str) -> None:
    damage(furnished.database, *(furnished.statement(part) for part in DAMAGES[name]))
    assert await codes(furnished) == {name.split()[0]}


def test_every_code_has_its_damage_and_its_remedy() -> None:
    tested_elsewhere = {"chain_anchor", "chain_lost", "hash_foreign", "narrow_not_repeated"}
    assert {name.split()[0] for name in DAMAGES} | tested_elsewhere == FAULTS.keys()
    for code, meaning in FAULTS.items():
        assert re.fullmatch(r"[a-z_]+", code)
        assert meaning.remedy.endswith(".")


async def test_a_chain_cut_with_its_head_shows_by_an_anchor_only(furnished: Furnished) -> None:
    damage(
        furnished.database,
        "delete from memory.tombstones where tenant_key = 'acme' and seq = 2",
        "update memory.chain_heads as h set seq = 1, digest = t.digest from memory.tombstones as t"
        " where t.tenant_key = h.tenant_key and t.seq = 1 and h.tenant_key = 'acme'",
    )
    assert await codes(furnished) == set()
    assert await codes(furnished, anchors={"acme": furnished.anchor}) == {"chain_anchor"}
    edited = Anchor(seq=1, digest="0" * 64)
    assert await codes(furnished, anchors={"acme": edited}) == {"chain_anchor"}


async def test_an_anchor_of_a_tenant_that_is_gone_is_missed(furnished: Furnished) -> None:
    report = await memory.check(
        furnished.database.owner_url, anchors={"initech": Anchor(seq=3, digest="0" * 64)}
    )
    [fault] = report.faults
    assert (fault.code, fault.tenant_key, fault.examples) == ("chain_anchor", "initech", ("3",))


async def test_another_pepper_than_the_links_are_made_with_is_found(furnished: Furnished) -> None:
    assert await codes(furnished, subject_pepper="p") == set()
    report = await memory.check(furnished.database.owner_url, subject_pepper="other")
    assert [(fault.code, fault.count) for fault in report.faults] == [("hash_foreign", 2)] * 2


async def test_examples_are_ids_and_nothing_shows_a_key(furnished: Furnished) -> None:
    damage(furnished.database, furnished.statement(DAMAGES["postings_missing"][0]))
    report = await memory.check(furnished.database.owner_url)
    [fault] = report.faults
    assert (fault.count, fault.examples) == (1, (str(furnished.other),))
    assert (fault.severity, report.ok) == ("error", False)
    assert "acme" not in repr(report)
    assert "words" in fault.what
    assert fault.remedy


async def test_a_warning_is_no_error(furnished: Furnished) -> None:
    damage(furnished.database, DAMAGES["purge_stale"][0])
    report = await memory.check(furnished.database.owner_url)
    assert [fault.severity for fault in report.faults] == ["warning"]
    assert report.ok


async def test_pages_join_without_a_gap(
    furnished: Furnished, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = await memory.check(furnished.database.owner_url)
    for size in (1, 2, 3):
        monkeypatch.setattr(rows, "_PAGE", size)
        assert await memory.check(furnished.database.owner_url) == whole
    statements = [furnished.statement(part[0]) for part in DAMAGES.values() if len(part) == 1]
    damage(furnished.database, *statements[4:10])
    monkeypatch.undo()
    damaged = await memory.check(furnished.database.owner_url)
    assert len(damaged.faults) > 3
    monkeypatch.setattr(rows, "_PAGE", 1)
    again = await memory.check(furnished.database.owner_url)
    for one, other in zip(damaged.faults, again.faults, strict=True):
        assert (one.code, one.count) == (other.code, other.count)
        assert set(one.examples) == set(other.examples)


async def test_work_that_goes_on_meanwhile_is_no_fault(database: Database) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="p") as service:
        acme = service.for_tenant("acme")
        done = asyncio.Event()

        async def work(person: str) -> None:
            while not done.is_set():
                told = await acme.remember(text="tea for two", subject_keys=[person, "zoe"])
                await acme.derive(kind="summary", text="tea", sources=told)
                await acme.forget(subject_key=person)

        workers = [asyncio.create_task(work(f"p{n}")) for n in range(4)]
        try:
            for _ in range(8):
                report = await memory.check(database.owner_url)
                assert report.ok, report.faults
        finally:
            done.set()
            await asyncio.gather(*workers)
    assert (await memory.check(database.owner_url)).faults == ()


async def test_an_engine_of_the_hosts_is_used_and_stays_open(furnished: Furnished) -> None:
    engine = create_async_engine(normalize_url(furnished.database.owner_url))
    assert (await memory.check(engine)).ok
    assert (await memory.check(engine)).tenants == 2
    await engine.dispose()


async def test_the_application_may_not_check(furnished: Furnished) -> None:
    with pytest.raises(InstallError):
        await memory.check(furnished.database.app_url)
    with pytest.raises(InvalidInputError):
        await memory.check(7)  # type: ignore[arg-type]
