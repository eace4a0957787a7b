"""Answers through an HNSW index, beside those of a store that compares all."""

from __future__ import annotations

from typing import Any

import pytest

from memory import Memory, Recall
from memory.stores.postgres import PostgresStore
from servers import Database

DIMENSIONS, ROWS, FEW = 8, 6_000, 100


def opened(store: PostgresStore) -> Memory:
    return Memory(store, redactor=None, subject_pepper="pepper")


def ids(answer: Recall) -> list[Any]:
    return [hit.record.record_id for hit in answer.hits]


async def exact(place: Database, tenant: str, asked: list[float]) -> Recall:
    """The answer of a store that compares all."""
    async with opened(PostgresStore(place.app_url)) as memory:
        return await memory.recall(tenant, embedding=asked, limit=1_000)


def check(answer: Recall, expected: Recall) -> None:
    """It came through the index, and nine of ten are right with the right scores."""
    assert "through an HNSW index" in answer.note
    assert not answer.exact
    scores = {hit.record.record_id: hit.score for hit in expected.hits}
    assert len(answer.hits) == 10
    assert len(set(ids(answer)) & set(ids(expected)[:10])) >= 9
    for hit in answer.hits:
        assert hit.score == pytest.approx(scores[hit.record.record_id], abs=1e-6)
