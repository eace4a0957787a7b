"""Holds, blocks and deferred erasures survive a dump and its restore, whole or data alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from memory import LegalHoldError, Memory, SubjectBlockedError
from memory.stores.postgres import PostgresStore
from rawsql import Connection, acting, damage, living, refused
from servers import Database, Postgres, client_programs

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"
PARTS = {
    "whole": ((), ()),
    # The installation and the version are there already; what a restore loads is as it was.
    "data alone": (
        (
            "--data-only",
            "--exclude-table=memory.installation",
            "--exclude-table=memory.alembic_version",
        ),
        ("--disable-triggers",),
    ),
}


@pytest.fixture(params=["server", "postgres15"])
def place(request: pytest.FixtureRequest) -> Postgres:
    server: Postgres = request.getfixturevalue(request.param)
    return server


def run(place: Postgres, program: str, *arguments: str | Path) -> None:
    command = [client_programs(place.version) / program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def restored(place: Postgres, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database to restore into: empty, or migrated for data alone."""
    with place.empty() if request.param == "whole" else place.migrated() as database:
        yield database


async def furnish(database: Database) -> dict[str, Any]:
    """Ann is held and waits for her erasure, Bob is blocked, Cid is neither."""
    memory = Memory(PostgresStore(database.app_url), redactor=None, subject_pepper="pepper")
    told = {}
    for person in ("ann", "bob", "cid"):
        told[person] = (await memory.remember("shop", text="x", subject_keys=person)).record
    made = await memory.derive("shop", kind="summary", text="x", sources=[told["ann"], told["cid"]])
    await memory.hold("shop", subject_key="ann")
    with pytest.raises(LegalHoldError) as caught:
        await memory.forget("shop", subject_key="ann")
    await memory.forget("shop", subject_key="bob", block_future=True)
    await memory.close()
    return {
        "held": {told["ann"].record_id, made.record.record_id},
        "cid": told["cid"].record_id,
        "erasure": caught.value.receipt.erasure_id,
    }


@pytest.mark.parametrize(
    ("restored", "parts"), [(name, name) for name in PARTS], indirect=["restored"]
)
async def test_what_was_decided_is_there_after_a_restore(
    place: Postgres, restored: Database, parts: str, tmp_path: Path
) -> None:
    dumping, loading = PARTS[parts]
    file = tmp_path / "dump"
    with place.migrated() as database:
        there = await furnish(database)
        run(
            place, "pg_dump", "-Fc", "--schema=memory", *dumping, "-f", file, database.superuser_url
        )
    run(place, "pg_restore", *loading, "-d", restored.superuser_url, file)
    superuser = await asyncpg.connect(restored.superuser_url)
    try:
        await proved(restored, superuser, there)
    finally:
        await superuser.close()


async def proved(restored: Database, superuser: Connection, there: dict[str, Any]) -> None:
    rows = await superuser.fetch("select record_id from memory.records where held")
    assert {row["record_id"] for row in rows} == there["held"]
    for record_id in (*there["held"], there["cid"]):
        with refused("ME003"):
            async with acting(superuser, "shop"):
                await superuser.execute(DELETE, "shop", record_id)
    memory = Memory(PostgresStore(restored.operator_url), redactor=None, subject_pepper="pepper")
    with pytest.raises(SubjectBlockedError):
        await memory.remember("shop", text="x", subject_keys="bob")
    later = (await memory.remember("shop", text="x", subject_keys="ann")).record
    with pytest.raises(LegalHoldError):
        await memory.forget_record("shop", record_id=later)
    receipts = (await memory.release("shop", subject_key="ann")).receipts
    assert there["erasure"] in {receipt.erasure_id for receipt in receipts}
    assert sum(receipt.counts.records for receipt in receipts) == 3
    assert await living(superuser, "shop") == {there["cid"]}
    await memory.readmit("shop", subject_key="bob")
    await memory.remember("shop", text="x", subject_keys="bob")
    await memory.close()
    assert await damage(superuser, "shop") == []
