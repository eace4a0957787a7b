"""Finding records by meaning across a tenant: compared one by one, or through an HNSW index.

The candidates are counted first, from an index and no further than it matters: what the planner
estimates is wrong under row level security, where it takes any tenant for the same share of the
table. Few are all compared. For many there is the index, which holds the vectors of every tenant:
an *iterative* scan goes on until enough rows have passed the tenant and the filters. In relaxed
order it keeps what it would otherwise throw away, and a sort of more than was asked for puts it
right. It ends at a number of tuples all the same; then whoever called compares them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.ports import Query
from memory.repositories import hnsw
from memory.repositories.conditions import Shape, conditions, values
from memory.repositories.meaning import COMPARABLE
from memory.repositories.rows import COLUMNS, LINKS, hits
from memory.types import Hit, VectorIndex

__all__ = ["Across", "across", "depth", "steer"]

OTHERS: Final = 1_000
"""Most records of other models that are looked at, to say how many there are."""

SCAN: Final = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "40000",
    "hnsw.scan_mem_multiplier": "8",
}
"""How an index is scanned, besides ``hnsw.ef_search``: set with each search, whatever is preset."""

STEER: Final = {
    "enable_indexscan": "on",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    # Not "jit": asyncpg switches that for the session where it finds it off in a transaction.
    "jit_above_cost": "-1",
}


def _set(settings: dict[str, str]) -> str:
    return ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())


async def steer(connection: AsyncConnection) -> None:
    """Keep the planner to the index for the rest of the transaction.

    It would sort the tenant where it takes it for small. Connections of our own are opened so.
    """
    await fetch(connection, f"select {_set(STEER)}")


def depth(limit: int) -> int:
    """Return how many rows are fetched from an index for so many hits."""
    return max(100, 4 * limit)


def _ef_search(limit: int) -> int:
    """Return the size of the list that a scan works with; pgvector takes 1,000 at most."""
    return min(1_000, max(200, depth(limit)))


@dataclass(frozen=True, kw_only=True)
class Across:
    """What was found across a tenant.

    ``exact`` says that every candidate was compared. Else the hits came through the index, or are
    None: it is gone, or its scan ended before there were enough. ``skipped`` were embedded by
    another model; with ``more`` they are at least so many.
    """

    hits: list[Hit] | None
    exact: bool
    skipped: int
    more: bool


# As ranges of one index, so that neither count reads past what it counts.
_LENGTH: Final = "r.embedding_dims {} cardinality($4::real[])"
_SAME: Final = {
    True: (
        f"{_LENGTH.format('=')} and r.embedding_model = $5::text",
        f"{_LENGTH.format('=')} and r.embedding_model is null",
    ),
    False: (f"{_LENGTH.format('=')} and $5::text is null",),
}
_OTHER: Final = {
    True: (
        _LENGTH.format("<"),
        _LENGTH.format(">"),
        f"{_LENGTH.format('=')} and r.embedding_model < $5::text",
        f"{_LENGTH.format('=')} and r.embedding_model > $5::text",
    ),
    False: (_LENGTH.format("<"), _LENGTH.format(">")),
}
# Parameters: 1 tenant, 2 now, 3 limit, 4 vector, 5 model, 6 least score, 7 most to compare, and
# with an index 8 its name, 9 rows to fetch, 10 the size of the scan's list; then the filters.
_FILTERS: Final = {False: 8, True: 11}


def _counted(shape: Shape, named: bool) -> str:
    """Return what counts the comparable records within the filters, to one more than ``$7``."""
    each = " union all ".join(
        f"""(
            select from memory.records as r
            where r.tenant_key = s.t and {same} and {conditions(shape, first=_FILTERS[True])}
            limit $7::integer + 1
        )"""
        for same in _SAME[named]
    )
    return f"(select count(*) from (select from ({each}) as e limit $7::integer + 1) as q)"


def _others(shape: Shape, named: bool, first: int) -> str:
    """Return the first records of other models, and which of them are within the filters."""
    each = " union all ".join(
        f"""(
            select {conditions(shape, first=first)} as within from memory.records as r
            where r.tenant_key = s.t and {other} limit {OTHERS}
        )"""
        for other in _OTHER[named]
    )
    return f"(select e.within from ({each}) as e limit {OTHERS})"


def _compared(shape: Shape, extension: str, first: int) -> str:
    """Return the nearest of all candidates, if they are few."""
    return f"""(
        with c as materialized (
            select r.record_id, r.embedding::{extension}.vector operator({extension}.<=>)
                (select $4::real[]::{extension}.vector) as distance
            from memory.records as r
            where r.tenant_key = s.t and n.few and {COMPARABLE}
                and {conditions(shape, first=first)}
        )
        select c.record_id, 1 - c.distance as score, null::bigint as fetched
        from c where $6::float8 is null or 1 - c.distance >= $6
        order by c.distance, c.record_id desc
        limit $3
    )"""


def _scanned(shape: Shape, extension: str, halfvec: bool, size: int) -> str:
    """Return the nearest that the index yields, if the candidates are many."""
    held = hnsw.indexed("r.embedding", extension, size, halfvec=halfvec)
    asked = hnsw.indexed("$4::real[]", extension, size, halfvec=halfvec)
    return f"""(
        with c as materialized (
            select r.record_id, r.embedding::{extension}.vector({size}) operator({extension}.<=>)
                (select $4::real[]::{extension}.vector({size})) as distance
            from memory.records as r
            where r.tenant_key = s.t and not n.few and n.usable and r.embedding_dims = {size}
                and coalesce(r.embedding_model = $5::text, true)
                and {conditions(shape, first=_FILTERS[True])}
            order by {held} operator({extension}.<=>) (select {asked})
            limit $9
        )
        select c.record_id, 1 - c.distance as score, (select count(*) from c as every) as fetched
        from c where $6::float8 is null or 1 - c.distance >= $6
        -- "+ 0": the planner takes these rows for sorted, which in relaxed order they are not.
        order by c.distance + 0, c.record_id desc
        limit $3
    )"""


_USABLE: Final = """(
    select i.indisvalid from pg_catalog.pg_index as i
    where i.indexrelid = pg_catalog.to_regclass('memory.' || quote_ident($8::text))
)"""


@lru_cache
def _across(shape: Shape, extension: str, named: bool, index: tuple[bool, int] | None) -> str:
    first = _FILTERS[index is not None]
    settings, counted, few, usable = "", "0", "$7::integer is null", "null::boolean"
    found = _compared(shape, extension, first)
    if index is not None:
        settings = f", {_set(SCAN)}, set_config('hnsw.ef_search', $10::text, true)"
        counted, few, usable = _counted(shape, named), "x.comparable <= $7", _USABLE
        found += f" union all {_scanned(shape, extension, *index)}"
    return f"""
