"""What must hold once the load has ended: every promise, looked for past the library."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg

import memory
from calling import ADAPTERS, BYSTANDER, LONGEST_LIFE, PEPPER, TENANTS, FileIndex
from ground import Ground
from ledger import MARKER, Account
from memory import LegalHoldError, Memory, PartialErasureError, PostgresStore, Purged
from memory.fingerprint import subject_hash
from observed import chain_faults
from rawsql import TABLES
from stores import broken_rules, image

STILL = "bystanders"
_OWN = (
    "select t::text as row from memory.{table} as t where t.tenant_key = $1 and t.{column} in"
    " (select l.record_id from memory.record_subjects as l where l.tenant_key = $1"
    " and l.subject_key = $2 and not l.inherited) order by 1"
)


async def bystanders(connection: Any) -> dict[str, Any]:
    """The rows of a tenant that nobody works in, and in the others those of one person."""
    found: dict[str, Any] = {STILL: await image(connection, STILL)}
    for tenant in TENANTS:
        for table in ("records", "record_subjects", "postings"):
            sql = _OWN.format(table=table, column="record_id")
            rows = await connection.fetch(sql, tenant, BYSTANDER)
            found[f"{tenant} {table}"] = [row["row"] for row in rows]
    return found


async def prepare(ground: Ground) -> dict[str, Any]:
    """Remember the bystanders; return their rows."""
    async with Memory(PostgresStore(ground.app_url), subject_pepper=PEPPER) as store:
        for tenant in (*TENANTS, STILL):
            items = [
                {
                    "text": f"the bystander said {n}",
                    "subject_keys": BYSTANDER,
                    "embedding": [n, 1.0],
                }
                for n in range(5)
            ]
            told = await store.remember_many(tenant, items=items)
            if tenant == STILL:
                made = await store.derive(
                    tenant, kind="summary", text="all the bystander said", sources=told
                )
                await store.forget(tenant, subject_key="nobody")
                assert made.record.sources
    connection = await asyncpg.connect(ground.superuser_url)
    try:
        return await bystanders(connection)
    finally:
        await connection.close()


async def settle(ground: Ground, folder: Path, found: Account) -> list[str]:
    """Finish what was cut off: holds, erasures, retention, purges; return what stays undone."""
    indexes = [FileIndex(n, folder / "indexes", random.Random(0), fails=0) for n in ADAPTERS]  # noqa: S311
    plugs: dict[str, Any] = {"indexes": indexes, "subject_pepper": PEPPER}
    undone = []
    async with (
        Memory(PostgresStore(ground.app_url), **plugs) as app,
        Memory(PostgresStore(ground.operator_url), **plugs) as operator,
    ):
        for mark in sorted(found.holds):
            await operator.release(found.tenants[mark], subject_key=f"customer:{mark}")
        for mark in sorted(found.erasing - found.erased):
            try:
                await app.forget(found.tenants[mark], subject_key=f"customer:{mark}")
            except (LegalHoldError, PartialErasureError) as error:
                undone.append(f"an erasure stays undone: {type(error).__name__}")
            found.erased.add(mark)
        await asyncio.sleep(LONGEST_LIFE + 0.5)
        for tenant in TENANTS:
            await app.expire(tenant)
            purged: Purged = await app.purge_outstanding(tenant)
            undone += [f"{adapter} still owes purges" for adapter in purged.outstanding]
    return undone


async def judge(
    ground: Ground, folder: Path, found: Account, before: dict[str, Any]
) -> dict[str, list[str]]:
    """Every promise and what breaks it: nothing may."""
    connection = await asyncpg.connect(ground.superuser_url)
    try:
        report = await memory.check(ground.owner_url, subject_pepper=PEPPER)
        properties = await memory.verify_install(ground.superuser_url)
        rules = await broken_rules(connection)
        return {
            "errors and answers in the clients": found.violations,
            "memory.check": [f"{it.code}: {it.count}" for it in report.faults],
            "memory.verify_install": [it.property for it in properties if not it.ok],
            "rules of the schema": [f"{rule}: {rows[:3]}" for rule, rows in rules.items()],
            "chain of tombstones": await _chains(connection),
            "nothing of the erased in any column": await unforgotten(connection, found),
            "everybody erased has a tombstone": await _evidence(connection, found),
            "everything acknowledged stands": await unwritten(connection, found),
            "debts and indexes": await _debts(connection, folder, found),
            "bystanders": [
                name
                for name, rows in (await bystanders(connection)).items()
                if rows != before[name]
            ],
        }
    finally:
        await connection.close()


async def _chains(connection: Any) -> list[str]:
    faults = []
    for tenant in (*TENANTS, STILL):
        stones = await connection.fetch(
            "select * from memory.tombstones where tenant_key = $1 order by seq", tenant
        )
        head = await connection.fetchrow(
            "select seq, digest from memory.chain_heads where tenant_key = $1", tenant
        )
        faults += chain_faults(tenant, map(dict, stones), tuple(head) if head else (0, ""))
    return faults


async def unforgotten(connection: Any, found: Account) -> list[str]:
    """Every marker that stands anywhere is of somebody who is still remembered."""
    dead, faults = found.dead(), []
    for table in TABLES:
        rows = await connection.fetch(
            "select distinct m.found[1] as mark from memory." + table + " as t"
            " cross join lateral regexp_matches(t::text, $1, 'g') as m (found)",
            f"({MARKER})",
        )
        there = {row["mark"] for row in rows}
        unknown = there - found.texts.keys() - found.tenants.keys() - found.artefacts.keys()
        faults += [f"{table} holds {mark}" for mark in sorted(there & dead)]
        faults += [f"{table} holds {mark}, which nobody wrote" for mark in sorted(unknown)]
    return faults[:20]


async def _evidence(connection: Any, found: Account) -> list[str]:
    rows = await connection.fetch("select distinct subject_hash from memory.tombstones")
    hashes = {row["subject_hash"] for row in rows}
    return [
        mark
        for mark in sorted(found.erased)
        if subject_hash(found.tenants[mark], f"customer:{mark}", PEPPER.encode()) not in hashes
    ]


async def unwritten(connection: Any, found: Account) -> list[str]:
    """What a client was told is stored is stored, in its own words, about its own people."""
    rows = await connection.fetch(
        "select r.record_id::text as id, r.tenant_key, r.text, array_agg(l.subject_key) as people"
        " from memory.records as r join memory.record_subjects as l using (tenant_key, record_id)"
        " group by r.tenant_key, r.record_id"
    )
    stored = {(row["tenant_key"], row["id"]): (row["text"], row["people"]) for row in rows}
    faults = []
    for mark, text in found.standing().items():
        there, people = stored.get((text.tenant, text.record or ""), ("", []))
        if mark not in there or not {f"customer:{it}" for it in text.people} <= set(people):
            faults.append(f"{mark} is lost")
    return faults[:20]


async def _debts(connection: Any, folder: Path, found: Account) -> list[str]:
    """Nothing is owed; an index holds what is registered, and nothing else."""
    owed = await connection.fetchval("select count(*) from memory.purges")
    rows = await connection.fetch("select distinct adapter, artefact_id from memory.artefacts")
    registered = {(row["adapter"], row["artefact_id"]) for row in rows}
    files = {(it.parent.name, it.name) for it in (folder / "indexes").glob("*/*")}
    faults = [f"{owed} purges are owed"] if owed else []
    faults += [f"{item} is in {adapter} and not registered" for adapter, item in files - registered]
    gone: Sequence[str] = [item for _, item in registered if found.artefacts[item] in found.erased]
    return (faults + [f"{item} is registered for nobody" for item in gone])[:20]
