"""The embedded server: who it lets in, what it keeps, and that it goes when it should."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from memory import Memory, PostgresStore, embedded
from memory.cluster import _find_binaries
from memory.errors import InstallError
from serving import ask, has_ended, hold, is_alive, postmaster, wait_until


@pytest.mark.parametrize("version", [16, 18])
async def test_the_application_gets_a_migrated_database_and_no_power_over_it(version: int) -> None:
    async with embedded.serve(postgres_version=version) as server:
        major = await ask(server.url, "select current_setting('server_version_num')::int / 10000")
        assert major == version
        # what it may do
        assert await ask(server.url, "select count(*) from memory.records") == 0
        # what it may not
        powers = "select rolsuper or rolbypassrls or rolcreaterole or rolcreatedb"
        mine = powers + " from pg_roles where rolname = current_user"
        assert await ask(server.url, mine) is False
        assert await ask(server.owner_url, mine) is False
        assert await ask(server.superuser_url, mine) is True
        owner = await ask(server.owner_url, "select current_user")
        member = f"select pg_has_role(current_user, '{owner}', 'member')"
        assert await ask(server.url, member) is False
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await ask(server.url, "drop table memory.records")


async def test_the_operator_lifts_a_hold_and_the_application_does_not() -> None:
    async with embedded.serve() as server:
        app = Memory(PostgresStore(server.url), subject_pepper="pepper")
        operator = Memory(PostgresStore(server.operator_url), subject_pepper="pepper")
        async with app, operator:
            await app.hold("shop", subject_key="customer:dana")
            with pytest.raises(InstallError, match="grant_operator"):
                await app.release("shop", subject_key="customer:dana")
            await operator.release("shop", subject_key="customer:dana")
            await operator.remember("shop", text="Dana is back", subject_keys="customer:dana")
            assert (await app.forget("shop", subject_key="customer:dana")).complete
            assert (await operator.ready()).problems == ()


async def test_pgvector_is_there() -> None:
    async with embedded.serve() as server:
        assert await ask(server.url, "select '[1,2]'::vector <=> '[2,1]'::vector") == pytest.approx(
            0.2
        )


async def test_a_temporary_directory_goes_with_its_server() -> None:
    async with embedded.serve() as server:
        pid = postmaster(server.data_directory)
        assert is_alive(pid)
    assert not Path(server.data_directory).exists()
    assert has_ended(pid)


async def test_data_stay_where_they_were_told_to(data: Path) -> None:
    async with embedded.serve(data) as server:
        assert server.data_directory == str(data)
        await ask(server.owner_url, "create table kept as select 7 as number")
        pid = postmaster(data)
    assert has_ended(pid)
    async with embedded.serve(str(data)) as server:
        assert await ask(server.owner_url, "select number from kept") == 7


async def test_the_last_of_two_users_stops_the_server(data: Path) -> None:
    async with contextlib.AsyncExitStack() as second_use:
        async with embedded.serve(data) as first:
            second = await second_use.enter_async_context(embedded.serve(data))
            assert second == first
            pid = postmaster(data)
        assert await ask(second.url, "select 1") == 1
    assert has_ended(pid)


async def test_another_process_shares_the_server_and_leaves_it_running(data: Path) -> None:
    async with embedded.serve(data) as server:
        pid = postmaster(data)
        other = hold(str(data))
        assert other.stdout is not None
        assert await asyncio.to_thread(other.stdout.readline) == f"{data}\n"
        await asyncio.to_thread(other.communicate)
        assert postmaster(data) == pid
        assert await ask(server.url, "select 1") == 1
    assert has_ended(pid)


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_process_leaves_a_directory_that_opens(
    data: Path, death: signal.Signals
) -> None:
    other = hold(str(data))
    assert other.stdout is not None
    await asyncio.to_thread(other.stdout.readline)
    pid = postmaster(data)
    other.send_signal(death)
    await asyncio.to_thread(other.communicate)
    assert is_alive(pid)  # nobody was left to stop it
    async with embedded.serve(data) as server:
        assert await ask(server.url, "select 1") == 1
    assert has_ended(pid)


async def test_a_killed_process_takes_its_temporary_server_with_it() -> None:
    other = hold()
    assert other.stdout is not None
    folder = Path((await asyncio.to_thread(other.stdout.readline)).strip())
    pid = postmaster(folder)
    other.kill()
    await asyncio.to_thread(other.communicate)
    await asyncio.to_thread(wait_until, lambda: not folder.exists() and not is_alive(pid))


async def test_committed_data_survive_the_kill_of_the_server(data: Path) -> None:
    async with embedded.serve(data) as server:
        await ask(server.owner_url, "create table kept as select 7 as number")
        os.kill(postmaster(data), signal.SIGKILL)
    async with embedded.serve(data) as server:
        assert await ask(server.owner_url, "select number from kept") == 7


async def test_a_base_backup_of_a_running_server_starts_beside_it(
    data: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    async with embedded.serve(data) as server:
        async with Memory(PostgresStore(server.url)) as service:
            await service.remember("shop", text="Dana moved", subject_keys="customer:dana")
        program = _find_binaries(18) / "pg_basebackup"
        given = ["--host", str(data), "--username", "postgres", "--pgdata", str(copy)]
        subprocess.run([program, *given, "--checkpoint", "fast"], check=True)
        assert (copy / ".s.PGSQL.5432.lock").exists()
        if os.geteuid() == 0:
            shutil.chown(copy, "pgserver", "pgserver")
            for path in copy.rglob("*"):
                shutil.chown(path, "pgserver", "pgserver")
        async with embedded.serve(copy) as restored:
            assert restored.data_directory == str(copy)
            assert await ask(restored.superuser_url, "select count(*) from memory.records") == 1
            # Neither is in the other's way.
            assert await ask(server.superuser_url, "select count(*) from memory.records") == 1


async def test_a_server_that_somebody_else_started_is_not_stopped(data: Path) -> None:
    async with embedded.serve(data):
        pass
    options = data / "postmaster.opts"
    async with embedded.serve(data):
        pid = postmaster(data)
        ours = options.read_text()
        options.write_text(ours.replace("cluster_name=", "cluster_name=not_"))
    assert is_alive(pid)
    options.write_text(ours)
    async with embedded.serve(data) as server:
        assert postmaster(server.data_directory) == pid
    assert has_ended(pid)


async def test_a_path_too_long_for_a_socket_still_serves(tmp_path: Path) -> None:
    data = tmp_path / ("long" * 20) / "data: with punctuation"
    async with embedded.serve(data) as server:
        assert await ask(server.url, "select 1") == 1
        folder = Path((data / "postmaster.pid").read_text().splitlines()[4])
        assert folder != data
    assert not folder.exists()


async def test_a_cancelled_start_leaves_no_server_behind(data: Path) -> None:
    opening = asyncio.create_task(embedded.serve(data).__aenter__())
    await asyncio.to_thread(wait_until, (data / "postmaster.pid").exists)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not (data / "postmaster.pid").exists()
    async with embedded.serve(data) as server:
        assert await ask(server.url, "select 1") == 1


async def test_settings_reach_the_server_and_the_defaults_are_durable(data: Path) -> None:
    async with embedded.serve(data) as server:
        assert await ask(server.url, "select current_setting('fsync')") == "on"
    async with embedded.serve(data, settings={"work_mem": "7MB", "port": "1"}) as server:
        assert await ask(server.url, "select current_setting('work_mem')") == "7MB"


async def test_the_server_log_quotes_no_row(data: Path) -> None:
    async with embedded.serve(data) as server:
        await ask(server.owner_url, "create table t (v text unique)")
        await ask(server.owner_url, "insert into t values ('Ramesh 98765')")
        with pytest.raises(asyncpg.UniqueViolationError):
            await ask(server.owner_url, "insert into t values ('Ramesh 98765')")
        log = (data / "log").read_text()
    assert "duplicate key" in log
    assert "Ramesh" not in log


def test_nothing_warns_where_the_runtime_directory_is_unset() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    program = (
        "import asyncio\nfrom memory import embedded\n"
        "async def main():\n    async with embedded.serve(): pass\nasyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
