"""Peppers, health, closing, and many tasks at once."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

import pytest

from memory import InstallError, InvalidInputError, Memory, fingerprint
from memory.service import base


async def test_another_pepper_is_refused_before_any_write(memory_factory):
    first, other = memory_factory(subject_pepper="one"), memory_factory(subject_pepper=b"two")
    record = (await first.remember("acme", text="x", subject_keys="p")).record
    writes = [
        other.remember("acme", text="y", subject_keys="p"),
        other.remember_many("acme", items=[{"text": "y", "subject_keys": "p"}]),
        other.derive("acme", kind="summary", text="y", sources=record),
        other.supersede("acme", record_id=record.record_id, text="y"),
        other.relate("acme", record_id=record.record_id, subject_keys="q"),
        other.forget("acme", subject_key="p"),
        other.forget_record("acme", record_id=record.record_id),
    ]
    for write in writes:
        with pytest.raises(InstallError) as refused:
            await write
        assert "two" not in str(refused.value)
    assert await other.records("acme") == [record]
    assert await first.erasure_history("acme") == []
    same = memory_factory(subject_pepper=b"one")
    await same.remember("acme", text="y", subject_keys="p")


async def test_no_pepper_is_a_pepper_too(memory_factory):
    await memory_factory(subject_pepper=None).remember("acme", text="x", subject_keys="p")
    with pytest.raises(InstallError):
        await memory_factory(subject_pepper="one").remember("acme", text="x", subject_keys="p")
    await memory_factory(subject_pepper=None).remember("acme", text="x", subject_keys="p")


async def test_without_a_pepper_one_warning_says_what_the_hash_is(memory_factory, caplog):
    base._warn_of_pseudonyms.cache_clear()
    caplog.set_level(logging.WARNING, "memory")
    for _ in range(2):
        memory = memory_factory(subject_pepper=None)
        await memory.remember("acme", text="x", subject_keys="p")
    assert [r.name for r in caplog.records if "pseudonym" in r.getMessage()] == ["memory"]


async def test_the_pepper_keys_the_hash(memory_factory):
    memory = memory_factory(subject_pepper="one")
    expected = fingerprint.subject_hash("acme", "p", b"one")
    assert memory.subject_fingerprint("acme", subject_key="p") == expected
    receipt = await memory.forget("acme", subject_key="p")
    assert receipt.subject_hashes == (expected,)


@pytest.mark.parametrize("pepper", ["", b"", 7, "a\0b"])
async def test_a_useless_pepper_is_refused(memory_factory, pepper):
    with pytest.raises(InvalidInputError) as refused:
        memory_factory(subject_pepper=pepper)
    assert refused.value.field == "subject_pepper"


async def test_ready_says_whether_this_process_may_serve(memory_factory):
    memory = memory_factory(subject_pepper="one")
    assert (await memory.ready()).ready
    await memory.remember("acme", text="x", subject_keys="p")
    assert (await memory.ready()).problems == ()
    other = await memory_factory(subject_pepper="two").ready()
    assert not other.ready
    assert any("pepper" in problem for problem in other.problems)


async def test_capabilities_are_the_stores(memory):
    found = await memory.capabilities()
    assert found.store in ("in-memory", "postgres")
    assert found.vector_search in ("pgvector", "in-process")
    assert (found.vector_search == "pgvector") is (found.pgvector_version is not None)


async def test_leaving_the_block_closes_and_keeps_the_data(memory_factory, open_store):
    async with Memory(open_store(), subject_pepper="pepper") as memory:
        await memory.remember("acme", text="x", subject_keys="p")
    assert len(await memory_factory().records("acme")) == 1


async def test_a_memory_that_was_closed_answers_again(memory_factory):
    memory = memory_factory()
    told = await memory.remember("acme", text="x", subject_keys="p")
    for _ in range(2):
        await memory.close()
        assert await memory.records("acme") == [told.record]
    await memory.close()
    await memory.close()


async def test_two_tenants_through_one_memory_never_mix(memory):
    async def use(tenant):
        bound = memory.for_tenant(tenant)
        for n in range(10):
            await bound.remember(text=f"{tenant} {n}", subject_keys="p")
            found = await bound.recall(text=tenant, limit=100)
            assert {hit.record.tenant_key for hit in found.hits} == {tenant}
        return len(await bound.records(limit=100))

    tenants = [f"tenant-{n}" for n in range(6)]
    assert await asyncio.gather(*map(use, tenants)) == [10] * 6


async def test_writers_and_erasers_at_once_leave_nothing_and_count_everything(acme):
    async def write(n):
        record = (await acme.remember(text=f"note {n}", subject_keys="p")).record
        await acme.derive(kind="summary", text=f"sum {n}", sources=record)

    async def erase():
        return (await acme.forget(subject_key="p")).counts

    done = await asyncio.gather(
        *(write(n) if n % 4 else erase() for n in range(40)), return_exceptions=True
    )
    failed = Counter(type(item).__name__ for item in done if isinstance(item, Exception))
    assert failed.keys() <= {"UnknownSourceError"}
    await acme.forget(subject_key="p")
    assert await acme.records() == []
    stones = await acme.erasure_history()
    assert sum(stone.memories for stone in stones) == 30
    assert sum(stone.derived for stone in stones) == 30 - failed.total()


async def test_one_version_wins_a_race(acme):
    old = (await acme.remember(text="v1", subject_keys="p")).record
    done = await asyncio.gather(
        *(acme.supersede(record_id=old.record_id, text=f"v2 by {n}") for n in range(8)),
        return_exceptions=True,
    )
    failed = [type(item).__name__ for item in done if isinstance(item, Exception)]
    assert failed == ["ConflictError"] * 7
    assert [record.version for record in await acme.history(record_key=old.record_key)] == [2, 1]


async def test_one_id_in_a_race_is_one_record(acme):
    given = {"text": "x", "subject_keys": "p", "record_id": "0190a9c0-0000-7000-8000-000000000000"}
    done = await asyncio.gather(*(acme.remember(**given) for _ in range(8)))
    assert len({item.record.created_at for item in done}) == 1
    assert len(await acme.records()) == 1


async def test_a_missing_or_a_late_pepper_is_named(memory_factory):
    await memory_factory(subject_pepper="one").remember("acme", text="note", subject_keys="p")
    with pytest.raises(InstallError, match="no subject pepper was given"):
        await memory_factory(subject_pepper=None).remember("acme", text="note", subject_keys="p")
    with pytest.raises(InstallError, match="is not the one"):
        await memory_factory(subject_pepper="two").remember("acme", text="note", subject_keys="p")


async def test_a_pepper_after_none_is_named(memory_factory):
    await memory_factory(subject_pepper=None).remember("acme", text="note", subject_keys="p")
    late = memory_factory(subject_pepper="one")
    with pytest.raises(InstallError, match="first used without one"):
        await late.remember("acme", text="note", subject_keys="p")
    assert not (await late.ready()).ready
