"""Erasing, holding and showing people from the command line, on a terminal and in pipes."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memory import Memory
from memory.stores.postgres import PostgresStore
from servers import Database
from terminals import MAIN, environment, on_terminal, piped, terminal

PLANTED = ("planted-person", "planted-bystander", "planted text", "planted-pepper")


def env(database: Database, role: str = "app") -> dict[str, str]:
    return environment(database.url(role), "planted-pepper")


def rows(database: Database, person: str) -> list[tuple[Any, ...]]:
    """A person's records byte for byte, past row level security."""
    with psycopg.connect(database.superuser_url) as superuser:
        return superuser.execute(
            "select r::text from memory.records as r join memory.record_subjects as l"
            " using (tenant_key, record_id) where l.subject_key = %s order by r.record_id",
            [person],
        ).fetchall()


def opened(database: Database, **plugs: Any) -> Memory:
    return Memory(PostgresStore(database.app_url), subject_pepper="planted-pepper", **plugs)


@pytest.fixture
async def told(database: Database) -> Database:
    async with opened(database) as service:
        one = await service.remember(
            "shop", text="planted text", subject_keys=["planted-person", "planted-other"]
        )
        await service.derive("shop", kind="summary", text="planted text too", sources=one)
        await service.remember("shop", text="planted text", subject_keys="planted-bystander")
    return database


def silent(shown: str | bytes) -> bool:
    text = shown if isinstance(shown, str) else shown.decode()
    return not any(value in text for value in PLANTED)


async def test_an_erasure_shows_first_asks_and_leaves_the_neighbour(told: Database) -> None:
    before, neighbour = rows(told, "planted-person"), rows(told, "planted-bystander")
    assert (len(before), len(neighbour)) == (2, 1)
    command = ("forget", "shop", "planted-person")
    shown = on_terminal(*command, env=env(told), answers={"Erase 2 records? [y/N]": "n"})
    assert shown.code == 1
    assert "Would be erased" in shown.text
    assert "nothing was done" in shown.text
    assert rows(told, "planted-person") == before
    answers = {"Erase 2 records? [y/N]": "y"}
    shown = on_terminal(*command, env=env(told), answers=answers, program=MAIN)
    assert shown.code == 0, shown.text
    assert shown.text.count("other people touched") == 2
    # What was typed is on the command line, which the terminal of this test does not show.
    assert silent(shown.text)
    assert rows(told, "planted-person") == []
    assert rows(told, "planted-bystander") == neighbour


async def test_what_came_after_the_question_stops_the_erasure(told: Database) -> None:
    with terminal("forget", "shop", "planted-person", env=env(told)) as shown:
        shown.expect("Erase 2 records?")
        async with opened(told) as service:
            await service.remember("shop", text="newer", subject_keys="planted-person")
        shown.type("y")
        assert shown.end() == 4
    assert "rehearse again" in shown.text
    assert len(rows(told, "planted-person")) == 3


async def test_a_key_typed_or_piped_stays_off_the_command_line(told: Database) -> None:
    answers = {"Subject key: ": "planted-person", "Erase 2 records?": "y"}
    assert on_terminal("forget", "shop", "-", env=env(told), answers=answers).code == 0
    assert rows(told, "planted-person") == []
    command = ("forget", "shop", "-", "--json")
    given = b"planted-bystander\n"
    done = piped(*command, env=env(told), given=given)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--yes: must be given where there is no terminal" in done.stderr
    assert len(rows(told, "planted-bystander")) == 1
    for bad in (b"", b"\xff\n", b"\n"):
        refused = piped(*command, "--yes", env=env(told), given=bad)
        assert (refused.returncode, b"subject_key: " in refused.stderr) == (2, True)
    done = piped(*command, "--yes", env=env(told), given=given)
    assert (done.returncode, done.stderr, silent(done.stdout)) == (0, b"", True)
    found = json.loads(done.stdout)
    assert found["plan"]["dry_run"] is True
    receipt = found["receipt"]
    assert (receipt["counts"]["records"], receipt["complete"]) == (1, True)
    assert receipt["closure"] == found["plan"]["closure"]
    assert receipt["anchor"]["seq"] > 0
    assert rows(told, "planted-bystander") == []


