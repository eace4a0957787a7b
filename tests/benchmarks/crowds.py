"""A database of many tenants' vectors for the benchmark of meaning, and the raw queries."""

from __future__ import annotations

import random
import statistics
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from memory import Memory, PostgresStore, Recall
from memory.repositories import across
from report import Times

# Otherwise only pytest knows this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
import clusters
from servers import Database

SHARES = {"t0.1": 0.001, "t1": 0.01, "t10": 0.1, "t90": 0.889}
LIMIT = 10
LINKS = """
insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
select r.tenant_key, r.record_id, p.key, encode(sha256(p.key::bytea), 'hex')
from (select *, 'person:' || hashtext(record_id::text) % 5000 as key from memory.records) as r
cross join lateral (select r.key) as p (key)
"""
PLAIN = """
insert into memory.records (tenant_key, record_id, text, occurred_at)
select 't90', gen_random_uuid(), 'record ' || n, '2024-01-01'::timestamptz + n * interval '1 s'
from generate_series(1, $1::integer) as n
"""
NEAREST = """
with c as materialized (
    select record_id, text, embedding::vector operator(<=>) (select $2::real[]::vector) as distance
    from memory.records where tenant_key = $1 and embedding_dims = {size}
) select record_id, text, 1 - distance as score from c order by distance limit {limit}
"""
SCANNED = """
with c as materialized (
    select record_id, text,
        embedding::vector({size}) operator(<=>) (select $2::real[]::vector({size})) as distance
    from memory.records where tenant_key = $1 and embedding_dims = {size}
    order by embedding::vector({size}) operator(<=>) (select $2::real[]::vector({size}))
    limit {depth}
) select record_id, text, 1 - distance as score from c order by distance + 0 limit {limit}
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything; the times of a quick run mean nothing."""

    records: int = 1_000_000
    vectors: int = 200_000
    dimensions: int = 384
    few: int = 10_000
    centres: int = 3_000
    questions: int = 40
    calls: int = 200
    churned: int = 20_000
    rounds: int = 10
    inserts: int = 200


QUICK = Plan(
    records=4_000,
    vectors=2_000,
    dimensions=16,
    few=500,
    centres=40,
    questions=3,
    calls=4,
    churned=400,
    rounds=2,
    inserts=4,
)


class Place:
    """A database, a memory in it, and connections beside it."""

    def __init__(self, database: Database, plan: Plan) -> None:
        self.database = database
        self.plan = plan
        self.memory = Memory(PostgresStore(database.app_url), redactor=None, subject_pepper="bench")

    async def __aenter__(self) -> Place:
        self.superuser = await asyncpg.connect(self.database.superuser_url)
        self.app = await asyncpg.connect(self.database.app_url)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.memory.close()
        await self.app.close()
        await self.superuser.close()

    async def fill(self, records: int, vectors: int) -> None:
        """Write records, so many of them with vectors, each about one of 5,000 people."""
        plan = self.plan
        await clusters.prepare(self.superuser, plan.dimensions, centres=plan.centres)
        await clusters.fill(self.superuser, SHARES, vectors, centres=plan.centres, model=None)
        await self.superuser.execute("set session_replication_role = replica")
        await self.superuser.fetch(PLAIN, records - vectors)
        await self.superuser.execute(LINKS)
        await self.superuser.execute("set session_replication_role = origin")
        await self.superuser.execute("vacuum (analyze)")

    async def questions(self, tenant: str, count: int) -> list[array[float]]:
        """Return questions near stored vectors of the tenant."""
        chance = random.Random(3)  # noqa: S311 - the same in every run
        rows = await self.superuser.fetch(
            "select embedding from memory.records where tenant_key = $1"
            " and embedding_dims = $2 order by md5(record_id::text) limit $3",
            tenant,
            self.plan.dimensions,
            count,
        )
        return [array("f", clusters.shifted(row["embedding"], chance)) for row in rows]

    async def raw(self, tenant: str, vector: array[float], *, scanned: bool) -> list[Any]:
        """Search as recall did: by the index with its settings, or by comparing all."""
        depth = across.depth(LIMIT)
        settings = {"app.current_tenant": tenant, "plan_cache_mode": "force_generic_plan"}
        if scanned:
            settings |= {**across.SCAN, **across.STEER, "hnsw.ef_search": "200"}
        sets = ", ".join(f"set_config('{k}', '{v}', true)" for k, v in settings.items())
        sql = SCANNED if scanned else NEAREST
        async with self.app.transaction():
            await self.app.fetch(f"select {sets}")
            return list(
                await self.app.fetch(
                    sql.format(size=self.plan.dimensions, depth=depth, limit=LIMIT), tenant, vector
                )
            )

    async def recalled(self, tenant: str, vectors: list[array[float]]) -> dict[str, Any]:
        """Return recall@10 and cost beside raw for these questions."""
        times, shares, through = Times(), [], 0
        first = await self.memory.recall(tenant, embedding=vectors[0], limit=LIMIT)
        await self.raw(tenant, vectors[0], scanned=not first.exact)
        for number, vector in enumerate(vectors):
            ours = times.take("ours", self.memory.recall(tenant, embedding=vector, limit=LIMIT))
            raw = times.take("raw", self.raw(tenant, vector, scanned=not first.exact))
            if number % 2:
                await raw
            found: Recall = await ours
            if not number % 2:
                await raw
            through += not found.exact
            exact = {r["record_id"] for r in await self.raw(tenant, vector, scanned=False)}
            right = exact & {hit.record.record_id for hit in found.hits}
            shares.append(len(right) / len(exact))
        return {
            "recall": statistics.mean(shares),
            "through_index": through / len(vectors),
            "ours_ms": times.median("ours") * 1e3,
            "raw_ms": times.median("raw") * 1e3,
            "ratio": times.ratio("ours", "raw"),
        }
