"""Every read is right under every plan, and reads no more of a large table than it needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import Exported, LineageNode, Memory, PartialErasureError, Recall, Record, Tombstone
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from plans import MODES, SWITCHES, explained, nodes
from rawsql import Connection
from servers import Database, Postgres
from stores import record_statements

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
OTHERS = 150_000
# Forty memories with their links, terms and vectors; a scan of the others reads thousands.
MOST_BUFFERS = 1_500

Read = Callable[[Memory, str], Awaitable[Any]]
READS: dict[str, Read] = {
    "recent of a person": lambda m, t: m.recall(t, subject_keys="ann"),
    "recent of two people": lambda m, t: m.recall(t, subject_keys=["ann", "bob"]),
    "recent of both people": lambda m, t: m.recall(
        t, subject_keys=["ann", "bob"], subject_match="all"
    ),
    "meaning for both people": lambda m, t: m.recall(
        t, embedding=[1.0, 0.3], subject_keys=["ann", "bob"], subject_match="all", min_score=0.1
    ),
    "old words of both people": lambda m, t: m.recall(
        t,
        text="window tea",
        subject_keys=["ann", "bob"],
        subject_match="all",
        include_superseded=True,
    ),
    "records of both people": lambda m, t: m.records(
        t, subject_keys=["ann", "bob"], subject_match="all", include_superseded=True
    ),
    "words of a person": lambda m, t: m.recall(t, text="window tea", subject_keys="ann"),
    "words of a person, filtered": lambda m, t: m.recall(
        t, text="window tea", subject_keys="ann", kinds="episodic", since=NOON, metadata={"n": {}}
    ),
    "meaning for a person": lambda m, t: m.recall(t, embedding=[1.0, 0.3], subject_keys="ann"),
    "meaning for a person, filtered": lambda m, t: m.recall(
        t, embedding=[1.0, 0.3], subject_keys="ann", kinds="episodic", until=NOON + timedelta(1)
    ),
    "a rare word": lambda m, t: m.recall(t, text="marzipan"),
    "a rare keyword": lambda m, t: m.recall(t, text="marzipan", strategy="keyword"),
    "keywords of a person": lambda m, t: m.recall(
        t, text="seat marzipan", strategy="keyword", subject_keys="ann"
    ),
    "both for a person": lambda m, t: m.recall(
        t,
        text="seat marzipan",
        embedding=[1.0, 0.3],
        strategy="hybrid",
        subject_keys="ann",
        neighbours=0.5,
    ),
    "records of a person": lambda m, t: m.records(t, subject_keys="ann"),
    "records of a person, compared": lambda m, t: m.records(
        t, subject_keys="ann", where=[(("n", "deep"), ">", 30)]
    ),
    "records by key": lambda m, t: m.records(t, record_keys=["plan", "none"]),
    "records under a prefix": lambda m, t: m.records(t, key_prefix="pla", limit=10),
    "words under a prefix": lambda m, t: m.recall(t, text="second", key_prefix="pla"),
    "keys under a prefix": lambda m, t: m.record_keys(t, prefix="p", limit=10),
    "keys behind one": lambda m, t: m.record_keys(t, after="key-9", limit=10),
    "history": lambda m, t: m.history(t, record_key="plan"),
    "tombstones": lambda m, t: m.erasure_history(t, limit=10),
    "tombstones of a person": lambda m, t: m.erasure_history(t, subject_key="cid", limit=10),
    "decisions": lambda m, t: m.decisions(t, limit=10),
    "decisions about a person": lambda m, t: m.decisions(t, subject_key="dan", before=10**9),
    "export": lambda m, t: exported(m, t),
    "lineage": lambda m, t: lineage(m, t),
    "owing": lambda m, t: m.purge_outstanding(t),
}
# These look at everything the tenant holds.
UNBOUNDED: dict[str, Read] = {
    "meaning": lambda m, t: m.recall(t, embedding=[1.0, 0.3]),
    "words": lambda m, t: m.recall(t, text="window tea marzipan", limit=30),
    "keywords": lambda m, t: m.recall(t, text="window tea", strategy="keyword", limit=30),
    "both": lambda m, t: m.recall(
        t, text="window tea", embedding=[1.0, 0.3], strategy="hybrid", kinds="episodic"
    ),
    "recent": lambda m, t: m.recall(t),
    "records": lambda m, t: m.records(t, limit=10),
    "records of a kind": lambda m, t: m.records(t, limit=10, kinds=["episodic", "summary"]),
    "next page": lambda m, t: m.records(t, limit=10, after=UUID(int=(1 << 128) - 1)),
}


async def exported(memory: Memory, tenant: str) -> list[Exported]:
    """Everything held about a person."""
    return [entry async for entry in memory.export(tenant, subject_key="ann", vectors=True)]


async def lineage(memory: Memory, tenant: str) -> list[LineageNode]:
    """What would go with a person, and its sources, without the dry run that lineage adds."""
    return list((await memory._store.graph(tenant, "ann", None, 200)).nodes)


def shown(answer: Any) -> Any:
    """An answer as comparable values, with the tenants in it."""
    if isinstance(answer, Recall):
        return [(hit.record, round(hit.score, 6)) for hit in answer.hits]
    return answer


def tenants_in(answer: Any) -> set[str]:
    if isinstance(answer, Recall):
        return {hit.record.tenant_key for hit in answer.hits}
    if isinstance(answer, list):
        return {item.tenant_key for item in answer if isinstance(item, Record | Tombstone)}
    return set()


def is_empty(answer: Any) -> bool:
    if isinstance(answer, Recall):
        return not answer.hits
    return not (answer if isinstance(answer, list) else answer.outstanding)


async def furnish(memory: Memory, tenant: str) -> Record:
    """Forty memories of Ann's, with all that the reads look for; one is returned."""
    items = [
        {
            "text": f"{'window seat' if n % 2 else 'tea'} {n}",
            "subject_keys": ["ann", "bob"] if n % 5 == 0 else "ann",
            "embedding": [1.0, n / 40],
            "occurred_at": NOON + timedelta(minutes=n),
            "metadata": {"n": {"deep": n}},
        }
        for n in range(40)
    ]
    told = [one.record for one in await memory.remember_many(tenant, items=items)]
    await memory.hold(tenant, subject_key="dan")
    await memory.derive(tenant, kind="summary", text="window tea marzipan", sources=told[:3])
    for word in ("first", "second"):
        await memory.remember(tenant, text=word, subject_keys="ann", record_key="plan")
    gone = (await memory.remember(tenant, text="gone", subject_keys="cid")).record
    await memory.register_artefact(tenant, adapter="index", artefact_id="one", sources=gone)
    with pytest.raises(PartialErasureError):
        await memory.forget(tenant, subject_key="cid")
    return told[7]


