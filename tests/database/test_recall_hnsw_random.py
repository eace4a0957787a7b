"""Random questions of random tenants, filters and models, while rows go: never too few hits."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import clusters
from memory import Memory, Recall
from memory.maintenance.indexes import build_index
from memory.stores.postgres import PostgresStore, meaning
from rawsql import Connection
from servers import Database

DIMENSIONS = 6
ROWS = 12_000
SHARES = {"t1": 0.01, "t5": 0.05, "t20": 0.2, "t74": 0.74}
START = datetime(2024, 1, 1, tzinfo=UTC)
QUESTIONS, FEW = 240, 60


class Asking:
    """Answers with the question that is at hand, as one model or the other."""

    def __init__(self) -> None:
        self.model: str | None = None
        self.vector: list[float] = []

    async def embed(self, texts: Any) -> Any:
        return [self.vector for _ in texts]


def question(chance: random.Random) -> dict[str, Any]:
    """A random recall: each filter is set now and then, and may leave many, few or none."""

    def maybe(value: Any) -> Any:
        return value if chance.random() < 0.3 else None

    since = START + timedelta(minutes=chance.randrange(ROWS))
    return {
        "kinds": maybe(chance.choice(["profile", "episodic", "summary"])),
        "origins": maybe("remembered"),
        "since": maybe(since),
        "until": maybe(since + timedelta(minutes=chance.choice([5, 500, 5_000]))),
        "metadata": maybe({"n": chance.randrange(100)}),
        "min_score": maybe(chance.choice([-1.0, 0.0, 0.9, 0.99])),
        "include_superseded": chance.random() < 0.2,
        "limit": chance.choice([1, 8, 60, 400]),
    }


@pytest.fixture
async def place(database: Database, superuser: Connection) -> Database:
    """Rows of two models and of none, some superseded, some expired, in one index."""
    await clusters.prepare(superuser, DIMENSIONS, centres=20)
    await clusters.fill(superuser, SHARES, ROWS, centres=20)
    await superuser.execute("set session_replication_role = replica")
    await superuser.execute("""
        update memory.records set embedding_model = case (metadata ->> 'n')::integer % 3
            when 0 then 'one' when 1 then 'other' end,
            superseded_at = case when metadata @> '{"n": 4}' then now() end,
            expires_at = case when metadata @> '{"n": 5}' then now() end
    """)
    await build_index(database.owner_url, dimensions=DIMENSIONS)
    return database


async def test_an_answer_is_as_long_as_comparing_all_would_make_it(
    place: Database, superuser: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(11)  # noqa: S311
    embedder = Asking()
    ways, right, wanted = {True: 0, False: 0}, 0, 0
    stored = [
        list(row["embedding"])
        for row in await superuser.fetch("select embedding from memory.records limit 200")
    ]
    store = PostgresStore(place.app_url)
    async with Memory(store, embedder=embedder, redactor=None, subject_pepper="x") as memory:
        for number in range(QUESTIONS):
            if number % 40 == 39:
                await superuser.execute(
                    "delete from memory.records"
                    " where hashtext(record_id::text || $1::text) % 3 = 0",
                    str(number),
                )
            embedder.model = chance.choice([None, "one", "other", "third"])
            embedder.vector = clusters.shifted(chance.choice(stored), chance, 0.5)
            if chance.random() < 0.2:
                embedder.vector = [-50 * value for value in embedder.vector]  # away from all
            tenant, asked = chance.choice(list(SHARES)), question(chance)
            monkeypatch.setattr(meaning, "FEW", FEW)
            answer = await memory.recall(tenant, text="x", **asked)
            monkeypatch.setattr(meaning, "FEW", ROWS)
            everything = await memory.recall(tenant, text="x", **asked)
            assert everything.exact
            right += check(answer, everything, (tenant, embedder.model, asked))
            wanted += len(everything.hits)
            ways[answer.exact] += 1
    assert min(ways.values()) > QUESTIONS / 10
    assert right >= 0.95 * wanted


def check(answer: Recall, everything: Recall, asked: Any) -> int:
    """Compare what has to be equal; return how many hits are right."""
    assert len(answer.hits) == len(everything.hits), asked
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    if answer.exact:
        assert answer.hits == everything.hits
    best = {hit.record.record_id: hit.score for hit in everything.hits}
    for hit in answer.hits:
        if hit.record.record_id in best:
            assert hit.score == pytest.approx(best[hit.record.record_id], abs=1e-6)
    return sum(hit.record.record_id in best for hit in answer.hits)
