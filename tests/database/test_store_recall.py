"""The same memories and the same questions: PostgreSQL answers as the store without a server."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memory import InMemoryStore, Memory, Recall
from memory.service import base
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from servers import Database, Postgres

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
WORDS = ["tea", "milk", "coffee", "window", "aisle", "seat", "friday", "délai", "東京", "parcel"]
PEOPLE = [f"p{n}" for n in range(6)]
KINDS = ["episodic", "profile", "summary"]
MEMORIES, QUESTIONS = 150, 200


@pytest.fixture(scope="module")
def without_pgvector(postgres15: Postgres) -> Iterator[Database]:
    with postgres15.migrated() as database:
        yield database


@pytest.fixture
def stores(shared: Database, without_pgvector: Database) -> dict[str, Memory]:
    """Three memories whose clocks stand still."""
    kinds = {
        "in memory": InMemoryStore(),
        "pgvector": PostgresStore(shared.app_url),
        "no pgvector": PostgresStore(without_pgvector.app_url),
    }
    made = {}
    for name, store in kinds.items():
        made[name] = Memory(store, redactor=None, subject_pepper="pepper", clock=lambda: NOON)
    return made


@pytest.fixture
def reseed(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ids come in the same order after it, so that ties and derived records compare."""
    chance = random.Random()  # noqa: S311
    monkeypatch.setattr(base, "uuid7", lambda: UUID(int=chance.getrandbits(128), version=4))
    return chance.seed


async def furnish(memory: Memory, tenant: str, seed: int) -> None:
    """Random memories: many share a vector, a text or a time, so that ties are common."""
    chance = random.Random(seed)  # noqa: S311
    vectors = [
        [chance.uniform(-1, 1) for _ in range(chance.choice([2, 3, 3, 3]))] for _ in range(12)
    ]
    told = []
    for n in range(MEMORIES):
        common: dict[str, Any] = {
            "text": " ".join(chance.choices(WORDS, k=chance.randint(1, 8))),
            "metadata": {"n": chance.randrange(3), "at": {"desk": chance.randrange(2)}},
            "embedding": chance.choice([None, *vectors]),
            "record_key": f"key-{chance.randrange(20)}" if chance.random() < 0.2 else None,
        }
        if told and chance.random() < 0.3:
            sources = chance.sample(told, min(len(told), chance.randint(1, 3)))
            made = await memory.derive(tenant, kind=chance.choice(KINDS), sources=sources, **common)
            told.append(made.record)
            continue
        done = await memory.remember(
            tenant,
            subject_keys=chance.sample(PEOPLE, chance.randint(1, 3)),
            kind=chance.choice(KINDS),
            occurred_at=NOON - timedelta(hours=chance.randrange(30)),
            expires_at=chance.choice([None, None, None, NOON, NOON + timedelta(seconds=1)]),
            **common,
        )
        told.append(done.record)
        if n % 40 == 39:
            await memory.forget_record(tenant, record_id=chance.choice(told[-5:]))
            told = [one for one in told if await memory.get(tenant, record_id=one)]


def question(chance: random.Random) -> dict[str, Any]:
    """A random recall: each filter is set half of the time."""

    def maybe(value: Any) -> Any:
        return value if chance.random() < 0.5 else None

    strategy = chance.choice(["vector", "lexical", "recent"])
    asked: dict[str, Any] = {
        "strategy": strategy,
        "subject_keys": maybe(chance.sample(PEOPLE, chance.randint(1, 3))),
        "kinds": maybe(chance.sample(KINDS, chance.randint(1, 2))),
        "origins": maybe(chance.choice(["remembered", "derived"])),
        "since": maybe(NOON - timedelta(hours=chance.randint(10, 30))),
        "until": maybe(NOON - timedelta(hours=chance.randint(0, 9))),
        "metadata": maybe(chance.choice([{"n": 1}, {"at": {"desk": 0}}, {"at": {}}, {}])),
        "subject_match": chance.choice(["any", "all"]),
        "include_superseded": chance.random() < 0.3,
        "limit": chance.choice([1, 3, 8, 50, 1_000]),
    }
    if strategy != "recent":
        asked["min_score"] = maybe(chance.choice([-0.5, 0, 0.25, 1 / 3, 0.5, 1]))
    if strategy == "vector":
        asked["embedding"] = [chance.uniform(-1, 1) for _ in range(chance.choice([2, 3, 3, 4]))]
    if strategy == "lexical":
        asked["text"] = " ".join(chance.choices([*WORDS, "nowhere"], k=chance.randint(1, 5)))
    return asked