with s as materialized (select set_config('app.current_tenant', $1, true) as t{settings}),
n as materialized (
    select {few} as few, x.usable, x.skipped, x.examined from s
    cross join lateral (
        select
            {counted} as comparable,
            {usable} as usable,
            count(*) filter (where o.within) as skipped,
            count(*) as examined
        from {_others(shape, named, first)} as o
        limit 1
    ) as x
)
select n.few, n.skipped, n.examined, h.score, h.fetched, {COLUMNS}, {LINKS}
from s
cross join n
left join lateral ({found}) as h on true
left join lateral (
    select r.* from memory.records as r
    where r.tenant_key = s.t and r.record_id = h.record_id offset 0
) as r on true
"""


async def across(
    connection: AsyncConnection,
    tenant_key: str,
    query: Query,
    extension: str,
    index: VectorIndex | None = None,
    few: int | None = None,
) -> Across:
    """Compare all candidates; where there is an index, only if they are ``few`` or fewer."""
    through = None if index is None else (index.halfvec, index.dimensions)
    wanted = depth(query.limit)
    rows = await fetch(
        connection,
        _across(Shape.of(query.filters), extension, query.embedding_model is not None, through),
        tenant_key,
        query.filters.now,
        query.limit,
        query.embedding,
        query.embedding_model,
        query.min_score,
        few,
        *([] if index is None else [index.name, wanted, str(_ef_search(query.limit))]),
        *values(query.filters),
    )
    found = [row for row in rows if row.record_id is not None]
    enough = len(found) >= query.limit and found[0].fetched == wanted
    return Across(
        hits=hits(tenant_key, found) if rows[0].few or enough else None,
        exact=rows[0].few,
        skipped=rows[0].skipped,
        more=rows[0].examined == OTHERS,
    )
