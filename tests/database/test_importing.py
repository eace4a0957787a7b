"""Moving in: LangGraph's own store writes its tables, and mem0's table is made as mem0 makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from langgraph.store.postgres import AsyncPostgresStore
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import InvalidInputError, Memory, MemoryServiceError, PostgresStore
from memory.integrations import importing
from memory.integrations.importing import Imported, from_langgraph, from_mem0
from memory.integrations.langgraph import ErasableStore, LangChainEmbedder
from memory.urls import normalize_url
from peers import Letters, make_mem0, mem0_payload
from servers import Database
from stores import mentions

DANA, EVE = ("users", "dana"), ("users", "eve")


@pytest.fixture
async def source(database: Database) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(normalize_url(database.superuser_url))
    yield engine
    await engine.dispose()


@pytest.fixture
async def memory(database: Database) -> AsyncIterator[Memory]:
    letters = LangChainEmbedder(Letters())
    async with Memory(
        PostgresStore(database.app_url), embedder=letters, subject_pepper="p"
    ) as made:
        yield made


def theirs(database: Database, fields: Sequence[str] | None):
    index = {"dims": 8, "embed": Letters(), "fields": fields} if fields else None
    return AsyncPostgresStore.from_conn_string(database.superuser_url, index=index)


async def test_langgraphs_items_come_with_times_vectors_and_ttl(
    database: Database, source: AsyncEngine, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_PAGE", 2)
    values = {"a": {"text": "abba"}, "b": {"text": "cede", "n": [1, None]}, "c": {"other": "x"}}
    async with theirs(database, ["text"]) as peer:
        await peer.setup()
        for key, value in values.items():
            await peer.aput(DANA, key, value)
        await peer.aput(DANA, "a", {"text": "abba", "again": True})
        await peer.aput(EVE, "tel", {"text": "98450 12345"}, index=False)
        await peer.aput(EVE, "ttl", {"text": "face"}, ttl=60)
        await peer.aput(EVE, "late", {"text": "face"}, ttl=60)
        written = {(item.namespace, item.key): item for item in await peer.asearch((), limit=99)}
    with psycopg.connect(database.superuser_url) as owner:
        owner.execute("update store set expires_at = now() - interval '1 day' where key = 'late'")
    ours = ErasableStore(memory.for_tenant("shop"), subjects=1, fields=["text"])
    done = await from_langgraph(ours, source)
    assert done == Imported(read=6, imported=5, existing=0, vectors=3, skipped={"expired": 1})
    assert memory._embedder._embeddings.asked == 1  # "tel", which came without a vector
    for (namespace, key), item in written.items():
        found = await ours.aget(namespace, key, refresh_ttl=False)
        if key == "late":
            assert found is None
            continue
        assert (found.created_at, found.updated_at) == (item.created_at, item.updated_at)
        assert found.value == ({"text": "[PHONE:****2345]"} if key == "tel" else item.value)
    assert [item.key for item in await ours.asearch(DANA, query="cede")] == ["b", "a"]
    left = (await ours.arecord(EVE, "ttl")).expires_at - datetime.now(UTC)
    assert timedelta(minutes=50) < left < timedelta(minutes=60)
    await ours.aget(EVE, "ttl")
    assert (await ours.arecord(EVE, "ttl")).metadata["ttl"] == 60


async def test_a_second_run_adds_what_is_new_and_nothing_else(
    database: Database, source: AsyncEngine, memory: Memory
) -> None:
    shop = memory.for_tenant("shop")
    ours = ErasableStore(shop, subjects=1)
    async with theirs(database, None) as peer:
        await peer.setup()
        for key in "abcd":
            await peer.aput(DANA, key, {"v": key})
        assert (await from_langgraph(ours, source)).imported == 4
        before = await shop.records(include_superseded=True)
        again = await from_langgraph(ours, source)
        assert (again.imported, again.existing) == (0, 4)
        assert await shop.records(include_superseded=True) == before
        await ours.aput(DANA, "a", {"v": "ours"})
        await peer.aput(DANA, "b", {"v": "theirs"})
        await peer.aput(EVE, "e", {"v": "new"})
        async with source.connect() as connection:
            third = await from_langgraph(ours, connection)
    assert (third.imported, third.existing) == (2, 3)
    found = {item.key: item.value["v"] for item in await ours.asearch(())}
    assert found == {"a": "ours", "b": "theirs", "c": "c", "d": "d", "e": "new"}


async def test_who_is_barred_nobody_or_too_long_is_counted_and_the_rest_comes(
    database: Database, source: AsyncEngine, memory: Memory
) -> None:
    shop = memory.for_tenant("shop")
    async with theirs(database, None) as peer:
        await peer.setup()
        await peer.aput(("users",), "whose", {})
        await peer.aput(DANA, "barred", {})
        await peer.aput(EVE, "long", {"v": "x" * 70_000})
        await peer.aput(EVE, "kept", {"v": 1})
    await shop.forget(subject_key="dana", block_future=True)
    done = await from_langgraph(ErasableStore(shop, subjects=1), source)
    assert (done.read, done.imported) == (4, 1)
    assert done.skipped == {"barred": 1, "nobody": 1, "refused": 1}
    assert [r.record_key for r in await shop.records()] == ["langgraph:users.eve..kept"]


async def test_what_was_imported_is_erased_with_its_person_only(
    database: Database, source: AsyncEngine, memory: Memory, superuser
) -> None:
    shop = memory.for_tenant("shop")
    ours = ErasableStore(shop, subjects=1)
    async with theirs(database, ["$"]) as peer:
        await peer.setup()
        await peer.aput(DANA, "k", {"v": "unmistakable"})
        await peer.aput(EVE, "k", {"v": "bystanding"})
    await from_langgraph(ours, source)
    kept = await superuser.fetch("select r::text from memory.records as r where text ~ 'bystand'")
    receipt = await shop.forget(subject_key="dana")
    assert receipt.counts.memories == 1
    assert await mentions(superuser, "unmistakable", "dana") == {}
    assert kept == await superuser.fetch(
        "select r::text from memory.records as r where text ~ 'bystand'"
    )
    # As docs/moving.md says: the source still has it, and a second run brings it back.
    assert (await from_langgraph(ours, source)).imported == 1


async def test_mem0s_memories_come_with_their_people_times_and_vectors(
    database: Database, source: AsyncEngine, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_PAGE", 2)
    rows = [
        mem0_payload("Dana cannot eat eggs", user_id="dana", role="user", tags=["food"]),
        mem0_payload("Call 98450 12345", user_id="dana", expiration_date="2999-01-01"),
        mem0_payload("Gone", user_id="dana", expiration_date="2026-01-01"),
        mem0_payload("About the agent itself"),
        mem0_payload("Eve bikes", user_id="eve", updated_at="2026-03-02T10:00:00"),
        mem0_payload("", user_id="eve"),
        {"data": "No times", "user_id": "eve"},
    ]
    make_mem0(database, rows, "my memories")
    shop = memory.for_tenant("shop")
    done = await from_mem0(shop, source, table="my memories")
    skipped = {"expired": 1, "nobody": 1, "refused": 1}
    assert done == Imported(read=7, imported=4, existing=0, vectors=4, skipped=skipped)
    assert memory._embedder._embeddings.asked == 0
    [eggs, call] = sorted(
        await shop.records(subject_keys="dana"), key=lambda r: r.text, reverse=True
    )
    assert (eggs.text, eggs.kind, eggs.record_key) == (
        "Dana cannot eat eggs", "semantic", f"mem0:{UUID(int=1)}",
    )  # fmt: skip
    assert eggs.occurred_at == datetime(2026, 3, 1, 10, 0, 0, 123456, tzinfo=UTC)
    at = rows[0]["created_at"]
    assert eggs.metadata == {
        "agent_id": "helper", "role": "user", "tags": ["food"], "created_at": at, "updated_at": at,
    }  # fmt: skip
    assert (call.text, call.expires_at) == (
        "Call [PHONE:****2345]",
        datetime(2999, 1, 2, tzinfo=UTC),
    )
    [bikes] = (await shop.recall(text="Eve bikes", subject_keys="eve", limit=1)).hits
    assert bikes.score == pytest.approx(1, abs=1e-6)
    assert bikes.record.occurred_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
    before = await shop.records(include_superseded=True)
    again = await from_mem0(shop, source, table="my memories")
    assert (again.imported, again.existing) == (0, 4)
    assert await shop.records(include_superseded=True) == before
    own = await from_mem0(
        memory.for_tenant("other"),
        source,
        table="my memories",
        subjects=lambda payload: [f"agent:{payload.get('agent_id')}", "all"],
        kind="fact",
        vectors=False,
    )
    assert (own.imported, own.vectors) == (5, 0)
    assert memory._embedder._embeddings.asked == 6


async def test_a_source_that_cannot_be_read_says_nothing_of_what_is_in_it(
    database: Database, source: AsyncEngine, memory: Memory
) -> None:
    ours = ErasableStore(memory.for_tenant("shop"), subjects=1)
    for call in (
        from_langgraph(ours, source),
        from_mem0(ours.tenant, source, table="secret table"),
        from_langgraph(ours, create_async_engine("postgresql+asyncpg://nobody@127.0.0.1:1/x")),
    ):
        with pytest.raises(MemoryServiceError) as failed:
            await call
        assert failed.value.__context__ is None
        assert "secret" not in str(failed.value)
        # Whose schema lacks something, ours does not.
        assert "alembic" not in str(failed.value)
    for wrong in ("url", None):
        with pytest.raises(InvalidInputError):
            await from_langgraph(ours, wrong)
    with pytest.raises(InvalidInputError):
        await from_mem0(ours.tenant, source, table="")
    assert await ours.tenant.records() == []
