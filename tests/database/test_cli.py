"""The command line as operators run it: real processes, exit codes, and no value printed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from memory import Memory, tombstones
from memory.stores.postgres import PostgresStore
from restores import backup, damage
from servers import Database
from terminals import MAIN, environment, piped

PLANTED = ("planted-tenant", "planted-person", "planted text", "planted-pepper")


def run(
    *arguments: str | Path,
    url: str | None = None,
    pepper: str | None = "planted-pepper",
    given: bytes = b"",
    program: Sequence[str] = (),
) -> subprocess.CompletedProcess[bytes]:
    env = environment(url, pepper) | {"COLUMNS": "200"}
    return piped(*arguments, env=env, given=given, program=program)


def silent(done: subprocess.CompletedProcess[bytes]) -> bool:
    shown = (done.stdout + done.stderr).decode()
    return not any(value in shown for value in PLANTED)


async def told(database: Database, *people: str) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="planted-pepper") as service:
        for person in people:
            await service.remember("planted-tenant", text="planted text", subject_keys=person)


async def forgotten(database: Database, *people: str) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="planted-pepper") as service:
        for person in people:
            await service.forget("planted-tenant", subject_key=person)


async def test_a_restore_is_replayed_from_the_command_line(
    database: Database, tmp_path: Path
) -> None:
    await told(database, "planted-person", "zoe")
    file = tmp_path / "tombstones.jsonl"
    with backup(database) as restored:
        await forgotten(database, "planted-person")
        done = run("tombstones", "export", "--output", file, url=database.owner_url, program=MAIN)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert [path.name for path in tmp_path.iterdir()] == [file.name]

        done = run("tombstones", "verify", file)
        assert (done.returncode, silent(done)) == (0, True)
        assert done.stdout == b"1 tombstones of 1 tenants hold together\n"

        done = run("check", "--tombstones", file, "--json", url=restored.owner_url)
        assert (done.returncode, silent(done)) == (1, True)
        report = json.loads(done.stdout)
        assert report["ok"] is False
        back = {fault["code"]: fault for fault in report["faults"]}["resurrected"]
        assert (back["count"], back["tenant"], back["severity"]) == (1, "1", "error")

        done = run("tombstones", "replay", file, "--json", url=restored.owner_url)
        assert (done.returncode, silent(done)) == (0, True)
        values = json.loads(done.stdout)
        assert (values["people"], values["records"], values["complete"]) == (1, 1, True)

        done = run("check", "--tombstones", file, url=restored.owner_url)
        assert (done.returncode, silent(done)) == (0, True)
        assert b"chain_lost" in done.stdout
        done = run("tombstones", "replay", file, url=restored.owner_url)
        assert done.stdout == (
            b"0 people and 0 records erased again; 0 of 1 tombstones were known\n"
        )
        async with Memory(
            PostgresStore(restored.app_url), subject_pepper="planted-pepper"
        ) as service:
            [left] = await service.records("planted-tenant")
            assert left.subject_keys == ("zoe",)


async def test_a_stream_goes_through_pipes(database: Database) -> None:
    await told(database, "planted-person")
    await forgotten(database, "planted-person")
    done = run("tombstones", "export", url=database.owner_url)
    assert tombstones.verify(done.stdout.splitlines()).tombstones == 1
    assert run("tombstones", "import", "-", given=done.stdout).returncode == 0
    one = run("tombstones", "export", "--tenant", "other", url=database.owner_url)
    assert tombstones.verify(one.stdout.splitlines()).tombstones == 0
    heads = [line for line in done.stdout.splitlines() if b'"head"' in line]
    shell = ["/bin/sh", "-c", f"{sys.executable} -m memory.cli tombstones export | head -c 1"]
    assert run(url=database.owner_url, program=shell).returncode == 0
    assert len(heads) == 1


async def test_a_broken_stream_or_a_passed_anchor_is_refused(
    database: Database, tmp_path: Path
) -> None:
    await told(database, "planted-person", "zoe")
    await forgotten(database, "planted-person", "zoe")
    done = run("tombstones", "export", url=database.owner_url)
    stream = done.stdout.splitlines(keepends=True)
    cut = run("tombstones", "verify", "-", given=b"".join(stream[:-1]))
    assert (cut.returncode, cut.stdout, silent(cut)) == (2, b"", True)
    assert cut.stderr == b"memory: tombstones: must end with its last line: it was cut short\n"
    anchors = tmp_path / "anchors"
    anchors.write_bytes(stream[-2])
    assert run("tombstones", "verify", "-", "--anchors", anchors, given=done.stdout).returncode == 0
    newer = json.loads(stream[-2]) | {"seq": 3}
    anchors.write_text(json.dumps(newer))
    for arguments in (("tombstones", "verify", "-"), ("tombstones", "replay", "-")):
        refused = run(*arguments, "--anchors", anchors, given=done.stdout, url=database.owner_url)
        assert (refused.returncode, silent(refused)) == (2, True)
        assert b"anchor" in refused.stderr
    anchors.write_text("planted-tenant")
    bad = run("tombstones", "verify", "-", "--anchors", anchors, given=done.stdout)
    assert (bad.returncode, silent(bad)) == (2, True)


async def test_check_says_what_is_wrong_and_what_to_do(database: Database, tmp_path: Path) -> None:
    await told(database, "planted-person")
    sound = run("check", url=database.owner_url, program=MAIN)
    assert (sound.returncode, sound.stdout) == (
        0,
        b"5 rows of 1 tenants looked at: nothing found\n",
    )
    damage(database, "delete from memory.postings")
    done = run("check", url=database.owner_url)
    assert (done.returncode, silent(done)) == (1, True)
    assert b"looked at: 1 errors and 0 warnings found\n" in done.stdout
    assert b"postings_missing" in done.stdout
    assert b"remember it again." in done.stdout
    named = run("check", "--show-tenants", url=database.owner_url)
    assert b"planted-tenant" in named.stdout
    assert b"planted-person" not in named.stdout
    other = run("check", "--json", url=database.owner_url, pepper="other")
    assert "hash_foreign" in {fault["code"] for fault in json.loads(other.stdout)["faults"]}
    without = run("check", "--json", url=database.owner_url, pepper=None)
    assert {f["code"] for f in json.loads(without.stdout)["faults"]} == {"postings_missing"}


async def test_verify_names_what_its_role_may_not_read(database: Database) -> None:
    owner = run("verify", url=database.owner_url)
    assert b" 0 not readable" not in owner.stdout
    assert b"Not readable by this role" in owner.stdout
    read = run("verify", url=database.superuser_url)
    assert b" 0 not readable" in read.stdout
    assert b"Not readable" not in read.stdout


async def test_verify_says_whether_the_installation_is_whole(database: Database) -> None:
    # The tests' role that bypasses row level security is a user of this installation.
    with psycopg.connect(database.superuser_url) as superuser:
        superuser.execute(f"drop owned by {database.role('bypass')}")
    done = run("verify", url=database.superuser_url, program=MAIN)
    assert (done.returncode, done.stderr) == (0, b""), done.stdout
    assert b" 0 broken" in done.stdout
    with psycopg.connect(database.superuser_url) as superuser:
        superuser.execute("alter table memory.records no force row level security")
    done = run("verify", url=database.superuser_url)
    assert done.returncode == 1
    assert b"rls_forced" in done.stdout
    done = run("verify", "--json", url=database.superuser_url)
    assert done.returncode == 1
    values = json.loads(done.stdout)
    assert values["ok"] is False
    assert "rls_forced" in {item["property"] for item in values["checks"] if item["ok"] is False}


@pytest.mark.parametrize(
    ("arguments", "url", "code", "message"),
    [
        (("check",), None, 2, b"MEMORY_DATABASE_URL: must hold the URL"),
        (("check",), "mysql://planted-person@x/y", 2, b"url: must begin with postgresql://"),
        (("check",), "postgresql://planted-person@127.0.0.1:1/y", 3, b"cannot be reached"),
        (("check",), "app", 3, b"lacks a right"),
        (("verify",), "app", 3, b"lacks a right"),
        (("tombstones", "verify", "/nowhere/planted-person"), None, 2, b"a file cannot be used"),
        (("tombstones", "replay", "-"), "owner", 2, b"must end with its last line"),
        (("nonsense",), None, 2, b"no such command; see: "),
    ],
)
async def test_what_is_refused_has_its_exit_code_and_shows_no_value(
    database: Database, arguments: tuple[str, ...], url: str | None, code: int, message: bytes
) -> None:
    given = database.url(url) if url in ("app", "owner") else url
    done = run(*arguments, url=given)
    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr
    assert silent(done)


async def test_what_is_unforeseen_shows_its_class_only(database: Database) -> None:
    program = [
        sys.executable,
        "-c",
        "import memory.cli.checking as c, memory.cli as m\n"
        "async def fails(*a, **k): raise RuntimeError('planted-person')\n"
        "c.check_rows = fails\n"
        "m.main()",
        "check",
    ]
    done = run(url=database.owner_url, program=program)
    assert (done.returncode, silent(done)) == (70, True)
    assert done.stderr == b"memory: unforeseen: RuntimeError\n"


def test_an_export_that_fails_leaves_no_file_of_its_name(
    database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "tombstones.jsonl"
    assert run("tombstones", "export", "--output", file, url=database.owner_url).returncode == 0
    before = file.read_bytes()
    done = run("tombstones", "export", "--output", file, url=database.app_url)
    assert done.returncode == 3
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