@pytest.mark.parametrize("asked", ["Subject key: ", "Erase 2 records? [y/N]: "])
@pytest.mark.parametrize("key", ["control-c", "control-d"])
async def test_a_question_can_be_left_and_nothing_is_done(
    told: Database, asked: str, key: str
) -> None:
    given = "-" if asked.startswith("Subject") else "planted-person"
    with terminal("forget", "shop", given, env=env(told)) as shown:
        shown.expect(asked)
        # Between the question and the reading of the answer a signal waits for the next key.
        await asyncio.sleep(1)
        (shown.interrupt if key == "control-c" else shown.end_of_file)()
        assert shown.end() == 1
    assert "nothing was done" in shown.text
    assert "Traceback" not in shown.text
    assert len(rows(told, "planted-person")) == 2


SLOW = """
import asyncio
from memory import Memory
from memory.cli import main

whole = Memory.export


async def slow(self, tenant_key, **given):
    async for entry in whole(self, tenant_key, **given):
        yield entry
        print("one is written", flush=True)
        await asyncio.sleep(60)


Memory.export = slow
main()
"""


@pytest.mark.parametrize("how", ["control-c", "sigterm"])
async def test_an_export_that_is_ended_leaves_nothing_behind(
    told: Database, tmp_path: Path, how: str
) -> None:
    file = tmp_path / "case.jsonl"
    command = ("export", "shop", "planted-person", "--output", str(file))
    program = [sys.executable, "-c", SLOW]
    with terminal(*command, env=env(told), program=program) as shown:
        shown.expect("one is written")
        assert [path.name for path in tmp_path.iterdir()] == ["case.jsonl.partial"]
        (shown.interrupt if how == "control-c" else shown.terminate)()
        assert shown.end() == 130
    assert "interrupted: " in shown.text
    assert "Traceback" not in shown.text
    assert list(tmp_path.iterdir()) == []


async def test_a_pipeline_erases_what_an_earlier_dry_run_showed_or_nothing(told: Database) -> None:
    command = ("forget", "shop", "planted-person")
    done = piped(*command, "--dry-run", "--json", env=env(told), program=MAIN)
    assert done.returncode == 0
    digest = json.loads(done.stdout)["plan"]["closure"]
    async with opened(told) as service:
        newer = await service.remember("shop", text="newer", subject_keys="planted-person")
        stopped = piped(*command, "--expect", digest, "--yes", env=env(told))
        assert (stopped.returncode, stopped.stdout) == (4, b"")
        assert len(rows(told, "planted-person")) == 3
        await service.forget_record("shop", record_id=newer.record.record_id)
    wrong = piped(*command, "--expect", "planted text", "--yes", env=env(told))
    assert (wrong.returncode, silent(wrong.stderr)) == (2, True)
    done = piped(*command, "--expect", digest, "--yes", env=env(told))
    assert (done.returncode, rows(told, "planted-person")) == (0, [])


async def test_a_hold_keeps_until_an_operator_releases(told: Database) -> None:
    before = rows(told, "planted-bystander")
    person = ("shop", "planted-person")
    shown = on_terminal("hold", *person, env=env(told), program=MAIN)
    assert (shown.code, silent(shown.text)) == (0, True)
    assert ": hold at " in shown.text
    kept = piped("forget", *person, "--yes", "--json", env=env(told))
    assert kept.returncode == 1
    assert b"2 records stay under a legal hold" in kept.stderr
    receipt = json.loads(kept.stdout)["receipt"]
    assert (receipt["held"], receipt["deferred"], receipt["complete"]) == (2, True, False)
    assert len(rows(told, "planted-person")) == 2
    refused = piped("release", *person, "--yes", env=env(told))
    assert (refused.returncode, b"grant_operator" in refused.stderr) == (3, True)
    operator = env(told, "operator")
    asked = "Lift the hold"
    assert on_terminal("release", *person, env=operator, answers={asked: "n"}).code == 1
    assert len(rows(told, "planted-person")) == 2
    shown = on_terminal("release", *person, env=operator, answers={asked: "y"})
    assert (shown.code, silent(shown.text)) == (0, True)
    assert "Erased" in shown.text
    assert rows(told, "planted-person") == []
    assert rows(told, "planted-bystander") == before
    done = piped("history", "shop", "--decisions", "--json", env=env(told))
    actions = [item["action"] for item in json.loads(done.stdout)["decisions"]]
    assert actions == ["complete", "release", "request", "hold"]


