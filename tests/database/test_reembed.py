"""Changing the model: old vectors go, batch by batch, while the store is in use."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import asyncpg
import pytest

from memory import HashingEmbedder, InstallError, InvalidInputError, Memory, PostgresStore
from memory.maintenance.reembedding import reembed
from rawsql import Connection
from servers import Database, Postgres
from stores import broken_rules, image, mentions

OLD, NEW = HashingEmbedder(8), HashingEmbedder(12)


class Watched:
    """The new model; keeps what it was shown, and does something before it answers."""

    model = NEW.model

    def __init__(self, first: Callable[[Sequence[str]], Awaitable[Any]] | None = None) -> None:
        self.shown: list[str] = []
        self.first = first

    async def embed(self, texts: Sequence[str]) -> Any:
        self.shown += texts
        answer = None if self.first is None else await self.first(texts)
        return await NEW.embed(texts) if answer is None else answer


@pytest.fixture(params=["server", "postgres15"])
def place(request: pytest.FixtureRequest) -> Iterator[Database]:
    server: Postgres = request.getfixturevalue(request.param)
    with server.migrated() as database:
        yield database


def opened(place: Database, embedder: Any = OLD) -> Memory:
    return Memory(PostgresStore(place.app_url), embedder=embedder, subject_pepper="pepper")


async def tell(memory: Memory, tenant: str, count: int, person: str = "ann") -> list[Any]:
    items = [{"text": f"{person} {n}", "subject_keys": person} for n in range(count)]
    return [one.record for one in await memory.remember_many(tenant, items=items)]


@pytest.fixture
async def inspector(place: Database) -> Any:
    connection = await asyncpg.connect(place.superuser_url)
    yield connection
    await connection.close()


async def models(inspector: Connection, tenant: str) -> dict[Any, int]:
    """How many records of the tenant each model and length has."""
    rows = await inspector.fetch(
        "select embedding_model, embedding_dims, count(*) as n from memory.records"
        " where tenant_key = $1 group by 1, 2",
        tenant,
    )
    return {(row["embedding_model"], row["embedding_dims"]): row["n"] for row in rows}


async def vectors(inspector: Connection, tenant: str) -> dict[str, list[float]]:
    rows = await inspector.fetch(
        "select text, embedding from memory.records where tenant_key = $1", tenant
    )
    return {row["text"]: list(row["embedding"] or []) for row in rows}


async def test_no_old_vector_is_left_and_what_was_right_is_not_touched(
    place: Database, inspector: Connection
) -> None:
    async with opened(place) as old, opened(place, NEW) as new:
        told = await tell(old, "acme", 7)
        await old.derive("acme", kind="summary", text="a digest", sources=told[:2])
        await old.remember("acme", text="first", subject_keys="bob", record_key="plan")
        await old.remember("acme", text="second", subject_keys="bob", record_key="plan")
        await tell(new, "acme", 2, "cid")
        await old.remember("bare", text="no vector", subject_keys="ann", embedding=[1.0] * 12)
        await tell(old, "other", 3)
        before = await vectors(inspector, "acme")
        kept = await rows(inspector, "embedding_model = 'hashing-12' or tenant_key = 'bare'")
        told_of: list[tuple[str, int, int]] = []
        done = await reembed(
            place.owner_url, NEW, batch=3, progress=lambda *told: told_of.append(told)
        )
        assert (done.records, done.tenants) == (13, 2)
        assert told_of[-1] == ("records", 13, 13)
        assert [told[1] for told in told_of] == sorted(told[1] for told in told_of)
        assert await rows(inspector, "text like 'cid%' or tenant_key = 'bare'") == kept
        assert await models(inspector, "acme") == {(NEW.model, 12): 12}
        after = await vectors(inspector, "acme")
        for text, vector in after.items():
            (expected,) = await NEW.embed([text])
            assert vector == pytest.approx(expected, abs=1e-6)
        olds = [vector for text, vector in before.items() if not text.startswith("cid")]
        found = await inspector.fetchval(
            "select count(*) from memory.records where embedding::text = any ($1)",
            [str(vector).replace("[", "{").replace("]", "}").replace(" ", "") for vector in olds],
        )
        assert found == 0
        assert "skipped" not in (await new.recall("acme", text="ann 3")).note
        assert (await reembed(place.owner_url, NEW)).records == 0


async def rows(inspector: Connection, where: str) -> list[str]:
    """The rows as they are stored: where they lie, and which transaction wrote them, too."""
    found = await inspector.fetch(
        f"select r.ctid::text || r.xmin::text || r::text as row from memory.records as r"
        f" where {where} order by record_id"
    )
    return [row["row"] for row in found]


async def test_one_tenant_is_done_and_the_other_left_as_it_was(
    place: Database, inspector: Connection
) -> None:
    async with opened(place) as old:
        await tell(old, "acme", 4)
        await tell(old, "acme-corp", 4)
    other = await image(inspector, "acme-corp")
    assert (await reembed(place.owner_url, NEW, tenant_key="acme")).records == 4
    assert await image(inspector, "acme-corp") == other
    assert await models(inspector, "acme") == {(NEW.model, 12): 4}
    assert (await reembed(place.owner_url, NEW, tenant_key="nobody")).records == 0


async def test_the_embedder_sees_stored_text_only_and_no_transaction_waits_for_it(
    place: Database, inspector: Connection
) -> None:
    async def look(texts: Sequence[str]) -> None:
        for row in await inspector.fetch(
            "select state, backend_xmin from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        ):
            assert row["state"] in (None, "idle")
            assert row["backend_xmin"] is None

    async with opened(place) as old:
        await old.remember("acme", text="call 98450 12345 today", subject_keys="ann")
    embedder = Watched(look)
    await reembed(place.owner_url, embedder)
    assert embedder.shown
    assert set(embedder.shown) == {"call [PHONE:****2345] today"}


@pytest.mark.parametrize(
    "answer",
    [[], [[1.0]] * 3, [[math.nan] * 12] * 2, [[0.0] * 12] * 2, [[1.0] * 11] * 2, "ab", [None] * 2],
    ids=["none", "too many", "nan", "zero", "another length", "a string", "no vectors"],
)
async def test_a_wrong_answer_is_named_and_its_batch_is_not_stored(
    place: Database, inspector: Connection, answer: Any
) -> None:
    async def third(texts: Sequence[str]) -> Any:
        calls.append(len(texts))
        return answer if len(calls) == 3 else None

    calls: list[int] = []
    async with opened(place) as old:
        await tell(old, "acme", 6)
    with pytest.raises(InvalidInputError) as refused:
        await reembed(place.owner_url, Watched(third), batch=2)
    assert refused.value.field == "embedder"
    # The first call learns the length, the second is a batch.
    assert await models(inspector, "acme") == {(NEW.model, 12): 2, (OLD.model, 8): 4}
    assert await broken_rules(inspector) == {}
    resumed = Watched()
    assert (await reembed(place.owner_url, resumed, batch=2)).records == 4
    assert set(resumed.shown) == {f"ann {n}" for n in range(6)} - {"ann 0", "ann 1"} | {"ann 0"}
    assert await models(inspector, "acme") == {(NEW.model, 12): 6}


async def test_what_the_embedder_raises_is_the_hosts_own_and_the_rest_is_done_later(
    place: Database, inspector: Connection
) -> None:
    async def fail(texts: Sequence[str]) -> None:
        if "ann 4" in texts:
            raise failure

    failure = TimeoutError("provider")
    async with opened(place) as old:
        await tell(old, "acme", 6)
    with pytest.raises(TimeoutError) as raised:
        await reembed(place.owner_url, Watched(fail), batch=2)
    assert raised.value is failure
    assert (await models(inspector, "acme"))[OLD.model, 8] == 2
    assert (await reembed(place.owner_url, NEW, batch=2)).records == 2


async def test_a_cancelled_run_leaves_whole_batches(place: Database, inspector: Connection) -> None:
    async def hang(texts: Sequence[str]) -> None:
        if "ann 4" in texts:
            reached.set()
            await asyncio.Event().wait()

    reached = asyncio.Event()
    async with opened(place) as old:
        await tell(old, "acme", 6)
    task = asyncio.create_task(reembed(place.owner_url, Watched(hang), batch=2))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await models(inspector, "acme") == {(NEW.model, 12): 4, (OLD.model, 8): 2}


async def test_who_is_forgotten_while_the_embedder_thinks_stays_forgotten(
    place: Database, inspector: Connection
) -> None:
    async with opened(place) as old:

        async def meanwhile(texts: Sequence[str]) -> None:
            if len(texts) > 1:
                await old.forget("acme", subject_key="ann")
                await old.remember(
                    "acme", text="bob changed", subject_keys="bob", record_key="plan"
                )

        await tell(old, "acme", 3, "ann")
        await tell(old, "acme", 3, "bob")
        await old.remember("acme", text="bob planned", subject_keys="bob", record_key="plan")
        done = await reembed(place.owner_url, Watched(meanwhile))
        assert done.records == 5
        assert await mentions(inspector, "ann ") == {}
        versions = await old.history("acme", record_key="plan")
        assert [version.text for version in versions] == ["bob changed", "bob planned"]
        assert versions[1].superseded_at is not None
    assert await models(inspector, "acme") == {(NEW.model, 12): 5}
    assert await broken_rules(inspector) == {}


async def test_an_id_that_was_given_anew_never_gets_the_vector_of_the_erased_text(
    place: Database, inspector: Connection
) -> None:
    async with opened(place) as old:
        (first, _) = await tell(old, "acme", 2)

        async def meanwhile(texts: Sequence[str]) -> None:
            if "ann 0" in texts and len(texts) > 1:
                await old.forget("acme", subject_key="ann")
                await old.remember(
                    "acme", text="of bob", subject_keys="bob", record_id=first.record_id
                )

        done = await reembed(place.owner_url, Watched(meanwhile))
    (expected,) = await NEW.embed(["of bob"])
    assert await vectors(inspector, "acme") == {"of bob": pytest.approx(expected, abs=1e-6)}
    assert done.records == 1


async def test_a_forget_before_it_takes_the_old_vectors_too(
    place: Database, inspector: Connection
) -> None:
    async with opened(place) as old, opened(place, NEW) as new:
        await tell(old, "acme", 3, "ann")
        await tell(old, "acme", 2, "bob")
        kept = await rows(inspector, "text like 'bob%'")
        await new.forget("acme", subject_key="ann")
        assert await mentions(inspector, "ann ") == {}
        assert await models(inspector, "acme") == {(OLD.model, 8): 2}
        assert await rows(inspector, "text like 'bob%'") == kept


async def test_records_without_a_vector_or_a_name_are_taken_when_asked(
    place: Database, inspector: Connection
) -> None:
    async with opened(place, None) as plain:
        await plain.remember("acme", text="bare", subject_keys="ann")
        await plain.remember("acme", text="nameless", subject_keys="ann", embedding=[1.0] * 12)
        await plain.remember("acme", text="short", subject_keys="ann", embedding=[1.0] * 3)
    assert (await reembed(place.owner_url, NEW)).records == 1
    assert (await reembed(place.owner_url, NEW, missing=True)).records == 1
    assert (await models(inspector, "acme"))[None, 12] == 1
    assert (await reembed(place.owner_url, NEW, unnamed=True)).records == 1
    assert await models(inspector, "acme") == {(NEW.model, 12): 3}

    class Nameless:
        embed = HashingEmbedder(12).embed

    assert (await reembed(place.owner_url, Nameless(), unnamed=True)).records == 0


async def test_what_no_search_may_find_gets_no_vector_unless_the_wordless_are_asked_for(
    place: Database, inspector: Connection
) -> None:
    async with opened(place) as old:
        await old.remember("acme", text="hidden", subject_keys="ann", searchable=False)
        await old.remember("acme", text="open", subject_keys="ann")
    async with Memory(
        PostgresStore(place.app_url), postings=False, subject_pepper="pepper"
    ) as bare:
        await bare.remember("acme", text="bare", subject_keys="ann")
    kept = await rows(inspector, "text <> 'open'")
    shown = Watched()
    assert (await reembed(place.owner_url, shown, missing=True)).records == 1
    assert set(shown.shown) == {"open"}
    assert await rows(inspector, "text <> 'open'") == kept
    assert (await reembed(place.owner_url, NEW, wordless=True)).records == 2
    assert await models(inspector, "acme") == {(NEW.model, 12): 3}


async def test_only_the_owner_may(place: Database, inspector: Connection) -> None:
    async with opened(place) as old:
        await tell(old, "acme", 2)
    before = await image(inspector, "acme")
    for role in ("app", "operator", "host"):
        for tenant in ("acme", None):
            with pytest.raises(InstallError):
                await reembed(place.url(role), NEW, tenant_key=tenant)
    assert await image(inspector, "acme") == before
    assert (await reembed(place.owner_url, NEW, tenant_key="acme")).records == 2


@pytest.mark.parametrize("batch", [0, 1_001, True, 2.0])
async def test_a_batch_is_of_one_to_a_thousand(place: Database, batch: Any) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await reembed(place.owner_url, NEW, batch=batch)
    assert refused.value.field == "batch"
    assert (await reembed(place.owner_url, NEW, batch=1)).records == 0


async def test_writers_and_erasures_beside_it_lose_nothing_and_bring_nobody_back(
    place: Database, inspector: Connection
) -> None:
    async with opened(place) as old, opened(place, NEW) as new:
        for number in range(12):
            await tell(old, "acme", 10, f"p{number}")
        chance = random.Random(5)  # noqa: S311
        gone = {f"p{number}" for number in range(0, 12, 2)}

        async def use(person: str) -> None:
            await asyncio.sleep(chance.random() / 5)
            if person in gone:
                await new.forget("acme", subject_key=person)
                return
            told = await tell(new, "acme", 3, person)
            await new.derive("acme", kind="summary", text=f"of {person}", sources=told)

        done, *_ = await asyncio.gather(
            reembed(place.owner_url, NEW, batch=7),
            reembed(place.owner_url, NEW, batch=5),
            *(use(f"p{number}") for number in range(12)),
        )
        assert done.records > 0
        living = {
            row["subject_key"]
            for row in await inspector.fetch("select subject_key from memory.record_subjects")
        }
        assert living == {f"p{number}" for number in range(12)} - gone
        assert await models(inspector, "acme") == {(NEW.model, 12): 6 * 14}
        assert await broken_rules(inspector) == {}
        for text, vector in (await vectors(inspector, "acme")).items():
            (expected,) = await NEW.embed([text])
            assert vector == pytest.approx(expected, abs=1e-6)
