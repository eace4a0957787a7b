"""Sizes at which other stores miss rows, run out of locks, or overflow a stack."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory import ConflictError, InvalidInputError, Memory
from memory.stores.postgres import PostgresStore
from rawsql import Connection
from servers import Database
from stores import broken_rules, rows_of

BULK = Path(__file__).parents[1] / "support" / "bulk.py"
EVIDENCE = {"subjects", "tenants", "tenant_counts", "tombstones", "chain_heads"}


@pytest.fixture
async def memory(shared: Database) -> AsyncIterator[Memory]:
    memory = Memory(PostgresStore(shared.app_url), redactor=None, subject_pepper="pepper")
    yield memory
    await memory.close()


async def test_a_person_of_10001_records_goes_whole_and_is_counted_exactly(
    memory: Memory, inspector: Connection, tenant: str
) -> None:
    items = [{"text": f"tea {n}", "subject_keys": "ann"} for n in range(10_001)]
    told = await memory.remember_many(tenant, items=items)
    assert len({one.record.record_id for one in told}) == 10_001
    await memory.derive(
        tenant, kind="summary", text="teas", sources=[one.record for one in told[:5_000]]
    )
    receipt = await memory.forget(tenant, subject_key="ann")
    assert (receipt.counts.memories, receipt.counts.derived) == (10_001, 1)
    assert receipt.counts.provenance_edges == 5_000
    assert set(await rows_of(inspector, tenant)) == EVIDENCE
    (stone,) = await memory.erasure_history(tenant)
    assert (stone.memories, stone.derived, stone.provenance_edges) == (10_001, 1, 5_000)


async def test_a_chain_of_10000_derivations_is_forgotten_through_the_store(
    memory: Memory, inspector: Connection, tenant: str
) -> None:
    first = (await memory.remember(tenant, text="tea", subject_keys="ann")).record
    # Written past the triggers, which is quick, as the store would have written it.
    await inspector.execute("set session_replication_role = replica")
    await inspector.execute(
        "create temp table chain as select n, case when n > 0 then gen_random_uuid()"
        f" else '{first.record_id}' end as id from generate_series(0, 10000) as n"
    )
    await inspector.execute(
        "insert into memory.records (tenant_key, record_id, origin, kind, text)"
        " select $1, id, 'derived', 'summary', 'needle' from chain where n > 0",
        tenant,
    )
    await inspector.execute(
        "insert into memory.record_subjects"
        " (tenant_key, record_id, subject_key, subject_hash, inherited)"
        " select $1, id, 'ann', $2, true from chain where n > 0",
        tenant,
        memory.subject_fingerprint(tenant, subject_key="ann"),
    )
    await inspector.execute(
        "insert into memory.provenance (tenant_key, derived_id, source_id)"
        " select $1, d.id, s.id from chain as d join chain as s on s.n = d.n - 1",
        tenant,
    )
    await inspector.execute("reset session_replication_role")
    assert await broken_rules(inspector, tenant) == {}
    receipt = await memory.forget(tenant, subject_key="ann")
    assert (receipt.counts.memories, receipt.counts.derived) == (1, 10_000)
    assert receipt.counts.provenance_edges == receipt.cascade_depth == 10_000
    assert set(await rows_of(inspector, tenant)) == EVIDENCE


@pytest.mark.parametrize(
    "text",
    [
        "begins " + "x" * 4_096 + " ends",
        "QUJD" * 16_384,
        "a b " * 16_384,
        "東" * 21_845,
        " ".join(f"w{n}" for n in range(9_000)),
    ],
    ids=["token of 4 kB", "one token of 64 KiB", "64 KiB", "64 KiB of CJK", "9,000 words"],
)
async def test_a_large_text_is_stored_found_and_erased(
    memory: Memory, inspector: Connection, tenant: str, text: str
) -> None:
    told = (await memory.remember(tenant, text=text, subject_keys="ann")).record
    assert await memory.get(tenant, record_id=told) == told
    found = await memory.recall(tenant, text=text[:20_000], subject_keys="ann")
    assert [hit.record.record_id for hit in found.hits] == [told.record_id]
    receipt = await memory.forget(tenant, subject_key="ann")
    assert receipt.counts.memories == 1
    assert set(await rows_of(inspector, tenant)) == EVIDENCE
    with pytest.raises(InvalidInputError):
        await memory.remember(tenant, text="x" * 65_537, subject_keys="ann")


async def test_a_record_about_a_thousand_people_goes_with_any_of_them(
    memory: Memory, inspector: Connection, tenant: str
) -> None:
    people = [f"person-{n}" for n in range(1_000)]
    told = (await memory.remember(tenant, text="all of them", subject_keys=people)).record
    made = (await memory.derive(tenant, kind="summary", text="all", sources=told)).record
    assert set(made.subject_keys) == set(people)
    receipt = await memory.forget(tenant, subject_key="person-500")
    assert receipt.counts.records == 2
    assert receipt.bystanders == 999
    assert set(await rows_of(inspector, tenant)) == EVIDENCE
    with pytest.raises(InvalidInputError):
        await memory.remember(tenant, text="x", subject_keys=[*people, "one more"])


async def test_twenty_thousand_people_in_one_batch_need_no_lock_table(
    memory: Memory, inspector: Connection, tenant: str
) -> None:
    items = [{"text": "tea", "subject_keys": f"needle-{n}"} for n in range(20_000)]
    assert len(await memory.remember_many(tenant, items=items)) == 20_000
    receipt = await memory.forget(tenant, subject_key="needle-7")
    assert receipt.counts.memories == 1
    counts = await rows_of(inspector, tenant)
    assert counts["records"] == counts["record_subjects"] == 19_999
    assert await broken_rules(inspector, tenant) == {}


async def test_a_batch_that_fails_at_its_end_leaves_nothing(
    memory: Memory, inspector: Connection, tenant: str
) -> None:
    told = (await memory.remember(tenant, text="first", subject_keys="ann")).record
    before = await rows_of(inspector, tenant)
    items = [{"text": "needle", "subject_keys": f"p{n}"} for n in range(2_500)]
    clash = {"text": "other", "subject_keys": "ann", "record_id": told.record_id}
    with pytest.raises(ConflictError):
        await memory.remember_many(tenant, items=[*items, clash])
    assert await rows_of(inspector, tenant) == before


def test_a_batch_of_10000_with_vectors_grows_the_process_by_less_than_a_limit(
    shared: Database, tenant: str
) -> None:
    done = subprocess.run(
        [sys.executable, str(BULK), shared.app_url, tenant, "10000", "384"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    sys.stdout.write(done.stdout)
    assert float(done.stdout) < 250