async def test_a_blocked_person_is_readmitted_by_an_operator(told: Database) -> None:
    person = ("shop", "planted-person")
    assert piped("forget", *person, "--block-future", "--yes", env=env(told)).returncode == 0
    assert piped("readmit", *person, env=env(told)).returncode == 3
    done = piped("readmit", *person, "--json", env=env(told, "operator"))
    assert (done.returncode, json.loads(done.stdout)["decision"]["action"]) == (0, "readmit")
    async with opened(told) as service:
        await service.remember("shop", text="back", subject_keys="planted-person")


async def test_history_names_people_by_hash_and_finds_one_of_them(told: Database) -> None:
    for person in ("planted-person", "planted-bystander"):
        assert piped("forget", "shop", person, "--yes", env=env(told)).returncode == 0
    shown = on_terminal("history", "shop", env=env(told), program=MAIN)
    assert (shown.code, silent(shown.text)) == (0, True)
    assert "subject_request" in shown.text
    every = json.loads(piped("history", "shop", "--json", env=env(told)).stdout)["tombstones"]
    assert len({item["subject_hash"] for item in every}) == 2
    assert "tenant_key" not in every[0]
    command = ("history", "shop", "--subject", "-", "--json")
    done = piped(*command, env=env(told), given=b"planted-person\n")
    async with opened(told) as service:
        hash_ = service.subject_fingerprint("shop", subject_key="planted-person")
    [one] = json.loads(done.stdout)["tombstones"]
    assert one == next(item for item in every if item["subject_hash"] == hash_)
    assert piped(*command, "--decisions", env=env(told), given=b"planted-person\n").returncode == 0


async def test_only_an_export_prints_what_is_remembered(told: Database, tmp_path: Path) -> None:
    shown = on_terminal("export", "shop", "planted-person", env=env(told))
    assert shown.code == 0
    assert "planted text too" in shown.text
    file = tmp_path / "case.jsonl"
    done = piped("export", "shop", "planted-person", "--output", file, env=env(told))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert [item["type"] for item in found] == ["record", "record"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    other = environment(told.app_url, "another")
    failed = piped("export", "shop", "planted-person", "--output", file, env=other)
    assert (failed.returncode, b"pepper" in failed.stderr) == (3, True)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


async def test_retention_erases_what_is_due_and_by_age_asks(told: Database) -> None:
    kept = rows(told, "planted-bystander")
    past = datetime.now(UTC) - timedelta(days=40)
    async with opened(told) as service:
        for tenant in ("shop", "bank"):
            await service.remember(tenant, text="due", subject_keys="due", expires_at=past)
            await service.remember(tenant, text="old", subject_keys="old", occurred_at=past)
    shown = on_terminal("expire", "shop", env=env(told))
    assert (shown.code, "1 records of 1 tenants erased" in shown.text) == (0, True)
    assert (len(rows(told, "due")), len(rows(told, "old"))) == (1, 2)
    done = piped("expire", "--all-tenants", "--json", env=env(told, "owner"))
    assert done.returncode == 0
    counts = [item["counts"]["records"] for item in json.loads(done.stdout)["receipts"]]
    assert sorted(counts) == [0, 1]
    aged = ("expire", "shop", "--older-than", "30", "--kind", "episodic")
    assert piped(*aged, env=env(told)).returncode == 2
    assert on_terminal(*aged, env=env(told), answers={"Erase by age?": "n"}).code == 1
    assert (rows(told, "due"), len(rows(told, "old"))) == ([], 2)
    assert on_terminal(*aged, env=env(told), answers={"Erase by age?": "y"}).code == 0
    assert len(rows(told, "old")) == 1
    assert rows(told, "planted-bystander") == kept
    for wrong in ((), ("shop", "--all-tenants")):
        refused = piped("expire", *wrong, env=env(told))
        assert (refused.returncode, b"one of the two" in refused.stderr) == (2, True)
    refused = piped("expire", "--all-tenants", env=env(told))
    assert (refused.returncode, b"lacks a right" in refused.stderr) == (3, True)
