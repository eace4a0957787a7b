"""What of an erasure is there all the same, and of what no evidence tells."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from memory import InvalidInputError, Memory, Remaining, Tombstone, certificate
from memory.maintenance import remaining_of
from memory.stores.postgres import PostgresStore
from restores import damage
from servers import Database

AGE = timedelta(hours=1)


@pytest.fixture
def memory(database: Database) -> Memory:
    return Memory(PostgresStore(database.app_url), redactor=None, subject_pepper="pepper")


def grow_older(database: Database) -> None:
    """All that is there is from two hours earlier."""
    damage(
        database,
        "update memory.records set created_at = created_at - interval '2 hours',"
        " occurred_at = occurred_at - interval '2 hours'",
    )


async def evidence(memory: Memory, person: str) -> list[Tombstone]:
    return await memory.erasure_history("acme", subject_key=person)


def title(stones: Sequence[Tombstone], left: Remaining) -> str:
    page = certificate(stones, indexes=(), deferred=False, remaining=left)
    return page.partition("<h1>")[2].partition("</h1>")[0]


async def test_what_a_hold_had_a_sweep_by_age_pass_by_is_not_certified_away(
    database: Database, memory: Memory
) -> None:
    for people in (["ann"], ["ann", "bob"], ["cyd"]):
        await memory.remember("acme", text="tea", subject_keys=people)
    await memory.hold("acme", subject_key="bob")
    grow_older(database)
    fresh = await memory.remember("acme", text="milk", subject_keys=["cyd"])
    receipt = await memory.expire("acme", older_than=AGE)
    assert (receipt.counts.memories, receipt.held) == (2, 1)
    ann, cyd = await evidence(memory, "ann"), await evidence(memory, "cyd")
    for stones, person, left in ((ann, "ann", 1), (cyd, "cyd", 0)):
        found = await remaining_of(database.app_url, subject_key=person, evidence=stones)
        assert found == Remaining(due=0, unclear=left)
    assert title(ann, Remaining(due=0, unclear=1)) == "Certificate of a recorded erasure"
    assert title(cyd, Remaining(due=0)) == "Certificate of a limited erasure"
    assert await memory.get("acme", record_id=fresh.record) == fresh.record
    # What was passed by is still there once nobody is held, and no release completes a sweep.
    async with Memory(PostgresStore(database.url("operator")), subject_pepper="pepper") as operator:
        await operator.release("acme", subject_key="bob")
    found = await remaining_of(database.app_url, subject_key="ann", evidence=ann)
    assert found == Remaining(due=0, unclear=1)
    await memory.close()


async def test_a_shared_record_that_is_back_is_not_certified_away(
    database: Database, memory: Memory
) -> None:
    for people in (["ann", "bob"], ["cyd"]):
        await memory.remember("acme", text="tea", subject_keys=people)
    for person in ("ann", "cyd"):
        await memory.forget("acme", subject_key=person)
    # As from a dump; and somebody who was remembered again.
    told = await memory.remember("acme", text="tea", subject_keys=["ann", "bob"])
    await memory.derive("acme", kind="summary", text="tea", sources=told)
    grow_older(database)
    await memory.remember("acme", text="tea", subject_keys="cyd")
    for person, left in (("ann", 1), ("cyd", 0)):
        stones = await evidence(memory, person)
        found = await remaining_of(database.app_url, subject_key=person, evidence=stones)
        assert found == Remaining(due=0, unclear=left)
    await memory.close()


async def test_another_person_than_that_of_the_tombstones_is_refused(
    database: Database, memory: Memory
) -> None:
    await memory.remember("acme", text="tea", subject_keys="ann")
    await memory.forget("acme", subject_key="ann")
    stones = await evidence(memory, "ann")
    for person in ("ann", "bob"):
        await memory.remember("acme", text="tea", subject_keys=person)
    grow_older(database)
    for misspelt in ("Ann", "bob"):
        with pytest.raises(InvalidInputError, match="subject_key") as caught:
            await remaining_of(database.app_url, subject_key=misspelt, evidence=stones)
        assert misspelt not in str(caught.value)
    found = await remaining_of(database.app_url, subject_key="ann", evidence=stones)
    assert found == Remaining(due=1)
    await memory.close()
