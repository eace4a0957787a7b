"""What the runbook says of a logical subscriber, on one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from sqlalchemy import make_url

import memory
from memory import Memory, PostgresStore, embedded, migrate

TABLES = ("records", "record_subjects", "provenance", "postings", "tenants", "tombstones")


@dataclass(frozen=True, kw_only=True)
class Subscribed:
    """A server whose database ``memory`` publishes our tables to its database ``sink``."""

    publisher: embedded.Server

    def sink(self, role: str) -> str:
        url = make_url(self.publisher.superuser_url)
        return url.set(username=role, database="sink").render_as_string()


@pytest.fixture(scope="module")
def subscribed() -> Iterator[Subscribed]:
    running = embedded.serve(settings={"wal_level": "logical"})
    with asyncio.Runner() as runner:
        server = runner.run(running.__aenter__())
        try:
            subscribed = Subscribed(publisher=server)
            runner.run(_subscribe(subscribed))
            yield subscribed
            with psycopg.connect(subscribed.sink("postgres"), autocommit=True) as superuser:
                superuser.execute("drop subscription sink")
        finally:
            runner.run(running.__aexit__(None, None, None))


async def _subscribe(subscribed: Subscribed) -> None:
    server = subscribed.publisher
    names = ", ".join(f"memory.{table}" for table in TABLES)
    with psycopg.connect(server.superuser_url, autocommit=True) as superuser:
        superuser.execute("create database sink owner memory_owner")
        superuser.execute(f"create publication ours for table {names}")
        # In one cluster the subscription cannot make its slot itself: it would wait for itself.
        superuser.execute("select pg_create_logical_replication_slot('sink', 'pgoutput')")
    await migrate.upgrade(subscribed.sink("memory_owner"))
    with psycopg.connect(subscribed.sink("memory_owner"), autocommit=True) as owner:
        owner.execute("select memory.grant_app('memory_app')")
    url = make_url(server.superuser_url)
    # Since 16 changes are applied as the table's owner, whom row level security binds: refused.
    source = f"host={url.query['host']} port=5432 user=postgres dbname=memory"
    with psycopg.connect(subscribed.sink("postgres"), autocommit=True) as superuser:
        superuser.execute(
            f"create subscription sink connection '{source}' publication ours"
            " with (create_slot = false, copy_data = false, run_as_owner = true)"
        )


async def texts(subscribed: Subscribed, expected: set[str]) -> None:
    """Return once the sink holds exactly these texts."""
    with psycopg.connect(subscribed.sink("postgres"), autocommit=True) as superuser:
        async with asyncio.timeout(20):
            query = "select text from memory.records"
            while {text for (text,) in superuser.execute(query)} != expected:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_what_was_derived_on_a_subscriber_outlives_the_erasure(
    subscribed: Subscribed,
) -> None:
    here, sink = subscribed.publisher.url, subscribed.sink("memory_app")
    async with (
        Memory(PostgresStore(here), subject_pepper="pepper") as publisher,
        Memory(PostgresStore(sink), subject_pepper="pepper") as subscriber,
    ):
        told = await publisher.remember("shop", text="Dana moved", subject_keys="dana")
        await publisher.derive("shop", kind="summary", text="Dana's summary", sources=told)
        await publisher.remember("shop", text="Li likes tea", subject_keys="li")
        await texts(subscribed, {"Dana moved", "Dana's summary", "Li likes tea"})
        await subscriber.derive("shop", kind="summary", text="Made there", sources=told)
        await publisher.forget("shop", subject_key="dana")
        await texts(subscribed, {"Made there", "Li likes tea"})
    report = await memory.check(subscribed.sink("memory_owner"))
    assert "edge_orphan" in {fault.code for fault in report.faults}


async def test_verification_names_publication_and_subscription(subscribed: Subscribed) -> None:
    async def broken(url: str) -> set[str]:
        return {check.property for check in await memory.verify_install(url) if check.ok is False}

    assert "not_published" in await broken(subscribed.publisher.owner_url)
    assert "not_subscribed" in await broken(subscribed.sink("memory_owner"))
