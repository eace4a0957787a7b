"""Whatever was written: PostgreSQL finds what the store without a server finds, scored alike."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import InMemoryStore, Memory, Recall
from memory.service import base
from memory.stores.postgres import PostgresStore
from servers import Database, Postgres

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
TENANTS = ("acme", "acme-corp")
PEOPLE = ("ann", "bob", "cid")
KINDS = ("episodic", "profile")
# Directions of which no two are equally far from any question: ties are equal vectors only.
VECTORS = ((0.31, 0.95, 0.02), (-0.4, 0.2, 0.77), (0.9, -0.13, 0.2), (0.05, 0.6, -0.7), (1.0, 0.4))
QUESTIONS = ((0.72, 0.11, 0.43), (-0.2, 0.91, 0.17), (0.3, 0.8))

WORDS = ("tea", "milk", "tea", "door", "東京", "délai", "four")

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9)
writes = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(TENANTS),
        "text": words.map(" ".join),
        "kind": st.sampled_from(KINDS),
        "metadata": st.sampled_from([{}, {"n": 1}, {"n": 2, "at": {"desk": 1}}]),
        "embedding": st.sampled_from([None, *VECTORS]),
        "record_key": st.sampled_from([None, None, "one", "two"]),
    }
)
told = st.fixed_dictionaries(
    {
        "do": st.just("remember"),
        "subject_keys": st.sets(st.sampled_from(PEOPLE), min_size=1).map(sorted),
        "occurred_at": st.integers(0, 3).map(lambda n: NOON - timedelta(hours=n)),
        "expires_at": st.sampled_from([None, None, None, NOON, NOON + timedelta(seconds=1)]),
    }
)
operations = st.one_of(
    st.tuples(writes, told),
    st.tuples(writes, st.fixed_dictionaries({"do": st.just("derive"), "of": st.integers(0, 99)})),
    st.tuples(
        writes,
        st.fixed_dictionaries(
            {
                "do": st.sampled_from(["relate", "forget"]),
                "of": st.integers(0, 99),
                "who": st.sampled_from(PEOPLE),
            }
        ),
    ),
).map(lambda pair: pair[0] | pair[1])
asked = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(TENANTS),
        "strategy": st.sampled_from(["lexical", "keyword", "hybrid", "vector", "recent"]),
        # Of many words not each is looked up in a person's records.
        "text": st.tuples(words, st.sampled_from([[], [f"w{n}" for n in range(20)]])).map(
            lambda pair: " ".join(pair[0] + pair[1])
        ),
        "embedding": st.sampled_from(QUESTIONS),
        "limit": st.sampled_from([1, 2, 3, 8]),
    },
    optional={
        "subject_keys": st.sets(st.sampled_from(PEOPLE), min_size=1).map(sorted),
        "subject_match": st.sampled_from(["any", "all"]),
        "kinds": st.sampled_from(KINDS),
        "origins": st.sampled_from(["remembered", "derived"]),
        "since": st.integers(0, 3).map(lambda n: NOON - timedelta(hours=n)),
        "until": st.integers(0, 3).map(lambda n: NOON - timedelta(hours=n)),
        "metadata": st.sampled_from([{"n": 1}, {"at": {}}]),
        "include_superseded": st.booleans(),
        "min_score": st.sampled_from([-0.5, 0.26, 0.51, 1.01]),
        "neighbours": st.sampled_from([0.0, 0.3, 1.0]),
    },
)


@pytest.fixture(scope="module")
def without_pgvector(postgres15: Postgres) -> Iterator[Database]:
    with postgres15.migrated() as database:
        yield database


@contextmanager
def same_ids() -> Iterator[None]:
    """Ids come in one order, so that ties and derived records compare."""
    chance = random.Random(7)  # noqa: S311
    ids = (UUID(int=chance.getrandbits(128), version=4) for _ in itertools.count())
    with mock.patch.object(base, "uuid7", side_effect=ids):
        yield


async def written(memory: Memory, suffix: str, operations: list[dict[str, Any]]) -> None:
    held: dict[str, list[UUID]] = {tenant: [] for tenant in TENANTS}
    for operation in operations:
        item = dict(operation)
        name, do = item.pop("tenant"), item.pop("do")
        tenant, ids = memory.for_tenant(name + suffix), held[name]
        if do == "remember":
            ids.append((await tenant.remember(**item)).record.record_id)
            continue
        if not ids:
            continue
        one = ids[item.pop("of") % len(ids)]
        who = item.pop("who", None)
        if do == "derive":
            ids.append((await tenant.derive(sources=[one, ids[0]], **item)).record.record_id)
        elif do == "relate":
            await tenant.relate(record_id=one, subject_keys=who)
        else:
            await tenant.forget_record(record_id=one)
            ids[:] = [each for each in ids if await tenant.get(record_id=each)]


async def answered(memory: Memory, suffix: str, question: dict[str, Any]) -> Recall:
    question = dict(question)
    if question["strategy"] == "recent":
        question.pop("min_score", None)
    if question["strategy"] != "hybrid":
        question.pop("neighbours", None)
    if question.get("since", NOON) >= question.get("until", NOON + timedelta(hours=1)):
        question.pop("until", None)
    return await memory.recall(question.pop("tenant") + suffix, **question)


def assert_alike(answer: Recall, expected: Recall) -> None:
    """Equal scores, and equal records but for those whose score is that of the last."""
    scores = [hit.score for hit in expected.hits]
    assert [hit.score for hit in answer.hits] == pytest.approx(scores, abs=1e-6)
    assert (answer.exact, answer.strategy) == (expected.exact, expected.strategy)
    above = {hit.record.record_id for hit in expected.hits if hit.score > scores[-1] + 2e-6}
    assert above <= {hit.record.record_id for hit in answer.hits}
    if answer.strategy != "hybrid":
        assert [h.record.record_id for h in answer.hits] == [
            h.record.record_id for h in expected.hits
        ]


_numbers = itertools.count()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    operations=st.lists(operations, min_size=1, max_size=14),
    questions=st.lists(asked, min_size=1, max_size=8),
)
def test_stores_find_the_same_records_with_the_same_scores(
    shared: Database,
    without_pgvector: Database,
    operations: list[dict[str, Any]],
    questions: list[dict[str, Any]],
) -> None:
    async def compare() -> None:
        suffix = f"-{next(_numbers)}"
        stores = (
            InMemoryStore(),
            PostgresStore(shared.app_url),
            PostgresStore(without_pgvector.app_url),
        )
        memories = []
        for store in stores:
            memory = Memory(store, redactor=None, subject_pepper="pepper", clock=lambda: NOON)
            with same_ids():
                await written(memory, suffix, operations)
            memories.append(memory)
        for question in questions:
            expected, *answers = [await answered(m, suffix, question) for m in memories]
            for answer in answers:
                assert_alike(answer, expected)
        for memory in memories:
            await memory.close()

    asyncio.run(compare())
