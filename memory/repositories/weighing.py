"""The terms of a question with their weights, and what a record gets for those that it holds.

As tables and queries of one statement; see :mod:`memory.repositories.words`.
"""

from __future__ import annotations

from typing import Final

from memory.ports import Query
from memory.repositories.scoring import Scoring

__all__ = ["TERMS", "WEIGHTS", "has_many", "held", "terms"]

# Postings to read before the bound is tried; a look-up costs about five read in order.
_BUDGET: Final = "greatest(10000, least(t.n / 4, 20000 + t.n / 20))"
# Counts that lexical adds up where they were not folded for long: it uses them for budgets only.
_DELTAS: Final = 5_000
# Terms to look up in each of a person's records; of more, the record's own words are read instead.
_MANY: Final = 16

# A person's records are few: no list is read, so that none needs counting.
TERMS: Final = """ranked as materialized (
        select k.term, 1 as most, 0 as mean from memory.each($4::text[]) as k (term)
    )"""
# To find a word among thousands in no time, whatever the planner takes their number for.
WEIGHTS: Final = """, weights as materialized (
        select jsonb_object_agg(k.term, k.most) as most, max(k.mean) as mean from ranked as k
    )"""


def terms(scoring: Scoring) -> str:
    """Return the tables ``totals`` and ``ranked``: the terms that occur, with their weights."""
    # To lexical only matters which terms are rare: it need not count to the end.
    capped = "" if scoring.exact_df else f"limit (select ({_BUDGET})::bigint from totals as t)"
    newest = "" if scoring.exact_df else f"order by c.delta_id desc limit {_DELTAS}"
    return f"""totals as materialized (
        select coalesce(sum(c.records), 0)::float8 as n, coalesce(sum(c.terms), 0)::float8 as terms
        from (
            select c.records, c.terms from memory.tenant_counts as c
            where c.tenant_key = s.t {newest}
        ) as c
    ), counted as materialized (
        select k.term, d.df
        from memory.each($4::text[]) as k (term)
        cross join lateral (
            select count(*) as df from (
                select from memory.postings as p
                where p.tenant_key = s.t and p.term = k.term {capped}
            ) as p
        ) as d
    ), ranked as materialized (
        select
            c.term,
            c.df,
            {scoring.most} as most,
            greatest(t.terms, 1) / greatest(t.n, 1) as mean,
            ln(c.df / greatest(t.n, c.df)) as share,
            sum(c.df) over (order by c.df, c.term) <= {_BUDGET} as rare
        from counted as c cross join totals as t
        where c.df > 0
    )"""


def held(scoring: Scoring, record: str, where: str = "true", *, many: bool = False) -> str:
    """Return what the record gets for the terms ``k`` of ``ranked`` that it holds, as ``got``.

    Each term is looked up; if there are ``many``, each word of the record in the table ``weights``.
    """
    if many:
        return f"""(
            select coalesce(sum({scoring.gain}), 0) as got
            from (
                select p.term, p.frequency, p.term_count from memory.postings as p
                where p.tenant_key = s.t and p.record_id = {record} offset 0
            ) as p
            cross join lateral (
                select
                    ((select w.most from weights as w) ->> p.term)::float8 as most,
                    (select w.mean from weights as w) as mean
                offset 0
            ) as k
            where k.most is not null
        )"""
    return f"""(
            select coalesce(sum({scoring.gain}), 0) as got
            from ranked as k
            cross join lateral (
                select p.frequency, p.term_count from memory.postings as p
                where p.tenant_key = s.t and p.term = k.term and p.record_id = {record} offset 0
            ) as p
            where {where}
        )"""


def has_many(query: Query) -> bool:
    """Say whether there are more terms than a record is looked for in each of."""
    return len(query.terms) > _MANY
