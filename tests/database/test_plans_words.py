"""Recall by words reads postings from their index alone, as the application's role, in any plan."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memory import Memory
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from plans import MODES, explained, nodes
from rawsql import Connection
from servers import Database, Postgres
from stores import record_statements

RECORDS = 30_000
FEW = 300
# A word for the records whose number the value divides, beside one that only ten of them share.
EVERY = {"half": 2, "third": 3, "tenth": 10, "rare": 100}
WORDS = f"""
    set session_replication_role = replica;
    create temp table told as
    select
        md5(n::text)::uuid as record_id,
        n,
        array_remove(array[
            {", ".join(f"case when n % {n} = 0 then '{word}' end" for word, n in EVERY.items())},
            'w' || n / 10
        ], null) as words
    from generate_series(1, {RECORDS}) as n;
    insert into memory.records (tenant_key, record_id, text, term_count, superseded_at)
    select 'acme', record_id, array_to_string(words, ' '), cardinality(words),
        case when n % 7 = 0 then now() end
    from told;
    insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
    select 'acme', record_id, 'ann', encode(sha256('ann'), 'hex') from told
    union all
    select 'acme', record_id, 'bob', encode(sha256('bob'), 'hex') from told where n <= {FEW};
    insert into memory.postings (tenant_key, term, record_id, term_count)
    select 'acme', w.word, record_id, cardinality(words)
    from told cross join unnest(words) as w (word);
    insert into memory.tenant_counts (tenant_key, records, terms)
    select 'acme', count(*), sum(cardinality(words)) from told;
"""
READ, BOUNDED, EXHAUSTIVE, WHOLE = "read", "bounded", "exhaustive", "whole"
SAID = {
    "newest records with every term": WHOLE,
    "could change the answer": BOUNDED,
    "every record with any term": EXHAUSTIVE,
}
QUESTIONS = {
    ("lexical", "w7 w8"): READ,
    ("lexical", "half tenth rare w7"): BOUNDED,
    ("lexical", "half third"): WHOLE,
    ("lexical", "half third nowhere w9"): EXHAUSTIVE,
    ("keyword", "w7 w8"): READ,
    ("keyword", "half tenth rare w7"): BOUNDED,
    ("keyword", "half third"): EXHAUSTIVE,
}


@pytest.fixture(scope="module")
def crowded(server: Postgres) -> Iterator[Database]:
    with server.migrated() as database:
        asyncio.run(_crowd(database))
        yield database


async def _crowd(database: Database) -> None:
    connection = await asyncpg.connect(database.superuser_url)
    await connection.execute(WORDS)
    await connection.execute("vacuum memory.postings")
    await connection.close()


@pytest.fixture
async def app_role(crowded: Database) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(crowded.app_url)
    yield connection
    await connection.close()


async def sent_by(
    crowded: Database, strategy: Any, text: str, **filters: Any
) -> tuple[str, list[Any]]:
    """How the answer was found, and the statements that found it."""
    engine = create_async_engine(normalize_url(crowded.app_url), pool_size=1, max_overflow=0)
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    sent = record_statements(engine)
    answer = await memory.recall("acme", text=text, strategy=strategy, **filters)
    await engine.dispose()
    assert answer.exact
    assert answer.hits
    way = next((way for said, way in SAID.items() if said in answer.note), READ)
    return way, [one for one in sent if "memory.postings" in one[0]]


def postings_read(plan: dict[str, Any]) -> float:
    """How many entries of postings a statement went through."""
    return sum(
        node["Actual Rows"] * node["Actual Loops"]
        for node in nodes(plan)
        if node.get("Relation Name") == "postings"
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
async def test_the_index_alone_serves_every_way(
    crowded: Database, app_role: Connection, question: tuple[str, str], mode: str
) -> None:
    way, sent = await sent_by(crowded, *question)
    assert way == QUESTIONS[question]
    ((statement, values),) = sent
    plan = await explained(app_role, statement, values, mode)
    scans = [node for node in nodes(plan) if node.get("Relation Name") == "postings"]
    for node in scans:
        assert (node["Node Type"], node["Index Name"]) == ("Index Only Scan", "postings_pkey")
        assert "tenant_key" in node["Index Cond"]
        assert "term" in node["Index Cond"]
        assert "Filter" not in node
        assert node["Heap Fetches"] == 0
    assert sum(node["Actual Loops"] for node in scans) > 0
    for node in nodes(plan):
        assert node["Node Type"] != "Seq Scan"
        conditions = {k: v for k, v in node.items() if "Cond" in k or "Filter" in k}
        assert "current_setting" not in json.dumps(conditions)
        if "current_setting" in json.dumps(node.get("Output", [])):
            assert node["Actual Loops"] <= 1
    records = {
        node.get("Index Name") for node in nodes(plan) if node.get("Relation Name") == "records"
    }
    assert records <= {"records_pkey", None}


@pytest.mark.parametrize("strategy", ["lexical", "keyword"])
async def test_common_terms_are_counted_and_not_read_where_they_cannot_matter(
    crowded: Database, app_role: Connection, strategy: str
) -> None:
    shares = {}
    for (asked, text), way in QUESTIONS.items():
        if asked != strategy or way not in (BOUNDED, EXHAUSTIVE):
            continue
        _, sent = await sent_by(crowded, strategy, text)
        plan = await explained(app_role, *sent[0], "force_generic_plan")
        held = sum(RECORDS / EVERY.get(word, RECORDS) for word in text.split())
        shares[way] = postings_read(plan) / held
    # Each list is counted once, by lexical no further than matters; what is read is read again.
    assert shares[BOUNDED] < 1.4
    assert shares[EXHAUSTIVE] > 1.6


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", ["lexical", "keyword", "hybrid"])
async def test_a_question_of_thousands_of_words_is_not_asked_of_each_record(
    crowded: Database, app_role: Connection, strategy: str, mode: str
) -> None:
    words = [f"w{n}" for n in range(2_000)]
    filters = {"embedding": [1.0]} if strategy == "hybrid" else {}
    _, sent = await sent_by(
        crowded, strategy, " ".join(words), subject_keys="bob", limit=1_000, **filters
    )
    plan = await explained(app_role, *sent[-1], mode)
    scans = [node for node in nodes(plan) if node.get("Relation Name") == "postings"]
    # Each record's words are read once, and by BM25 each term is counted once.
    assert {node.get("Index Name") for node in scans} >= {"postings_record"}
    assert sum(node["Actual Loops"] for node in scans) <= FEW + len(words)


async def test_hidden_records_hold_no_bound_up(crowded: Database) -> None:
    async with Memory(
        PostgresStore(crowded.app_url), redactor=None, subject_pepper="pepper"
    ) as memory:
        for strategy in ("lexical", "keyword"):
            everything = await memory.recall(
                "acme",
                text="half third rare",
                strategy=strategy,
                limit=1_000,
                include_superseded=True,
            )
            current = await memory.recall(
                "acme", text="half third rare", strategy=strategy, limit=20
            )
            expected = [hit for hit in everything.hits if hit.record.superseded_at is None]
            assert current.hits == tuple(expected[:20])
            assert len(expected) < len(everything.hits)


async def test_postings_are_vacuumed_for_inserts_alone(app_role: Connection) -> None:
    options = await app_role.fetchval(
        "select reloptions from pg_catalog.pg_class where oid = 'memory.postings'::regclass"
    )
    assert "autovacuum_vacuum_insert_scale_factor=0.02" in options
