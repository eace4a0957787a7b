"""The command line and what it works on: installing, serving, embedding, and what is unfit."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import psycopg
import pytest

from memory import Memory
from memory.stores.postgres import PostgresStore
from servers import Database, Postgres
from terminals import MAIN, environment, on_terminal, piped, terminal

HOST = """
from memory import HashingEmbedder
from memory.cli import main

main(embedder=HashingEmbedder(8))
"""
PERSONAL = [
    ("forget", "shop", "planted-person", "--yes"),
    ("expire", "shop"),
    ("purge", "shop"),
    ("hold", "shop", "planted-person"),
    ("release", "shop", "planted-person", "--yes"),
    ("readmit", "shop", "planted-person"),
    ("history", "shop"),
    ("export", "shop", "planted-person"),
]
OWNERS = [
    ("verify",),
    ("check",),
    ("indexes", "list"),
    ("tombstones", "export"),
]


def test_upgrade_installs_and_what_is_not_installed_says_so(server: Postgres) -> None:
    with server.empty() as database:
        env = environment(database.owner_url)
        for command in (*PERSONAL, *OWNERS[:2]):
            done = piped(*command, env=env)
            assert (done.returncode, done.stdout) == (3, b""), command
            assert b"run alembic upgrade head" in done.stderr
        refused = piped("upgrade", "--revision", "memory_9999", env=env)
        assert (refused.returncode, b"Alembic refuses" in refused.stderr) == (3, True)
        shown = on_terminal("upgrade", env=env, program=MAIN)
        assert shown.code == 0
        assert "the schema is at revision memory_00" in shown.text
        done = piped("upgrade", "--json", env=env)
        assert json.loads(done.stdout)["revision"].startswith("memory_00")
        assert piped("verify", env=env).returncode in (0, 1)
        refused = piped("upgrade", env=environment(database.host_url))
        assert (refused.returncode, b"refused the migration" in refused.stderr) == (3, True)


@pytest.mark.parametrize("command", PERSONAL, ids=lambda command: command[0])
async def test_what_is_unfit_ends_with_its_reason_and_nothing_done(
    database: Database, command: tuple[str, ...]
) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        await service.remember("shop", text="planted text", subject_keys="planted-person")
    unreachable = "postgresql://planted-role:planted-word@127.0.0.1:1/planted"
    unfit = [
        (environment(database.app_url, "another"), 3, "pepper"),
        (environment(database.app_url, None), 2, "MEMORY_SUBJECT_PEPPER: must hold"),
        (environment(database.superuser_url), 3, "bypasses row level security"),
        (environment(database.host_url), 3, "lacks a right"),
        (environment(unreachable), 3, "cannot be reached"),
        (environment(None), 2, "MEMORY_DATABASE_URL: must hold"),
    ]
    # Each command starts a process for two of them, and each of them is met by two commands.
    turn = PERSONAL.index(command)
    for env, code, message in (unfit[turn % 6], unfit[(turn + 3) % 6]):
        done = piped(*command, env=env)
        assert (done.returncode, done.stdout) == (code, b""), message
        assert message in done.stderr.decode()
        assert b"planted" not in done.stderr
    with psycopg.connect(database.superuser_url) as superuser:
        counts = (
            "select count(*) from memory.records union all select count(*) from memory.decisions"
        )
        assert superuser.execute(counts).fetchall() == [(1,), (0,)]
    shown = on_terminal(*command, env=environment(unreachable))
    assert (shown.code, "cannot be reached" in shown.text) == (3, True)
    assert "planted" not in shown.text


async def test_the_owners_commands_on_a_terminal_draw_their_progress(
    database: Database, tmp_path: Path
) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        await service.remember("shop", text="planted text", subject_keys="planted-person")
        await service.forget("shop", subject_key="planted-person")
    env = environment(database.owner_url)
    shown = on_terminal("check", env=env)
    assert (shown.code, "rows" in shown.text) == (0, True)
    assert b"\x1b[" in shown.raw  # the bar
    assert "of 1 tenants looked at" in shown.text
    assert "properties" in on_terminal("verify", env=env).text
    shown = on_terminal("indexes", "build", "3", env=env)
    assert (shown.code, "records_hnsw_3" in shown.text) == (0, True)
    assert on_terminal("index", "list", env=env).code == 0
    assert on_terminal("indexes", "maintain", env=env).code == 0
    assert "dropped" in on_terminal("indexes", "drop", "3", env=env).text
    file = str(tmp_path / "tombstones.jsonl")
    assert on_terminal("tombstones", "export", "--output", file, env=env).code == 0
    for name, said in (
        ("verify", "1 tombstones of 1 tenants hold together"),
        ("import", "1 tombstones of 1 tenants hold together"),
        ("replay", "0 people and 0 records erased again"),
    ):
        shown = on_terminal("tombstones", name, file, env=env)
        assert (shown.code, said in shown.text) == (0, True), shown.text
        assert "planted" not in shown.text
    for command in OWNERS:
        refused = piped(*command, env=environment(database.host_url))
        assert (refused.returncode, b"lacks a right" in refused.stderr) == (3, True), command


async def test_records_are_embedded_anew_with_the_hosts_embedder(database: Database) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        for tenant in ("shop", "bank"):
            await service.remember(tenant, text="planted text", subject_keys="planted-person")
    env = environment(database.owner_url)
    refused = piped("reembed", env=env)
    assert (refused.returncode, b"main(embedder=...)" in refused.stderr) == (2, True)
    host = [sys.executable, "-c", HOST]
    done = piped("reembed", "--missing", "--tenant", "shop", "--json", env=env, program=host)
    assert json.loads(done.stdout) == {"records": 1, "tenants": 1}
    shown = on_terminal("reembed", "--missing", env=env, program=host)
    assert (shown.code, "1 records of 1 tenants embedded anew" in shown.text) == (0, True)
    assert "planted" not in shown.text
    refused = piped("reembed", env=environment(database.app_url), program=host)
    assert refused.returncode == 3


@pytest.mark.parametrize("key", ["control-c", "sigterm"])
def test_a_server_runs_until_it_is_interrupted(tmp_path: Path, key: str) -> None:
    path = str(tmp_path / "data")
    with terminal("serve", "--path", path, env=environment(), columns=300) as shown:
        shown.expect("ends it")
        urls = re.findall(r"postgresql://\S+", shown.text)
        assert len(set(urls)) == 4
        done = piped("expire", "shop", env=environment(urls[0]))
        assert done.returncode == 0
        (shown.interrupt if key == "control-c" else shown.terminate)()
        assert shown.end() == 0
    assert "Traceback" not in shown.text
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(urls[0])


def test_serving_tells_programs_where_and_refuses_what_it_cannot(tmp_path: Path) -> None:
    with terminal("serve", "--json", env=environment(), columns=500, program=MAIN) as shown:
        shown.expect("ends it")
        found = json.loads(shown.text.splitlines()[0])
        urls = {"url", "operator_url", "owner_url", "superuser_url"}
        assert found.keys() == urls | {"data_directory"}
        shown.interrupt()
        assert shown.end() == 0
    assert not Path(found["data_directory"]).exists()
    refused = piped("serve", "--postgres-version", "9", env=environment())
    assert (refused.returncode, b"must be 16 or 18" in refused.stderr) == (2, True)
    (tmp_path / "planted").touch()
    refused = piped("serve", "--path", tmp_path, env=environment())
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"planted" not in refused.stderr
