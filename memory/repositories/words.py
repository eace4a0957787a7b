"""Recall by words: ``lexical`` and ``keyword`` (BM25), exact, over the same postings.

A term's postings are read by an index-only scan and scores are added up before any record is looked
at: records are joined lazily, best first, until enough of them are within the filters. What the
common terms could add is bounded (Turtle and Flood, "Query evaluation: strategies and
optimizations", 1995), so that their postings need not be read:

- ``found``: the rarest terms' postings, up to a budget, added up by record.
- ``top``: the most promising of these, completed by look-ups in the other lists, visible ones only:
  the score of the last is one that the answer reaches or exceeds.
- If that is more than the unread lists together can give, a record without a rare term is out, and
  those that can still reach it are completed by look-ups (``bounded``). Else the other lists are
  read as well (``exhaustive``). Where all terms are rare, all has been read (``read``).
- ``whole``, for ``lexical``: where many records hold all the terms, the newest of them are the
  answer; the shortest list is walked backwards.

Which way was taken comes with the rows. It is all one statement: a bound that holds in one snapshot
proves nothing about another.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.ports import Query
from memory.repositories.conditions import Shape, candidates, values
from memory.repositories.rows import answer, hits
from memory.repositories.scoring import LEXICAL, Scoring
from memory.repositories.weighing import TERMS, WEIGHTS, has_many, held, terms
from memory.types import Hit

__all__ = ["by_words", "found_by_words", "parameters"]

_LOOK_UP: Final = 5
_SEEDS: Final = "least(greatest(128, 2 * $3), 4000 / greatest(1, (select rest.n from rest)))"
# Records to walk through at most, where so few of them are expected to hold what is looked for.
_WALK: Final = 20_000
_STEPS: Final = 5_000
_RAREST: Final = "(select k.term from ranked as k order by k.df, k.term limit 1)"
# Slack for sums that were added up in another order.
_SLACK: Final = "1e-8::float8"


def _scan(columns: str) -> str:
    return f"""
        cross join lateral (
            select p.record_id{columns} from memory.postings as p
            where p.tenant_key = s.t and p.term = k.term offset 0
        ) as p"""


def _visible(shape: Shape, record: str, first: int) -> str:
    return f"""(
            select from {candidates(shape, first=first)} and r.record_id = {record} offset 0
        )"""


def _whole(visible: str) -> str:
    """Return the table ``whole``: the newest records that hold every term, if they are many."""
    return f"""whole as materialized (
        select f.record_id, (select count(*) from ranked)::float8 as got
        from {_RAREST} as k
        cross join lateral (
            select p.record_id from memory.postings as p
            where p.tenant_key = s.t and p.term = k.term
            order by p.record_id desc limit {_WALK}
        ) as f
        cross join lateral {visible} as v
        where (select ln($3) - sum(k.share) + min(k.share) from ranked as k) <= ln({_STEPS})
            and not exists (
                select from ranked as k
                where not exists (
                    select from memory.postings as p
                    where p.tenant_key = s.t and p.term = k.term and p.record_id = f.record_id
                    offset 0
                )
                offset 0
            )
        limit $3
    )"""


def _bounds(scoring: Scoring, visible: str) -> str:
    """Return the tables up to ``verdict``, which says how the rest of the answer is found."""
    return f"""rest as materialized (
        select count(*) as n, coalesce(sum(k.most), 0) as most from ranked as k where not k.rare
    ), found as materialized (
        select p.record_id, sum({scoring.gain}) as got
        from ranked as k {_scan(", p.frequency, p.term_count")}
        where k.rare
        group by p.record_id
    ), seed as materialized (
        (
            select f.record_id, f.got from found as f
            order by f.got desc, f.record_id desc limit {_SEEDS}
        )
        union all
        select p.record_id, 0
        from {_RAREST} as k
        cross join lateral (
            select p.record_id from memory.postings as p
            where p.tenant_key = s.t and p.term = k.term
            order by p.record_id desc limit {_SEEDS}
        ) as p
        where not exists (select from ranked as k where k.rare)
    ), top as materialized (
        select f.got, f.record_id
        from (
            select f.record_id, f.got + more.got as got
            from seed as f
            cross join lateral {held(scoring, "f.record_id", "not k.rare")} as more
            order by f.got + more.got desc, f.record_id desc offset 0
        ) as f
        cross join lateral {visible} as v
        order by f.got desc, f.record_id desc
        limit $3
    ), least as materialized (
        select
            greatest(t.got, asked.got) as got,
            case when asked.got > t.got then null else t.record_id end as record_id
        from (select {scoring.least} as got) as asked
        left join (
            select top.got, top.record_id from top
            where (select count(*) from top) = $3
            order by top.got, top.record_id limit 1
        ) as t on true
    ), reach as materialized (
        select f.record_id, f.got
        from found as f cross join least as l cross join rest
        where {_reaches("f.got + rest.most", "f.record_id")}
    ), verdict as materialized (
        select case
            when (select count(*) from whole) = $3 then 'whole'
            when (select rest.n from rest) = 0 then 'read'
            when (select l.got > rest.most + {_SLACK} from least as l cross join rest)
                and (select count(*) from reach) * {_LOOK_UP} * (select rest.n from rest)
                    <= (select sum(k.df) from ranked as k)
                then 'bounded'
            else 'exhaustive'
        end as way
    )"""


def _reaches(got: str, record: str) -> str:
    """Return whether a record with this sum, or bound of it, can be among the best: ``l`` is least.

    One that is as good as the last of ``top`` and older cannot.
    """
    return f"""(
            {got} > l.got + {_SLACK}
            or {got} >= l.got - {_SLACK} and (l.record_id is null or {record} >= l.record_id)
        )"""


def _sums(scoring: Scoring) -> str:
    """Return the records that can be in the answer, each with what it got."""
    exhaustive = "(select v.way from verdict as v) = 'exhaustive'"
    return f"""
            select w.record_id, w.got from whole as w
            where (select v.way from verdict as v) = 'whole'
            union all
            select f.record_id, f.got from found as f
            where (select v.way from verdict as v) = 'read'
            union all
            select f.record_id, f.got + more.got as got
            from reach as f
            cross join lateral {held(scoring, "f.record_id", "not k.rare")} as more
            where (select v.way from verdict as v) = 'bounded'
            union all
            select p.record_id, p.got
            from (
                select p.record_id, sum(p.got) as got
                from (
                    select f.record_id, f.got from found as f where {exhaustive}
                    union all
                    select p.record_id, {scoring.gain} as got
                    from ranked as k {_scan(", p.frequency, p.term_count")}
                    where not k.rare and {exhaustive}
                ) as p
                group by p.record_id
            ) as p
            cross join least as l
            where {exhaustive} and (l.got is null or {_reaches("p.got", "p.record_id")})"""


def found_by_words(
    shape: Shape, scoring: Scoring, *, first: int, many: bool = False
) -> tuple[str, str]:
    """Return the tables, and the query for the best ``$3`` records: id, score and way.

    ``$4`` are the terms, ``$5`` the least score or null; filters count from ``first``.
    """
    if shape.narrow:
        score = held(scoring, "r.record_id", many=many)
        tables, way = TERMS if scoring is LEXICAL else terms(scoring), "'person'"
        matched = f"""
            select x.record_id, {scoring.final} as score
            from (
                select r.record_id, n.got
                from {candidates(shape, first=first, joined=f" cross join lateral {score} as n")}
                    and n.got > 0
            ) as x"""
    else:
        visible = _visible(shape, "f.record_id", first)
        whole = _whole(visible) if scoring is LEXICAL else _NONE
        tables = f"{terms(scoring)}, {whole}, {_bounds(scoring, visible)}"
        matched = f"""
            select h.record_id, h.score
            from (
                select x.record_id, {scoring.final} as score from ({_sums(scoring)}) as x
                order by score desc, x.record_id desc offset 0
            ) as h
            cross join lateral {_visible(shape, "h.record_id", first)} as v"""
        way = "(select v.way from verdict as v)"
    if many:
        tables += WEIGHTS
    return (
        tables,
        f"""
    select m.record_id, m.score, {way} as way
    from ({matched}) as m
    where $5::float8 is null or m.score >= $5
    order by m.score desc, m.record_id desc
    limit $3""",
    )


_NONE: Final = "whole as (select null::uuid as record_id, 0::float8 as got where false)"


@lru_cache
def _by_words(shape: Shape, scoring: Scoring, many: bool) -> str:
    tables, best = found_by_words(shape, scoring, first=6, many=many)
    return answer(f"with {tables} {best}", "way")


async def by_words(
    connection: AsyncConnection, tenant_key: str, query: Query, scoring: Scoring
) -> tuple[list[Hit], str]:
    """Return the best records by their words, and which way they were found."""
    shape = Shape.of(query.filters)
    statement = _by_words(shape, scoring, shape.narrow and has_many(query))
    rows = await fetch(connection, statement, *parameters(tenant_key, query))
    return hits(tenant_key, rows), rows[0].way if rows else ""


def parameters(tenant_key: str, query: Query, *more: Any) -> list[Any]:
    """Return ``$1`` to ``$5``, what a statement has ``more``, and the filters."""
    asked = [tenant_key, query.filters.now, query.limit, list(query.terms), query.min_score]
    return [*asked, *more, *values(query.filters)]
