"""Clustered vectors by the thousand, made on the server: for the tests and benchmarks of recall.

Every vector is a centre and a few steps from it, both in a space of few latent dimensions, as
embeddings of texts are. The same seed gives the same vectors.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from rawsql import Connection

LATENT: Final = 24
LEVELS: Final = 16
STEPS: Final = 6
STEP_SIZE: Final = 0.35
_NORMAL: Final = "sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())"


async def prepare(
    connection: Connection, dimensions: int, *, centres: int = 300, seed: float = 0.5
) -> None:
    """Make the centres, and steps along each latent direction, as temporary tables."""
    await connection.execute(f"select setseed({seed})")
    await connection.execute(f"""
        set max_parallel_workers_per_gather = 0;
        create temp table direction as
        select k, array(
            select {_NORMAL} from generate_series(1, {dimensions}) as d where k is not null
        ) as v
        from generate_series(0, {LATENT} - 1) as k;
        create temp table step as
        select k, l, array(select x.x * g.g from unnest(v) with ordinality as x (x, n)
            order by n)::real[]::vector({dimensions}) as v
        from direction cross join lateral (
            select l, {_NORMAL} as g from generate_series(0, {LEVELS} - 1) as l where k is not null
        ) as g;
        create temp table centre as
        select c, (
            select sum(s.v) from (
                select k, floor(random() * {LEVELS})::integer as l
                from generate_series(0, {LATENT} - 1) as k where c is not null
            ) as p join step as s using (k, l)
        ) as v
        from generate_series(0, {centres} - 1) as c;
        update step set v = array(select x.x * {STEP_SIZE} from unnest(v::real[])
            with ordinality as x (x, n) order by n)::real[]::vector({dimensions});
        create index on step (k, l);
        create index on centre (c);
        analyze step;
        analyze centre;
    """)


def vectors(count: int, centres: int = 300) -> str:
    """Return a query of so many rows ``n`` (from 1) and ``v`` (real[]), after :func:`prepare`."""
    picked = ", ".join(
        f"floor(random() * {LATENT})::integer as k{i}, floor(random() * {LEVELS})::integer as l{i}"
        for i in range(STEPS)
    )
    joins = " ".join(
        f"join step as s{i} on s{i}.k = g.k{i} and s{i}.l = g.l{i}" for i in range(STEPS)
    )
    total = " + ".join(["c.v", *(f"s{i}.v" for i in range(STEPS))])
    return f"""
        select g.n, ({total})::real[] as v
        from (
            select n, floor(random() * {centres})::integer as c, {picked}
            from generate_series(1, {count}) as n offset 0
        ) as g
        join centre as c on c.c = g.c {joins}
    """


async def fill(
    connection: Connection,
    shares: Mapping[str, float],
    count: int,
    *,
    model: str | None = "clusters",
    centres: int = 300,
    first: int = 0,
) -> None:
    """Write so many records, dealt out to the tenants by their shares, as a superuser.

    Triggers are passed by, as a bulk load does, so they are about nobody. The ids count from
    ``first``; texts are ``record n``, kinds ``episodic`` but for each tenth, times a minute apart.
    """
    bounds, tenants = [], list(shares)
    total = 0.0
    for share in shares.values():
        total += share
        bounds.append(total)
    cases = " ".join(
        f"when place < {bound} then '{tenant}'"
        for bound, tenant in zip(bounds, tenants, strict=True)
    )
    await connection.execute("set session_replication_role = replica")
    await connection.execute(f"""
        insert into memory.records (
            tenant_key, record_id, kind, text, metadata, embedding, embedding_model, occurred_at
        )
        select
            case {cases} end,
            ('01900000-0000-7000-8000-' || lpad(to_hex({first} + n), 12, '0'))::uuid,
            case when n % 10 = 0 then 'profile' else 'episodic' end,
            'record ' || n,
            jsonb_build_object('n', n % 100),
            v,
            {"null" if model is None else f"'{model}'"},
            '2024-01-01'::timestamptz + n * interval '1 minute'
        from (select w.*, (w.n * 0.618033988749895) % 1 as place from ({vectors(count, centres)})
            as w) as w
    """)
    await connection.execute("set session_replication_role = origin")


def shifted(vector: list[float], chance: random.Random, by: float = 0.3) -> list[float]:
    """Return a question near a stored vector."""
    return [value + chance.gauss(0, by) for value in vector]
