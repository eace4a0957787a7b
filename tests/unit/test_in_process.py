"""Ranking in this process: how many candidates are read, compared, left out and said to be so."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import pytest

from memory.commands import Filters, Query
from memory.repositories import conditions, meaning, reads
from memory.stores.postgres import hybrid
from memory.stores.postgres import meaning as ranked

POOL = 6
EVERYTHING = Filters(now=datetime(2026, 1, 1, tzinfo=UTC))


def test_what_lies_beyond_a_prefix_is_the_next_code_point():
    assert conditions.beyond("a") == "b"
    assert conditions.beyond("ab") == "ac"
    assert conditions.beyond("a\U0010ffff\U0010ffff") == "b"
    assert conditions.beyond("a\ud7ff") == "a\ue000"
    assert conditions.beyond("a\ue000") == "a\ue001"
    for every in ("", "\U0010ffff"):
        assert conditions.beyond(every) == "\U0010ffff" * (1_024 // 4 + 1)


class Rows:
    """A tenant of which each record holds a vector, or none, in the place of the statements."""

    def __init__(self, monkeypatch, *embeddings):
        self.rows = [
            SimpleNamespace(record_id=UUID(int=n), embedding=embedding)
            for n, embedding in enumerate(reversed(embeddings), 1)
        ][::-1]
        self.gone, self.asked = set(), []
        monkeypatch.setattr(meaning, "POOL", POOL)
        monkeypatch.setattr(meaning, "pool", self.pool)
        monkeypatch.setattr(reads, "by_ids", self.by_ids)

    async def single(self, statement):
        return await statement(None)

    async def pool(self, _, tenant_key, query, below, most):
        self.asked.append(most)
        return [row for row in self.rows if below is None or row.record_id < below][:most]

    async def by_ids(self, _, tenant_key, record_ids):
        return {item: item for item in record_ids if item not in self.gone}


async def find(monkeypatch, rows, **more):
    monkeypatch.setattr(ranked, "Hit", SimpleNamespace)
    query = Query(filters=EVERYTHING, strategy="vector", limit=3, embedding=(1.0, 0.0), **more)
    measured = SimpleNamespace(extension=None)
    return await ranked.find(rows, "acme", query, measured)


def scores(found):
    return [(hit.record.int, round(hit.score, 3)) for hit in found.hits]


@pytest.mark.parametrize("portion", [1, 4, 1_000_000])
async def test_the_best_of_the_pool_are_found_in_any_portion(monkeypatch, portion):
    monkeypatch.setattr(ranked, "_VALUES", 2 * portion)
    rows = Rows(monkeypatch, (0.0, 2.0), None, (3.0, 4.0), (-1.0, 0.0), (5.0, 0.0))
    found = await find(monkeypatch, rows)
    assert scores(found) == [(1, 1.0), (3, 0.6), (5, 0.0)]
    assert (found.exact, found.skipped) == (True, 1)
    assert "newest" not in found.how
    assert max(rows.asked) == min(portion, POOL + 1)
    assert sum(rows.asked) >= 6
    assert scores(await find(monkeypatch, rows, min_score=0.6)) == [(1, 1.0), (3, 0.6)]


@pytest.mark.parametrize("portion", [1, 4, 1_000_000])
async def test_a_pool_that_is_full_is_exact_and_one_more_is_not_looked_at(monkeypatch, portion):
    monkeypatch.setattr(ranked, "_VALUES", 2 * portion)
    full = [(0.0, 1.0), None, (1.0, 1.0), (0.0, 1.0), (0.0, 1.0), (3.0, 4.0)]
    found = await find(monkeypatch, Rows(monkeypatch, *full))
    assert (found.exact, found.skipped, "newest" in found.how) == (True, 1, False)
    rows = Rows(monkeypatch, *full, (1.0, 0.0))
    found = await find(monkeypatch, rows)
    assert (found.exact, found.skipped) == (False, 1)
    assert found.how.endswith(f"over the newest {POOL} candidates only")
    assert scores(found)[0] == (5, 0.707)
    assert sum(rows.asked) == POOL + 1


async def test_what_was_erased_since_gives_way_to_the_next(monkeypatch):
    rows = Rows(monkeypatch, (1.0, 0.0), (1.0, 1.0), (3.0, 4.0), (0.0, 1.0))
    rows.gone = {UUID(int=4), UUID(int=2)}
    assert scores(await find(monkeypatch, rows)) == [(3, 0.707), (1, 0.0)]
    rows.gone = {row.record_id for row in rows.rows}
    assert (await find(monkeypatch, rows)).hits == ()


def test_only_vectors_of_one_space_are_compared_for_a_hybrid():
    query = Query(
        filters=EVERYTHING, strategy="hybrid", limit=3, embedding=(2.0, 0.0), embedding_model="m"
    )

    def row(**values):
        return SimpleNamespace(_mapping=values, **values)

    rows = [
        row(cosine=0.25),
        row(embedding=(3.0, 4.0), embedding_model="m"),
        row(embedding=(3.0, 4.0), embedding_model=None),
        row(embedding=(3.0, 4.0), embedding_model="n"),
        row(embedding=(3.0, 4.0, 0.0), embedding_model="m"),
        row(embedding=None, embedding_model=None),
    ]
    assert [cosine for _, cosine in hybrid._compared(rows, query)] == [
        0.25,
        pytest.approx(0.6),
        pytest.approx(0.6),
        None,
        None,
        None,
    ]
