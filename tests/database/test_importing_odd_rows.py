"""Moving in from tables in which somebody wrote what neither LangGraph nor mem0 would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from langgraph.store.postgres import PostgresStore as Theirs
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import Memory, PostgresStore
from memory.integrations import importing
from memory.integrations.importing import from_langgraph, from_mem0
from memory.integrations.langgraph import ErasableStore
from memory.urls import normalize_url
from peers import make_mem0, mem0_payload
from servers import Database
from stores import mentions

NESTED = '{"data": "MARK", "user_id": "dana", "x": ' + "[" * 3_000 + "]" * 3_000 + "}"
LONG = '{"data": "MARK", "user_id": "dana", "x": ' + "9" * 5_000 + "}"
NEIGHBOUR = "select r::text from memory.records as r where text ~ 'bystand' order by 1"


@pytest.fixture
async def source(database: Database) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(normalize_url(database.superuser_url))
    yield engine
    await engine.dispose()


@pytest.fixture
async def ours(database: Database) -> AsyncIterator[ErasableStore]:
    async with Memory(PostgresStore(database.app_url), subject_pepper="p") as made:
        yield ErasableStore(made.for_tenant("shop"), subjects=1)


@pytest.fixture
def theirs(database: Database) -> psycopg.Connection:
    with Theirs.from_conn_string(database.superuser_url) as store:
        store.setup()
        store.put(("users", "zoe"), "k", {"v": "bystanding"})
    with psycopg.connect(database.superuser_url, autocommit=True) as owner:
        yield owner


def put(owner: psycopg.Connection, prefix: str, key: str, value: str, **columns: str | None):
    names = "".join(f", {name}" for name in columns)
    marks = ", %s" * len(columns)
    owner.execute(
        f"insert into store (prefix, key, value{names}) values (%s, %s, %s{marks})",
        (prefix, key, value, *columns.values()),
    )


async def test_an_odd_item_of_langgraphs_stops_no_other(
    theirs: psycopg.Connection,
    source: AsyncEngine,
    ours: ErasableStore,
    superuser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importing, "_PAGE", 5)
    for key, value in (
        ("nested", NESTED), ("long", LONG), ("null", "null"), ("list", "[]"), ("text", '"MARK"'),
    ):  # fmt: skip
        put(theirs, "users.dana", key, value)
    mark = '{"v": "MARK"}'
    for key, column, time in (
        ("BC", "updated_at", "0044-03-15 BC"),
        ("late", "updated_at", "20000-01-01"),
        ("never", "updated_at", "infinity"),
        ("always", "created_at", "-infinity"),
        ("ended", "expires_at", "-infinity"),
        ("ended BC", "expires_at", "0044-03-15 BC"),
    ):
        put(theirs, "users.dana", key, mark, **{column: time})
    # What would else be the key "x..a" in ("users", "1") twice, and labels that LangGraph refuses.
    put(theirs, "users.dana..x", "a", mark)
    put(theirs, "users..dana", "a", mark)
    put(theirs, "users.dana", "x..a", '{"v": "kept"}')
    put(theirs, "users.eve", "dateless", '{"v": "kept"}', created_at=None, updated_at=None)
    put(theirs, "users.eve", "for ever", '{"v": "kept"}', expires_at="infinity")
    put(theirs, "users.eve", "for long", '{"v": "kept"}', expires_at="20000-01-01")
    done = await from_langgraph(ours, source)
    assert (done.read, done.imported) == (18, 5)
    assert done.skipped == {"expired": 2, "refused": 11}
    assert await mentions(superuser, "MARK") == {}
    kept = await superuser.fetch(NEIGHBOUR)
    assert len(kept) == 1
    ends = {
        key: (await ours.arecord(("users", "eve"), key)).expires_at
        for key in ("dateless", "for ever", "for long")
    }
    assert (ends["dateless"], ends["for ever"], ends["for long"].year) == (None, None, 9999)
    assert (await ours.aget(("users", "dana"), "x..a")).value == {"v": "kept"}
    again = await from_langgraph(ours, source)
    assert (again.existing, dict(again.skipped)) == (5, dict(done.skipped))
    assert await superuser.fetch(NEIGHBOUR) == kept


async def test_an_odd_payload_of_mem0s_stops_no_other(
    database: Database, source: AsyncEngine, ours: ErasableStore, superuser
) -> None:
    make_mem0(database, [mem0_payload("bystanding", user_id="zoe")])
    base = {"data": "MARK", "user_id": "dana"}
    odd = [
        NESTED, LONG, "null", "[]", '"x"', json.dumps({**base, "data": ["MARK"]}),
        *(json.dumps({**base, name: value}) for name, value in (
            ("updated_at", "9999-12-31T23:00:00-14:00"),
            ("updated_at", "0001-01-01T01:00:00+14:00"),
            ("created_at", 1e300),
            ("created_at", "yesterday"),
            ("expiration_date", 1e17),
            ("expiration_date", "9999-12-31T23:00:00-14:00"),
        )),
    ]  # fmt: skip
    with psycopg.connect(database.superuser_url) as owner:
        for place, payload in enumerate(odd, 100):
            owner.execute("insert into mem0 values (%s, null, %s)", (UUID(int=place), payload))
        owner.execute("insert into mem0 values (%s, null, null)", (UUID(int=99),))
        last = json.dumps({"data": "kept", "user_id": "eve", "expiration_date": "9999-12-31"})
        owner.execute("insert into mem0 values (%s, null, %s)", (UUID(int=200), last))
    done = await from_mem0(ours.tenant, source)
    assert (done.read, done.imported) == (len(odd) + 3, 2)
    assert done.skipped == {"nobody": 1, "refused": len(odd)}
    assert await mentions(superuser, "MARK") == {}
    assert len(await superuser.fetch(NEIGHBOUR)) == 1
    [record] = await ours.tenant.records(subject_keys="eve")
    assert record.expires_at == datetime.max.replace(tzinfo=UTC)


async def test_no_spelling_of_a_past_date_brings_an_expired_memory_back(
    database: Database, source: AsyncEngine, ours: ErasableStore, superuser
) -> None:
    past = [
        "2020-01-01T00:00:00Z",
        " 2020-01-01",
        "20200101",
        1700000000,
        1.7e9,
        "2020-01-01 10:00",
    ]
    unknown = ["soon", "", True, [2020], "2020-13-45"]
    future = {"2999-01-01T10:00:00+02:00": (2999, 1, 1, 8), 32503680000: (3000, 1, 1)}
    make_mem0(
        database,
        [
            mem0_payload(text, user_id="dana", expiration_date=value)
            for text, values in (("MARK", past + unknown), ("bystanding", future))
            for value in values
        ],
    )
    done = await from_mem0(ours.tenant, source)
    assert done.skipped == {"expired": len(past), "refused": len(unknown)}
    assert await mentions(superuser, "MARK") == {}
    found = {record.expires_at for record in await ours.tenant.records()}
    assert found == {datetime(*parts, tzinfo=UTC) for parts in future.values()}
    assert done.imported == 2


async def test_what_differs_without_a_newer_time_is_counted_and_left(
    theirs: psycopg.Connection,
    database: Database,
    source: AsyncEngine,
    ours: ErasableStore,
    superuser,
) -> None:
    make_mem0(database, [mem0_payload(f"Bikes {n}", user_id="dana") for n in range(4)])
    put(theirs, "users.dana", "same", '{"v": 98450.5, "tel": "98450 12345"}')
    put(theirs, "users.dana", "differs", '{"v": "before"}')
    put(theirs, "users.dana", "ttl", '{"v": 1}', ttl_minutes="60", expires_at="2999-01-01")
    assert (await from_langgraph(ours, source)).imported == 4
    assert (await from_mem0(ours.tenant, source)).imported == 4
    await ours.aget(("users", "dana"), "ttl")
    every = "select r::text from memory.records as r order by 1"
    before = await superuser.fetch(every)
    theirs.execute("""update store set value = '{"v": "MARK"}' where key = 'differs'""")
    theirs.execute("update store set expires_at = '2998-01-01' where key = 'ttl'")
    for place, path, value in ((1, "data", "MARK"), (2, "user_id", "MARK"), (3, "mark", "MARK")):
        theirs.execute(
            "update mem0 set payload = payload || jsonb_build_object(%s::text, %s::text)"
            " where id = %s",
            (path, value, UUID(int=place)),
        )
    done = await from_langgraph(ours, source)
    assert (done.imported, done.existing, done.skipped) == (0, 3, {"changed": 1})
    done = await from_mem0(ours.tenant, source)
    assert (done.imported, done.existing, done.skipped) == (0, 1, {"changed": 3})
    theirs.execute(
        """update mem0 set payload = payload || '{"expiration_date": "2998-01-01"}'
        where id = %s""",
        (UUID(int=4),),
    )
    assert (await from_mem0(ours.tenant, source)).skipped == {"changed": 4}
    assert await mentions(superuser, "MARK") == {}
    assert await superuser.fetch(every) == before
    # With a time of its own it comes as a new version, and what is newer here stays.
    theirs.execute("update store set updated_at = now() where key = 'differs'")
    await ours.aput(("users", "dana"), "same", {"v": "ours"})
    done = await from_langgraph(ours, source)
    assert (done.imported, done.existing, done.skipped) == (1, 3, {})
    assert (await ours.aget(("users", "dana"), "differs")).value == {"v": "MARK"}


async def test_two_kinds_import_the_same_items_without_a_conflict(
    theirs: psycopg.Connection, source: AsyncEngine, ours: ErasableStore
) -> None:
    other = ErasableStore(ours.tenant, subjects=1, kind="agents")
    assert (await from_langgraph(ours, source)).imported == 1
    assert (await from_langgraph(other, source)).imported == 1
    assert len(await ours.asearch(())) == len(await other.asearch(())) == 1
