"""What a tenant learns of another by collisions, errors and the pages it reads: nothing.

And what one session of the application can hold up, and what it cannot: nobody's erasure by halves.
"""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import asyncpg
import pytest

from memory import Memory, PostgresStore, UnknownRecordError
from rawsql import Connection, acting, derive, forget, living, refused, register, remember
from servers import Database

OWN = "insert into memory.records (tenant_key, record_id, text, record_key) values ($1, $2, $3, $4)"


async def told(connection: Connection, statement: str, *values: object) -> tuple[str, str]:
    """The SQLSTATE and the message of a refusal."""
    with pytest.raises(asyncpg.PostgresError) as caught:
        await connection.execute(statement, *values)
    return str(caught.value.sqlstate), caught.value.args[0]


async def test_no_collision_tells_what_another_tenant_has(
    connect, inspector: Connection, tenant: str, neighbour: str
) -> None:
    """Its record's id, its key, its artefact and its person's hash are all free here."""
    app = await connect("app")
    async with acting(app, neighbour):
        theirs = await remember(app, neighbour, "ann")
        await app.execute(OWN, neighbour, other := uuid4(), "x", "line")
        await app.execute(
            "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
            " values ($1, $2, 'ann', (select subject_hash from memory.record_subjects"
            " where tenant_key = $1 and record_id = $3))",
            neighbour,
            other,
            theirs,
        )
        await register(app, neighbour, "vector", theirs)
    before = await living(inspector, neighbour)
    async with acting(app, tenant):
        mine = await remember(app, tenant, "ann", record_id=theirs)
        await derive(app, tenant, mine)
        await register(app, tenant, "vector", mine)
        # The same key of the tenant's own is the neighbour that collides.
        await app.execute(
            "update memory.records set record_key = 'line'"
            " where tenant_key = $1 and record_id = $2",
            tenant,
            mine,
        )
    with refused("23505"):
        async with acting(app, tenant):
            await app.execute(OWN, tenant, uuid4(), "x", "line")
    assert await living(inspector, neighbour) == before
    async with acting(app, tenant):
        await forget(app, tenant, "ann")
    assert await living(inspector, neighbour) == before


async def test_a_refusal_is_the_same_for_what_is_elsewhere_and_for_what_is_nowhere(
    connect, tenant: str, neighbour: str
) -> None:
    app = await connect("app")
    async with acting(app, neighbour):
        theirs = await remember(app, neighbour, "ann")
    edge = "insert into memory.provenance (tenant_key, derived_id, source_id) values ($1, $2, $3)"
    link = (
        "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
        " values ($1, $2, 'ann', repeat('0', 64))"
    )
    answers = []
    for unknown in (theirs, uuid4()):
        transaction = app.transaction()
        await transaction.start()
        await app.execute("select set_config('app.current_tenant', $1, true)", tenant)
        derived = await remember(app, tenant, "ben")
        source = await told(app, edge, tenant, derived, unknown)
        await transaction.rollback()
        async with acting(app, tenant):
            erased = await told(
                app, "select memory.forget($1, single => $2)", tenant, unknown
            )  # refuses, and the transaction ends with it
        transaction = app.transaction()
        await transaction.start()
        await app.execute("select set_config('app.current_tenant', $1, true)", tenant)
        await app.execute(link, tenant, unknown)
        linked = await told(app, "set constraints all immediate")
        await transaction.rollback()
        answers.append((source, erased, linked))
    assert answers[0] == answers[1]


async def test_the_verbs_answer_alike_for_what_is_elsewhere_and_for_what_is_nowhere(
    database: Database,
) -> None:
    async with Memory(PostgresStore(database.url("app"))) as memory:
        mine, theirs = memory.for_tenant("mine"), memory.for_tenant("theirs")
        kept = (await theirs.remember(text="x", subject_keys="ann", record_key="line")).record
        for unknown in (kept.record_id, uuid4()):
            assert await mine.get(record_id=unknown) is None
            with pytest.raises(UnknownRecordError, match=r"^record_id: no such record$"):
                await mine.forget_record(record_id=unknown)
            with pytest.raises(UnknownRecordError, match=r"^record_id: no such record$"):
                await mine.relate(record_id=unknown, subject_keys="ben")
        for key in ("line", "no line"):
            assert await mine.history(record_key=key) == []
        for person in ("ann", "nobody"):
            assert (await mine.forget(subject_key=person)).counts.memories == 0
        assert await theirs.get(record_id=kept.record_id) == kept


