"""Each way to an answer by words is exact: common terms bounded, all read, or the newest with all.

The budgets are made small, so that a few hundred records take the ways of a large tenant.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from memory import InMemoryStore, Memory
from memory.repositories import hybrid, weighing, words
from memory.service import base
from memory.stores.postgres import PostgresStore
from servers import Database

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
# Two in every second record, some in every tenth, the rest rare.
WORDS = [f"w{n}" for n in range(60)]
SHARES = [0.5, 0.45, 0.3, *(0.1,) * 7, *(0.02,) * 50]
MEMORIES, QUESTIONS = 400, 150
SAID = {
    "newest records with every term": "whole",
    "could change the answer": "bounded",
    "every record with any term": "exhaustive",
}


def a_text(chance: random.Random) -> str:
    held = [word for word, share in zip(WORDS, SHARES, strict=True) if chance.random() < share]
    held += chance.choices(held or WORDS, k=3)
    chance.shuffle(held)
    return " ".join(held)


async def furnish(memory: Memory, tenant: str) -> None:
    """Four hundred memories; every third is hidden, and what is hidden holds the most words."""
    chance = random.Random(11)  # noqa: S311
    items: list[dict[str, Any]] = []
    for n in range(MEMORIES):
        hidden = n % 3 == 0
        items.append(
            {
                "text": a_text(chance) + (" " + " ".join(WORDS[: n % 50]) if hidden else ""),
                "subject_keys": f"p{n % 5}",
                "kind": "episodic" if n % 2 else "profile",
                "record_id": UUID(int=chance.getrandbits(128), version=4),
                "record_key": f"key-{n}" if n % 6 == 0 else None,
                "expires_at": NOON if n % 6 == 3 else None,
                "occurred_at": NOON - timedelta(hours=n % 24),
                "embedding": [chance.uniform(-1, 1) for _ in range(3)],
            }
        )
    told = await memory.remember_many(tenant, items=items)
    await memory.remember_many(
        tenant,
        items=[
            {
                "text": a_text(chance),
                "subject_keys": "p0",
                "record_key": f"key-{n}",
                "record_id": UUID(int=chance.getrandbits(128), version=4),
            }
            for n in range(0, MEMORIES, 6)
        ],
    )
    await memory.forget_record(tenant, record_id=told[1].record)


def question(chance: random.Random) -> dict[str, Any]:
    few = chance.random() < 0.4
    asked = WORDS[:3] if few else chance.choices(WORDS, weights=SHARES, k=chance.randint(1, 8))
    return {
        "text": " ".join({*asked, *chance.choices([*WORDS, "nowhere"], k=chance.randint(0, 2))}),
        "limit": chance.choice([1, 3, 8, 40, 500]),
        "kinds": chance.choice([None, None, "profile"]),
        "until": chance.choice([None, None, NOON - timedelta(hours=3)]),
        "include_superseded": chance.random() < 0.2,
    }


@pytest.fixture(params=["few are read", "half is read", "as shipped"])
async def pair(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    shared: Database,
    tenant: str,
) -> AsyncIterator[tuple[Memory, Memory]]:
    """The store without a server and PostgreSQL, furnished alike; ways are taken sooner."""
    if request.param != "as shipped":
        monkeypatch.setattr(weighing, "_BUDGET", "40" if request.param == "few are read" else "200")
        monkeypatch.setattr(words, "_SEEDS", "greatest(4, 2 * $3)")
        monkeypatch.setattr(words, "_STEPS", 40)
        monkeypatch.setattr(words, "_WALK", 120)
    for cached in (words._by_words, hybrid._scores):
        cached.cache_clear()
    pair = []
    for store in (InMemoryStore(), PostgresStore(shared.app_url)):
        ids = random.Random(3)  # noqa: S311
        monkeypatch.setattr(
            base, "uuid7", lambda ids=ids: UUID(int=ids.getrandbits(128), version=4)
        )
        memory = Memory(store, redactor=None, subject_pepper="pepper", clock=lambda: NOON)
        await furnish(memory, tenant)
        pair.append(memory)
    yield pair[0], pair[1]
    for memory in pair:
        await memory.close()
    for cached in (words._by_words, hybrid._scores):
        cached.cache_clear()


@pytest.mark.parametrize("strategy", ["lexical", "keyword", "hybrid"])
async def test_every_way_gives_the_exact_answer(
    pair: tuple[Memory, Memory], tenant: str, strategy: Any, request: pytest.FixtureRequest
) -> None:
    reference, memory = pair
    chance = random.Random(5)  # noqa: S311
    ways: Counter[str] = Counter()
    for _ in range(QUESTIONS):
        asked = question(chance)
        if strategy == "hybrid":
            asked["embedding"] = [chance.uniform(-1, 1) for _ in range(3)]
            asked["neighbours"] = chance.choice([0.0, 0.5])
        expected = await reference.recall(tenant, strategy=strategy, **asked)
        answer = await memory.recall(tenant, strategy=strategy, **asked)
        ways.update(way for said, way in SAID.items() if said in answer.note)
        assert [(h.record.record_id, pytest.approx(h.score, abs=1e-6)) for h in answer.hits] == [
            (h.record.record_id, h.score) for h in expected.hits
        ], asked
        assert answer.exact == expected.exact
    if strategy != "hybrid" and "few are read" in request.node.name:
        assert set(ways) >= {"bounded", "exhaustive"}
    if strategy == "lexical":
        assert ways["whole"]


@pytest.mark.parametrize("strategy", ["lexical", "keyword"])
async def test_a_question_of_very_many_words_is_answered(
    pair: tuple[Memory, Memory], tenant: str, strategy: Any
) -> None:
    """Hundreds of words that one record holds: shares of which the product is no float."""
    many = " ".join(f"u{n}" for n in range(600))
    for memory in pair:
        told = {"text": f"{many} w0 w1 w2", "subject_keys": "p", "record_id": UUID(int=7)}
        await memory.remember(tenant, **told)
    for text in (many, f"{many} w0 w1 w2 {' '.join(f'nowhere{n}' for n in range(3_000))}"):
        expected, answer = [
            await memory.recall(tenant, text=text, strategy=strategy, limit=30) for memory in pair
        ]
        assert [(h.record.record_id, pytest.approx(h.score, abs=1e-6)) for h in answer.hits] == [
            (h.record.record_id, h.score) for h in expected.hits
        ]
        assert answer.hits
