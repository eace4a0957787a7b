"""What LangGraph's store erases is gone from the tables, and its neighbour is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from langgraph.store.base import PutOp

from memory import Memory, PostgresStore
from memory.integrations.langgraph import ErasableStore, LangChainEmbedder
from peers import Letters
from servers import Database
from stores import mentions

DANA = ("users", "dana")
NEIGHBOUR = "select r::text from memory.records as r where text ~ 'bystand' order by 1"


@pytest.fixture
async def store(database: Database) -> AsyncIterator[ErasableStore]:
    letters = LangChainEmbedder(Letters())
    async with Memory(
        PostgresStore(database.app_url), embedder=letters, subject_pepper="p"
    ) as made:
        yield ErasableStore(made.for_tenant("shop"), subjects=1)


@pytest.mark.parametrize("nightly", [False, True], ids=["sweep", "expire before"])
async def test_a_sweep_leaves_no_older_version_of_what_has_expired(
    store: ErasableStore, superuser, nightly: bool
) -> None:
    await store.aput(DANA, "living", {"v": "bystanding OLDER"})
    await store.aput(DANA, "living", {"v": "bystanding"})
    kept = await superuser.fetch(NEIGHBOUR)
    assert len(kept) == 2
    await store.aput(DANA, "k", {"v": "UNMISTAKABLE"})
    await store.aput(DANA, "k", {"v": "UNMISTAKABLE too"}, ttl=0.002)
    await asyncio.sleep(0.2)
    if nightly:
        assert (await store.tenant.expire()).counts.records == 1
    assert await store.sweep_ttl() == 2 - nightly
    assert await mentions(superuser, "UNMISTAKABLE") == {}
    assert await superuser.fetch(NEIGHBOUR) == kept


async def test_a_delete_within_a_batch_erases_what_was_there_before_it(
    store: ErasableStore, superuser
) -> None:
    for key in ("k", "bystander"):
        await store.aput(DANA, key, {"v": "bystanding" if key != "k" else "UNMISTAKABLE"})
    kept = await superuser.fetch(NEIGHBOUR)
    await store.abatch(
        [
            PutOp(DANA, "k", {"v": "UNMISTAKABLE"}),
            PutOp(DANA, "k", None),
            PutOp(DANA, "k", {"v": 2}),
        ]
    )
    assert await mentions(superuser, "UNMISTAKABLE") == {}
    assert await superuser.fetch(NEIGHBOUR) == kept
    assert (await store.aget(DANA, "k")).value == {"v": 2}
    versions = await store.tenant.history(record_key="langgraph:users.dana..k")
    assert len(versions) == len(await store.tenant.erasure_history()) == 1
