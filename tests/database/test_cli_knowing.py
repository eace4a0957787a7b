"""A misspelt tenant is refused; who was never known is told from who was erased before."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from restores import opened
from servers import Database
from terminals import environment, on_terminal, piped

NEVER = b"nothing is known of this person, nor was: is the key right?\n"


def env(database: Database, role: str = "app") -> dict[str, str]:
    return environment(database.url(role), "p")


def forget(database: Database, *arguments: str) -> tuple[int, bytes]:
    done = piped("forget", *arguments, "--yes", env=env(database))
    assert b"planted" not in done.stdout + done.stderr
    return done.returncode, done.stderr


def rows(database: Database, table: str) -> int:
    with psycopg.connect(database.superuser_url) as superuser:
        found = superuser.execute(f"select count(*) from memory.{table}").fetchone()
    assert found is not None
    return int(found[0])


@pytest.fixture
async def told(database: Database) -> Database:
    async with opened(database) as service:
        for person in ("planted-ann", "planted-bob"):
            await service.remember("shop", text="planted", subject_keys=person)
    return database


@pytest.mark.parametrize(
    "command",
    [
        ("forget", "planted-shpo", "planted-ann", "--yes"),
        ("forget", "planted-shpo", "planted-ann", "--dry-run"),
        ("hold", "planted-shpo", "planted-ann"),
        ("export", "planted-shpo", "planted-ann"),
        ("certificate", "planted-shpo", "planted-ann"),
        ("history", "planted-shpo"),
        ("release", "planted-shpo", "planted-ann", "--yes"),
        ("readmit", "planted-shpo", "planted-ann"),
    ],
    ids=lambda command: command[0],
)
async def test_a_tenant_of_which_nothing_is_known_is_refused_and_not_made(
    told: Database, command: tuple[str, ...]
) -> None:
    role = "operator" if command[0] in ("release", "readmit") else "app"
    refused = piped(*command, env=env(told, role))
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.startswith(b"memory: TENANT: must be one that has a record")
    assert b"planted" not in refused.stderr
    counts = [rows(told, name) for name in ("records", "tenants", "tombstones", "decisions")]
    assert counts == [2, 1, 0, 0]
    neighbour = piped(*[word.replace("planted-shpo", "shop") for word in command], env=env(told))
    assert neighbour.returncode != 2


async def test_a_tenant_that_was_erased_whole_is_known(told: Database) -> None:
    async with opened(told) as service:
        await service.forget_tenant("shop", confirm="shop")
    assert rows(told, "records") == 0
    assert forget(told, "shop", "planted-ann") == (0, b"")
    assert piped("history", "shop", env=env(told)).returncode == 0


async def test_who_was_never_known_is_told_and_whoever_was_erased_before_is_not(
    told: Database,
) -> None:
    for _ in range(2):  # the tombstone of nothing makes nobody known
        assert forget(told, "shop", "planted-anm") == (1, b"memory: " + NEVER)
    assert piped("forget", "shop", "planted-anm", "--dry-run", env=env(told)).returncode == 1
    for _ in range(2):
        assert forget(told, "shop", "planted-ann") == (0, b"")
    done = piped("forget", "shop", "planted-ann", "--dry-run", "--json", env=env(told))
    assert (done.returncode, json.loads(done.stdout)["known"]) == (0, True)
    # Of no such kind, and yet known.
    assert forget(told, "shop", "planted-bob", "--kind", "profile") == (0, b"")
    assert rows(told, "records") == 1
    # Barred beforehand: from then on there is a decision about them.
    barred = ("shop", "planted-eve", "--block-future")
    assert [forget(told, *barred)[0] for _ in range(2)] == [1, 0]
    with pytest.raises(Exception, match="block"):
        async with opened(told) as service:
            await service.remember("shop", text="planted", subject_keys="planted-eve")


async def test_it_is_told_before_the_question(told: Database) -> None:
    answers = {"Erase 0 records? [y/N]": "n"}
    shown = on_terminal("forget", "shop", "planted-anm", env=env(told), answers=answers)
    assert "nothing is known of this person" in shown.text.split("Erase 0 records?")[0]
    assert rows(told, "tombstones") == 0


async def test_a_plan_says_that_a_hold_would_defer_it(told: Database) -> None:
    async with opened(told) as service:
        await service.hold("shop", subject_key="planted-ann")
        await service.hold("shop", subject_key="planted-cy")
    for person, said in (("ann", b"1 records are kept by a"), ("cy", b"a hold is in force: the")):
        plan = piped("forget", "shop", f"planted-{person}", "--dry-run", env=env(told))
        assert (plan.returncode, said in plan.stderr) == (1, True)
        assert b"Would be deferred by a legal hold" in plan.stdout
    neighbour = piped("forget", "shop", "planted-bob", "--dry-run", env=env(told))
    assert (neighbour.returncode, neighbour.stderr) == (0, b"")
    assert b"Would be erased" in neighbour.stdout


async def test_nothing_is_certified_or_exported_as_if_it_had_been(
    told: Database, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    certify = ("certificate", "shop", "planted-anm", "--output", page)
    forget(told, "shop", "planted-anm")
    forget(told, "shop", "planted-ann")
    assert piped(*certify, env=env(told)).returncode == 1
    assert "<h1>Certificate that nothing was found</h1>" in page.read_text()
    certify = ("certificate", "shop", "planted-ann", "--output", page)
    assert piped(*certify, env=env(told)).returncode == 0
    assert "<h1>Certificate of erasure</h1>" in page.read_text()
    done = piped("export", "shop", "planted-zoe", env=env(told))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"nothing is known of this person" in done.stderr
    assert piped("export", "shop", "planted-ann", env=env(told)).returncode == 0


async def test_what_a_receipt_prints_is_an_anchor_to_check_against(
    told: Database, tmp_path: Path
) -> None:
    kept = tmp_path / "receipt.json"
    done = piped("forget", "shop", "planted-ann", "--yes", "--json", env=env(told))
    kept.write_bytes(done.stdout)
    assert json.loads(done.stdout)["receipt"]["anchor"]["tenant_key"] == "shop"
    check = ("check", "--anchors", kept)
    assert piped(*check, env=env(told, "owner")).returncode == 0
    kept.write_bytes(done.stdout.replace(b'"seq": 1', b'"seq": 2'))
    assert piped(*check, env=env(told, "owner")).returncode == 1
    kept.write_bytes(b'{"plan": {}, "receipt": {"anchor": null}}')
    assert piped(*check, env=env(told, "owner")).returncode == 2


async def test_a_hash_of_the_history_is_one_to_verify_with(told: Database, tmp_path: Path) -> None:
    forget(told, "shop", "planted-ann")
    async with opened(told) as service:
        [stone] = await service.erasure_history("shop")
    shown = piped("history", "shop", env=env(told))
    assert stone.subject_hash.encode() in shown.stdout
    for options, cut in (((), True), (("--subject", "planted-ann"), False)):
        screen = on_terminal("history", "shop", *options, env=env(told)).text
        assert (f"{stone.subject_hash[:16]}…" in screen) is cut
        assert (f"person {stone.subject_hash}" in screen) is not cut
    stream = tmp_path / "tombstones.jsonl"
    piped("tombstones", "export", "--output", stream, env=env(told, "owner"))
    given = ("--anchor", f"{stone.seq}:{stone.digest}", "--hash", stone.subject_hash)
    assert piped("tombstones", "verify", stream, *given, env=env(told)).returncode == 0
