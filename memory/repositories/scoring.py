"""How terms are weighed and added up, as SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memory.ranking import BM25_B, BM25_K1

__all__ = ["KEYWORD", "LEXICAL", "Scoring"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scoring:
    """A way to score as SQL: for a term ``k``, its posting ``p`` and the tenant's totals ``t``.

    ``most`` is what a term can give at most, ``gain`` what a posting gives; ``final`` makes the
    score of the sum ``x.got``, and ``least`` is the sum that makes the least score asked for.
    ``exact_df`` says that ``most`` needs the exact document frequency.
    """

    most: str
    gain: str
    final: str
    least: str
    exact_df: bool


LEXICAL: Final = Scoring(
    most="1::float8",
    gain="1::float8",
    final="x.got / cardinality($4::text[])",
    least="$5::float8 * cardinality($4::text[])",
    exact_df=False,
)
"""The share of the query's distinct terms: see :func:`memory.ranking.lexical_score`."""

KEYWORD: Final = Scoring(
    most=f"""{BM25_K1 + 1}::float8 * ln(
                1 + (greatest(t.n, c.df) - c.df + 0.5::float8) / (c.df + 0.5::float8)
            )""",
    gain=f"""k.most * p.frequency / (
                p.frequency + {BM25_K1 * (1 - BM25_B)}::float8
                + {BM25_K1 * BM25_B}::float8 * p.term_count / k.mean
            )""",
    # Sums of floats depend on their order, which differs from plan to plan.
    final="round(x.got * 1e9) / 1e9",
    least="$5::float8",
    exact_df=True,
)
"""BM25: see :func:`memory.ranking.bm25`."""
