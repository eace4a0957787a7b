"""``memory scrub`` on a server whose files can be read."""

from __future__ import annotations

import json
from pathlib import Path

from memory import Memory, embedded
from memory.stores.postgres import PostgresStore
from servers import Database
from terminals import MAIN, environment, on_terminal, piped

GONE, STAYS = "Planted words about Dana by the river", "Planted words about Bob in the hills"


async def test_a_superusers_scrub_is_complete_and_its_proof_shows_no_line(tmp_path: Path) -> None:
    needles = tmp_path / "needles"
    needles.write_text(f"{GONE}\n")
    async with embedded.serve() as server:
        async with Memory(PostgresStore(server.url), subject_pepper="pepper") as service:
            await service.remember("shop", text=GONE, subject_keys="customer:dana")
            await service.remember("shop", text=STAYS, subject_keys="customer:bob")
            await service.forget("shop", subject_key="customer:dana")
        env = environment(server.superuser_url)
        proof = ("--verify", str(needles), "--data-directory", server.data_directory)
        shown = on_terminal("scrub", *proof, env=env, program=MAIN)
        assert shown.code == 0, shown.text
        assert "of 1 lines 1 were found before, 0 after" in shown.text
        assert "complete" in shown.text
        assert b"\x1b[" in shown.raw
        assert "Planted" not in shown.text
        given = f"{GONE}\n{STAYS}\n".encode()
        proof = ("--verify", "-", "--data-directory", server.data_directory)
        done = piped("scrub", *proof, "--json", env=env, given=given)
        assert (done.returncode, done.stderr) == (1, b"")
        found = json.loads(done.stdout)
        assert (found["complete"], found["verified"]["found_after"]) == (True, 1)
        assert {trace["needle"] for trace in found["verified"]["traces"]} == {1}
        assert b"Planted" not in done.stdout


async def test_an_owners_scrub_names_what_it_could_not_do(database: Database) -> None:
    env = environment(database.owner_url)
    done = piped("scrub", "--keep-wal", "--json", env=env)
    assert (done.returncode, done.stderr) == (1, b"")
    found = json.loads(done.stdout)
    assert found["complete"] is False
    assert {"wal", "free_space_unread"} <= {item["code"] for item in found["pending"]}
    assert all(step["lock"] != "ACCESS EXCLUSIVE" for step in found["steps"])
    shown = on_terminal("scrub", "--exclusive", "--keep-wal", env=env)
    assert (shown.code, "incomplete:" in shown.text) == (1, True)


async def test_wrong_input_is_refused_before_anything_is_done(
    database: Database, tmp_path: Path
) -> None:
    env = environment(database.owner_url)
    planted = tmp_path / "planted"
    planted.write_bytes(b"\xff planted")
    for arguments, message in (
        (("--verify", planted), b"--verify: must come with --data-directory"),
        (("--verify", planted, "--data-directory", tmp_path), b"--verify: must be a file of UTF-8"),
        (("--verify", "/nowhere/planted", "--data-directory", tmp_path), b"a file cannot be used"),
        (("--lock-timeout", "0"), b"lock_timeout: must be more than 0"),
        (("--attempts", "0"), b"attempts: must be"),
    ):
        refused = piped("scrub", *arguments, env=env)
        assert (refused.returncode, refused.stdout) == (2, b""), arguments
        assert message in refused.stderr
        assert b"planted" not in refused.stderr
