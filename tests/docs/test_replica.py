"""What the page on scaling says of reading from a physical replica."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from memory import InstallError, Memory, PostgresStore, embedded
from memory.maintenance import scrub
from replicas import Pair, replica


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    running = embedded.serve(settings={"checkpoint_timeout": "1h"})
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory(prefix="replica-") as folder:
        primary = runner.run(running.__aenter__())
        try:
            with replica(primary, Path(folder)) as pair:
                yield pair
        finally:
            runner.run(running.__aexit__(None, None, None))


def service(url: str) -> Memory:
    return Memory(PostgresStore(url), subject_pepper="pepper")


async def until(pair: Pair, query: str, answer: object) -> None:
    """Return once the primary answers this."""
    with psycopg.connect(pair.superuser_url, autocommit=True) as superuser:
        async with asyncio.timeout(20):
            while superuser.execute(query).fetchone() != (answer,):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def caught_up(pair: Pair) -> None:
    """Return once the replica has replayed what the primary has written."""
    behind = (
        "select pg_current_wal_lsn() > replay_lsn from pg_stat_replication"
        " where application_name = 'replica'"
    )
    await until(pair, behind, False)


async def test_a_replica_reads_and_refuses_to_write(pair: Pair) -> None:
    async with service(pair.url) as primary, service(pair.replica_url) as replica:
        await primary.remember("reading", text="Dana moved", subject_keys="dana")
        await caught_up(pair)
        assert (await replica.recall("reading", text="moved")).hits
        with pytest.raises(InstallError):
            await replica.forget("reading", subject_key="dana")


async def test_a_replica_shows_the_erased_until_it_has_replayed_the_commit(pair: Pair) -> None:
    async with service(pair.url) as primary, service(pair.replica_url) as replica:
        await primary.remember("lagging", text="Dana moved", subject_keys="dana")
        await caught_up(pair)
        pair.on_replica("select pg_wal_replay_pause()")
        await primary.forget("lagging", subject_key="dana")
        assert (await replica.recall("lagging", text="moved")).hits
        pair.on_replica("select pg_wal_replay_resume()")
        await caught_up(pair)
        assert not (await replica.recall("lagging", text="moved")).hits


async def seen(memory: Memory, record_id: UUID) -> dict[str, bool]:
    """By reading verb, whether Dana's record is in its answer."""
    tenant = memory.for_tenant("reading-all")
    hits = {
        "recall by words": await tenant.recall(text="moved"),
        "recall by vector": await tenant.recall(embedding=[1.0, 0.0]),
        "recall by person": await tenant.recall(subject_keys="dana"),
    }
    exported = [entry.to_dict() async for entry in tenant.export(subject_key="dana")]
    graph = await tenant.lineage(subject_key="dana")
    return {name: bool(found.hits) for name, found in hits.items()} | {
        "get": await tenant.get(record_id=record_id) is not None,
        "records": bool(await tenant.records(subject_keys="dana")),
        "history": bool(await tenant.history(record_key="dana:home")),
        "export": any(entry["type"] == "record" for entry in exported),
        "lineage": bool(graph.records),
    }


async def test_no_verb_of_a_replica_shows_the_erased_once_it_shows_the_tombstone(
    pair: Pair,
) -> None:
    async with service(pair.url) as primary, service(pair.replica_url) as replica:
        told = await primary.remember(
            "reading-all",
            text="Dana moved",
            subject_keys="dana",
            embedding=[1.0, 0.0],
            record_key="dana:home",
        )
        kept = await primary.remember("reading-all", text="Bob stays", subject_keys="bob")
        await caught_up(pair)
        pair.on_replica("select pg_wal_replay_pause()")
        receipt = await primary.forget("reading-all", subject_key="dana")
        stale = await seen(replica, told.record.record_id)
        assert set(stale.values()) == {True}, stale
        assert await replica.erasure_history("reading-all") == []
        pair.on_replica("select pg_wal_replay_resume()")
        await caught_up(pair)
        [stone] = await replica.erasure_history("reading-all")
        assert stone.erasure_id == receipt.erasure_id
        fresh = await seen(replica, told.record.record_id)
        assert set(fresh.values()) == {False}, fresh
        assert await replica.get("reading-all", record_id=kept.record.record_id) == kept.record


async def test_a_scrub_names_the_replica_and_the_snapshot_that_it_reports(pair: Pair) -> None:
    pair.on_replica("alter system set hot_standby_feedback = on")
    pair.on_replica("alter system set wal_receiver_status_interval = '1s'")
    pair.on_replica("select pg_reload_conf()")
    held = "select count(*) > 0 from pg_stat_replication where backend_xmin is not null"
    async with service(pair.url) as primary:
        await primary.remember("pinned", text="Dana moved", subject_keys="dana")
        await caught_up(pair)
        with psycopg.connect(pair.replica_superuser_url) as reader:
            reader.execute("set transaction isolation level repeatable read")
            reader.execute("select from memory.records")
            await until(pair, held, True)
            await primary.forget("pinned", subject_key="dana")
            report = await scrub(pair.superuser_url, wal=False)
            assert {"dead_rows", "hot_standby_feedback", "standby"} <= report.codes
        pair.on_replica("alter system set hot_standby_feedback = off")
        pair.on_replica("select pg_reload_conf()")
        await until(pair, held, False)
        report = await scrub(pair.superuser_url, wal=False)
        assert report.codes <= {"standby", "free_space", "wal"}
        assert "standby" in report.codes


async def test_with_remote_apply_an_erasure_returns_when_the_replica_has_it(pair: Pair) -> None:
    pair.on_primary(
        "alter database memory set synchronous_commit = remote_apply",
        "alter system set synchronous_standby_names = 'replica'",
        "select pg_reload_conf()",
    )
    async with service(pair.url) as primary, service(pair.replica_url) as replica:
        await primary.remember("waiting", text="Dana moved", subject_keys="dana")
        assert (await replica.recall("waiting", text="moved")).hits
        pair.on_replica("select pg_wal_replay_pause()")
        erasing = asyncio.create_task(primary.forget("waiting", subject_key="dana"))
        waiting = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"
        await until(pair, waiting, 1)
        assert not erasing.done()
        pair.on_replica("select pg_wal_replay_resume()")
        assert (await erasing).complete
        assert not (await replica.recall("waiting", text="moved")).hits