def ids(answer: Recall) -> list[UUID]:
    return [hit.record.record_id for hit in answer.hits]


async def test_three_stores_give_the_same_answers_in_the_same_order(
    stores: dict[str, Memory], reseed: Callable[[int], None], tenant: str
) -> None:
    for memory in stores.values():
        reseed(7)
        await furnish(memory, tenant, seed=7)
    chance = random.Random(8)  # noqa: S311
    reference = stores.pop("in memory")
    found = 0
    for _ in range(QUESTIONS):
        asked = question(chance)
        expected = await reference.recall(tenant, **asked)
        found += bool(expected.hits)
        for name, memory in stores.items():
            answer = await memory.recall(tenant, **asked)
            assert ids(answer) == ids(expected), (name, asked)
            scores = [hit.score for hit in answer.hits]
            assert scores == pytest.approx([h.score for h in expected.hits], abs=1e-6)
            assert (answer.exact, answer.strategy) == (expected.exact, expected.strategy)
            for hit, other in zip(answer.hits, expected.hits, strict=True):
                assert hit.record.subject_keys == other.record.subject_keys
                assert hit.record.sources == other.record.sources
                assert hit.record.metadata == other.record.metadata
                assert hit.record.version == other.record.version
    assert found > QUESTIONS / 3
    for memory in stores.values():
        await memory.close()


async def test_pages_of_every_store_list_the_same_records(
    stores: dict[str, Memory], reseed: Callable[[int], None], tenant: str
) -> None:
    listings = []
    for memory in stores.values():
        reseed(9)
        await furnish(memory, tenant, seed=9)
        listing: list[UUID] = []
        after: UUID | None = None
        while page := await memory.records(tenant, after=after, limit=7):
            listing += [record.record_id for record in page]
            after = listing[-1]
        assert listing == sorted(listing, reverse=True)
        listings.append(listing)
        await memory.close()
    assert listings[0] == listings[1] == listings[2]
    assert len(listings[0]) > MEMORIES / 3


async def test_recall_goes_on_when_pgvector_moves_or_goes(
    database: Database, superuser: Connection
) -> None:
    memory = Memory(PostgresStore(database.app_url), redactor=None, subject_pepper="pepper")
    for n in range(3):
        await memory.remember("acme", text="tea", subject_keys="ann", embedding=[1.0, float(n)])
    expected = await memory.recall("acme", embedding=[1.0, 0.2])
    assert "with pgvector" in expected.note
    await superuser.execute(
        'create schema "Extras"; alter extension vector set schema "Extras";'
        ' grant usage on schema "Extras" to public'
    )
    moved = await memory.recall("acme", embedding=[1.0, 0.2])
    assert ids(moved) == ids(expected)
    assert "with pgvector" in moved.note
    assert (await memory.capabilities()).vector_search == "pgvector"
    await superuser.execute("drop extension vector")
    gone = await memory.recall("acme", embedding=[1.0, 0.2])
    assert ids(gone) == ids(expected)
    assert "in this process" in gone.note
    assert (await memory.capabilities()).vector_search == "in-process"
    await superuser.execute("create extension vector")
    assert (await memory.capabilities()).vector_search == "pgvector"
    assert "with pgvector" in (await memory.recall("acme", embedding=[1.0, 0.2])).note
    await memory.close()


async def test_how_a_hosts_engine_reads_json_changes_no_metadata(
    shared: Database, tenant: str
) -> None:
    engine = create_async_engine(
        normalize_url(shared.app_url), json_deserializer=partial(json.loads, parse_float=Decimal)
    )
    memory = Memory(PostgresStore(engine), subject_pepper="pepper")
    given = {"ratio": 0.5, "of": [1e-7, {"deep": 2.25}]}
    told = await memory.remember(tenant, text="tea", subject_keys="ann", metadata=given)
    shown = [
        await memory.get(tenant, record_id=told.record),
        *await memory.records(tenant, subject_keys="ann"),
        *[hit.record for hit in (await memory.recall(tenant, text="tea")).hits],
    ]
    # Equal is not enough: a Decimal equals a float.
    read = [json.dumps(item.metadata, sort_keys=True, default=dict) for item in shown if item]
    assert read == [json.dumps(given, sort_keys=True)] * 3
    await engine.dispose()