async def pages(connection: Connection, tenant: str, term: str) -> int:
    """The pages that a search by one word touches."""
    async with acting(connection, tenant):
        await connection.execute("set local enable_seqscan = off")
        plan = await connection.fetchval(
            "explain (analyze, buffers, format json)"
            f" select record_id from memory.postings where term = '{term}'"
        )
    node = json.loads(plan)[0]["Plan"]
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])


async def test_the_pages_of_a_search_do_not_grow_with_another_tenants_matches(
    database: Database,
) -> None:
    app, owner = [await asyncpg.connect(database.url(role)) for role in ("app", "owner")]
    for tenant, count in (("mine", 3), ("theirs", 2_000)):
        async with acting(app, tenant):
            await app.execute(
                "insert into memory.postings (tenant_key, term, record_id)"
                " select $1, 'secret', gen_random_uuid() from generate_series(1, $2::int)",
                tenant,
                count,
            )
    await owner.execute("vacuum memory.postings")
    for term in ("secret", "absent"):  # the first touch fills the caches of the catalogue
        await pages(app, "mine", term)
    assert await pages(app, "mine", "secret") <= await pages(app, "mine", "absent") + 3
    # The control: who has them reads them.
    assert await pages(app, "theirs", "secret") > await pages(app, "mine", "secret") + 5
    for connection in (app, owner):
        await connection.close()


async def test_who_locks_a_table_delays_erasures_and_halves_none(database: Database) -> None:
    """The application may lock what it deletes from; a timeout of the host's bounds the wait."""
    async with Memory(PostgresStore(database.url("app"))) as memory:
        acme = memory.for_tenant("acme")
        told = (await acme.remember(text="x", subject_keys="ann")).record
        await acme.derive(kind="summary", text="y", sources=told)
        kept = (await acme.remember(text="z", subject_keys="ben")).record
        attacker = await asyncpg.connect(database.url("app"))
        before = await rows(database)
        async with attacker.transaction():
            await attacker.execute("lock table memory.records in exclusive mode")
            patient = asyncio.create_task(acme.forget(subject_key="ann"))
            limited = await asyncpg.connect(database.url("app"))
            await limited.execute("set lock_timeout = '200ms'")
            with refused("55P03"):
                async with acting(limited, "acme"):
                    await forget(limited, "acme", "ann")
            assert not patient.done()
            assert await rows(database) == before
        receipt = await patient
        assert (receipt.counts.memories, receipt.counts.derived) == (1, 1)
        assert await acme.records() == [kept]
        for connection in (attacker, limited):
            await connection.close()


async def rows(database: Database) -> dict[str, int]:
    """The number of rows of each table of content, by a superuser."""
    superuser = await asyncpg.connect(database.url("superuser"))
    names = ("records", "record_subjects", "provenance", "postings", "tombstones")
    found = {
        name: await superuser.fetchval(f"select count(*) from memory.{name}") for name in names
    }
    await superuser.close()
    return found


async def test_the_locks_of_deployments_are_not_the_applications_way_to_stop_erasures(
    database: Database,
) -> None:
    """Any role may take an advisory lock; only deployments and index builds wait for those."""
    attacker = await asyncpg.connect(database.url("app"))
    for key in (0x6D656D6F7279, 0x6D656D686E7377):
        assert await attacker.fetchval("select pg_try_advisory_lock($1)", key)
    async with Memory(PostgresStore(database.url("app"))) as memory:
        acme = memory.for_tenant("acme")
        await acme.remember(text="x", subject_keys="ann")
        assert (await acme.forget(subject_key="ann")).counts.memories == 1
    await attacker.close()
