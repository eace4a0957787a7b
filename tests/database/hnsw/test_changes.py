"""An index that is made anew, goes, is damaged or comes later, and rows that change under it."""

from __future__ import annotations

from typing import Any

import pytest

from memory import Memory, Recall
from memory.maintenance.indexes import build_index, drop_index
from memory.stores.postgres import PostgresStore, base
from nearest import DIMENSIONS, check, ids, opened
from rawsql import Connection
from servers import Database


async def test_a_halfvec_index_is_ranked_by_full_precision(
    place: Database, asked: list[float], expected: dict[str, Recall]
) -> None:
    await drop_index(place.owner_url, dimensions=DIMENSIONS)
    await build_index(place.owner_url, dimensions=DIMENSIONS, halfvec=True)
    async with opened(PostgresStore(place.app_url)) as memory:
        check(await memory.recall("acme", embedding=asked, limit=10), expected["acme"])


@pytest.mark.parametrize("length", [1e14, 1e6, 1e-9, 1e-14])
async def test_half_precision_has_room_for_every_length_of_a_vector(
    place: Database, asked: list[float], expected: dict[str, Recall], length: float
) -> None:
    await drop_index(place.owner_url, dimensions=DIMENSIONS)
    scaled = [value * length for value in asked]
    async with opened(PostgresStore(place.app_url)) as memory:
        for built in (False, True):
            told = await memory.remember(
                "acme", text="as near as can be", subject_keys="dana", embedding=scaled
            )
            await build_index(place.owner_url, dimensions=DIMENSIONS, halfvec=True)
            found = await memory.recall("acme", embedding=scaled, limit=20, metadata={})
            assert "through an HNSW index" in found.note
            assert told.record.record_id in ids(found)[:3], built
            await memory.forget_record("acme", record_id=told.record.record_id)
        await memory.remember("acme", text="beside it", subject_keys="li", embedding=scaled)
        check(await memory.recall("other", embedding=scaled, limit=10), expected["other"])


async def test_an_index_that_went_is_missed_by_nobody(
    place: Database,
    inspector: Connection,
    asked: list[float],
    expected: dict[str, Recall],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(PostgresStore(place.app_url)) as memory:
        check(await memory.recall("acme", embedding=asked, limit=10), expected["acme"])
        await inspector.execute("drop index memory.records_hnsw_8")
        for note in ("did not suffice", "with pgvector"):
            answer = await memory.recall("acme", embedding=asked, limit=10)
            assert answer.exact
            assert ids(answer) == ids(expected["acme"])[:10]
            assert note in answer.note
            monkeypatch.setattr(base, "_LATELY", -1.0)  # a minute later
        await build_index(place.owner_url, dimensions=DIMENSIONS)
        check(await memory.recall("acme", embedding=asked, limit=10), expected["acme"])


async def test_an_index_that_is_not_valid_is_not_asked(
    place: Database, inspector: Connection, asked: list[float]
) -> None:
    await inspector.execute(
        "update pg_index set indisvalid = false"
        " where indexrelid = 'memory.records_hnsw_8'::regclass"
    )
    async with opened(PostgresStore(place.app_url)) as memory:
        answer = await memory.recall("acme", embedding=asked, limit=10)
        assert answer.exact
        assert answer.note.endswith("with pgvector")
        assert (await memory.capabilities()).hnsw_dimensions == ()


async def test_pgvector_that_is_created_later_is_used_without_a_restart(
    database: Database, superuser: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await superuser.execute("drop extension vector")
    async with opened(PostgresStore(database.app_url)) as memory:
        await memory.remember("acme", text="x", subject_keys="ann", embedding=[1.0, 2.0])
        assert "in this process" in (await memory.recall("acme", embedding=[1.0, 2.0])).note
        await superuser.execute("create extension vector")
        assert "in this process" in (await memory.recall("acme", embedding=[1.0, 2.0])).note
        monkeypatch.setattr(base, "_LATELY", -1.0)  # a minute later
        assert "with pgvector" in (await memory.recall("acme", embedding=[1.0, 2.0])).note


async def test_rows_of_another_model_are_neither_compared_nor_missed(
    place: Database, inspector: Connection, asked: list[float]
) -> None:
    class Asking:
        model = "clusters"

        async def embed(self, texts: Any) -> Any:
            return [asked for _ in texts]

    await inspector.execute("set session_replication_role = replica")
    await inspector.execute(
        "update memory.records set embedding_model = 'another'"
        " where tenant_key = 'acme' and metadata @> '{\"n\": 1}'"
    )
    others = await inspector.fetchval(
        "select count(*) from memory.records where embedding_model = 'another'"
    )
    store = PostgresStore(place.app_url)
    async with Memory(store, embedder=Asking(), subject_pepper="pepper") as memory:
        answer = await memory.recall("acme", text="x", limit=10)
        assert "through an HNSW index" in answer.note
        assert f"; {others} skipped because embedded by another model" in answer.note
        assert {hit.record.embedding_model for hit in answer.hits} == {"clusters"}
        unnamed = await memory.recall("acme", embedding=asked, limit=200)
        assert {hit.record.embedding_model for hit in unnamed.hits} == {"clusters", "another"}
        assert "skipped" not in unnamed.note


async def test_what_is_forgotten_is_gone_from_the_index_and_its_neighbour_is_not(
    place: Database, inspector: Connection, asked: list[float]
) -> None:
    async with opened(PostgresStore(place.app_url)) as memory:
        items = [
            {"text": person, "subject_keys": person, "embedding": asked}
            for person in ("ann", "bob", "ann", "bob")
        ]
        told = [one.record for one in await memory.remember_many("acme", items=items)]
        gone, kept = {told[0].record_id, told[2].record_id}, {told[1].record_id, told[3].record_id}
        before = await memory.recall("acme", embedding=asked, limit=10)
        assert set(ids(before)) >= gone | kept
        row = "select r::text from memory.records as r where record_id = $1"
        images = [await inspector.fetchval(row, record_id) for record_id in sorted(kept)]
        await memory.forget("acme", subject_key="ann")
        after = await memory.recall("acme", embedding=asked, limit=10)
        assert "through an HNSW index" in after.note
        assert not gone & set(ids(after))
        assert kept <= set(ids(after))
        assert len(after.hits) == 10
        assert [await inspector.fetchval(row, record_id) for record_id in sorted(kept)] == images
        left = await inspector.fetchval(
            "select count(*) from memory.records where record_id = any ($1)", list(gone)
        )
        assert left == 0