def opened(url: str) -> tuple[AsyncEngine, Memory]:
    engine = create_async_engine(normalize_url(url), pool_size=1, max_overflow=0)
    return engine, Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")


@pytest.fixture(params=["server", "postgres15"])
def place(request: pytest.FixtureRequest) -> Iterator[Database]:
    server: Postgres = request.getfixturevalue(request.param)
    with server.migrated() as database:
        yield database


async def test_every_read_is_right_under_every_plan_whatever_tenant_was_left(
    place: Database,
) -> None:
    engine, memory = opened(place.app_url)
    first = await furnish(memory, "acme")
    await furnish(memory, "other")
    reads = {
        **READS,
        **UNBOUNDED,
        "get": lambda m, t: _listed(m.get(t, record_id=first)),
        "history by id": lambda m, t: m.history(t, record_key=str(first.record_id)),
    }
    expected = {name: await read(memory, "acme") for name, read in reads.items()}
    assert [name for name, answer in expected.items() if is_empty(answer)] == []
    wrong = []
    for mode in MODES:
        for switch in (None, *SWITCHES):
            for left in ("", "other"):
                await prepare(engine, mode, switch, left)
                for name, read in reads.items():
                    answer = await read(memory, "acme")
                    if shown(answer) != shown(expected[name]) or tenants_in(answer) - {"acme"}:
                        wrong.append((name, mode, switch, left))
    await engine.dispose()
    assert wrong == []


async def _listed(answer: Awaitable[Any]) -> list[Any]:
    found = await answer
    return [] if found is None else [found]


async def prepare(engine: AsyncEngine, mode: str, switch: str | None, left: str) -> None:
    """Set the one pooled connection up; cached plans go."""
    statements = [f"set enable_{name} = on" for name in SWITCHES]
    statements += [f"set plan_cache_mode = {mode}", "discard plans"]
    statements += [f"set enable_{switch} = off"] if switch else []
    statements += ["set jit = off"]  # a penalised plan would be compiled, for seconds
    statements += [f"set app.current_tenant = '{left}'"]
    async with engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))


OTHER_ROWS = f"""
    create temp table other as
    select
        case when n % 2 = 0 then 'acme' else 'bulk-' || n % 50 end as tenant_key,
        gen_random_uuid() as record_id,
        'person-' || n % 5000 as subject_key,
        n
    from generate_series(1, {OTHERS}) as n;
    insert into memory.records
        (tenant_key, record_id, text, embedding, occurred_at, term_count, record_key, metadata)
    select tenant_key, record_id, 'window tea ' || n, array[1, n % 100]::real[],
        '2020-01-01'::timestamptz + n * interval '1 second', 3,
        case when n % 10 = 0 then 'key-' || n end, '{{"n": {{}}}}'
    from other;
    insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
    select tenant_key, record_id, subject_key, encode(sha256(subject_key::bytea), 'hex')
    from other;
    insert into memory.postings (tenant_key, term, record_id, term_count)
    select tenant_key, t.term, record_id, 3
    from other cross join unnest(array['window', 'tea']) as t (term);
"""


@pytest.fixture(scope="module")
def crowded(server: Postgres) -> Iterator[Database]:
    """Ann's forty memories beside many of other people's, of her tenant and of others."""
    with server.migrated() as database:
        asyncio.run(_crowd(database))
        yield database


async def _crowd(database: Database) -> None:
    engine, memory = opened(database.app_url)
    await furnish(memory, "acme")
    await engine.dispose()
    connection = await asyncpg.connect(database.superuser_url)
    # Rows as a bulk load leaves them: triggers would take a minute, and nothing is analysed.
    await connection.execute(f"set session_replication_role = replica; {OTHER_ROWS}")
    await connection.close()


@pytest.fixture
async def app_role(crowded: Database) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(crowded.app_url)
    yield connection
    await connection.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", READS)
async def test_a_read_beside_many_other_rows_touches_few_pages_and_asks_for_the_tenant_once(
    crowded: Database, app_role: Connection, name: str, mode: str
) -> None:
    engine, memory = opened(crowded.app_url)
    sent = record_statements(engine)
    await memory.capabilities()
    sent.clear()
    assert not is_empty(await READS[name](memory, "acme"))
    await engine.dispose()
    assert sent
    for statement, values in sent:
        plan = await explained(app_role, statement, values, mode)
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < MOST_BUFFERS
        for node in nodes(plan):
            conditions = {k: v for k, v in node.items() if "Cond" in k or "Filter" in k}
            assert "current_setting" not in json.dumps(conditions)
            if "current_setting" in json.dumps(node.get("Output", [])):
                assert node["Actual Loops"] <= 1
