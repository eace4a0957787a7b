"""``memory certificate`` and ``memory tombstones verify --anchor`` on a database and beside it."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from memory import (
    InvalidInputError,
    LegalHoldError,
    Memory,
    PartialErasureError,
    tombstones,
)
from memory.cli.app import app
from memory.cli.plugs import Plugs
from memory.maintenance import purges_of
from memory.stores.postgres import PostgresStore
from restores import damage
from servers import Database

Command = Callable[..., int]
ANN, BOB = "planted-ann", "planted-bob"


def opened(database: Database, role: str = "app") -> Memory:
    return Memory(PostgresStore(database.url(role)), subject_pepper="planted-pepper")


@pytest.fixture
def command(database: Database, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process; return its exit code."""
    monkeypatch.setenv("MEMORY_SUBJECT_PEPPER", "planted-pepper")
    monkeypatch.setenv("MEMORY_DATABASE_URL", database.app_url)

    def run(*arguments: str | Path | UUID) -> int:
        code = app(list(map(str, arguments)), standalone_mode=False, obj=Plugs())
        return code if isinstance(code, int) else 0

    return run


async def erased(database: Database) -> None:
    """Ann's copy in an index is owed; a hold on Cy keeps what Bob shares with him."""
    async with opened(database) as memory:
        shop = memory.for_tenant("shop")
        told = await shop.remember(text="planted text", subject_keys=ANN)
        await shop.register_artefact(adapter="vectors", artefact_id="planted-id", sources=told)
        with pytest.raises(PartialErasureError):
            await shop.forget(subject_key=ANN)
        one = await shop.remember(text="planted text", subject_keys=BOB)
        await shop.remember(text="planted text", subject_keys=BOB)
        other = await shop.remember(text="planted text", subject_keys="planted-cy")
        await shop.derive(kind="summary", text="planted text", sources=[one, other])
        await shop.hold(subject_key="planted-cy")
        with pytest.raises(LegalHoldError):
            await shop.forget(subject_key=BOB)
        await shop.remember(text="planted text", subject_keys="planted-dan")
        await shop.forget(subject_key="planted-dan")


@pytest.fixture
def settled(database: Database) -> Database:
    asyncio.run(erased(database))
    return database


def shown(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    assert "planted" not in text
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    return text


def test_the_page_says_what_is_outstanding_now(
    settled: Database,
    command: Command,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "page.html"
    assert command("certificate", "shop", ANN, "--output", page, "--reference", "4711") == 1
    assert "<h1>Certificate of an incomplete erasure</h1>" in shown(page)
    assert "1 external index has not confirmed" in shown(page)
    assert command("certificate", "shop", BOB, "--output", page) == 1
    assert "kept by a legal hold" in shown(page)
    given = ("--output", page, "--backups-until", "2026-12-31")
    assert command("certificate", "shop", "planted-dan", *given) == 0
    assert "<h1>Certificate of erasure</h1>" in shown(page)
    assert "until 2026-12-31" in shown(page)
    page.unlink()
    for nobody in (("planted-cy",), ("planted-dan", "--erasure", "0" * 32)):
        assert command("certificate", "shop", *nobody, "--output", page) == 1
    assert not page.exists()
    assert "planted" not in "".join(capsys.readouterr())


def test_a_request_that_is_repeated_is_not_what_the_page_is_of(
    settled: Database, command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def again() -> tuple[UUID, UUID]:
        async with opened(settled) as memory:
            nothing = await memory.forget("shop", subject_key="planted-dan")
            await memory.forget("shop", subject_key="planted-misspelt")
            _, took = await memory.erasure_history("shop", subject_key="planted-dan")
            return nothing.erasure_id, took.erasure_id

    nothing, took = asyncio.run(again())
    page = tmp_path / "page.html"
    assert command("certificate", "shop", "planted-dan", "--output", page) == 0
    assert str(took) in shown(page)
    assert str(nothing) not in shown(page)
    assert capsys.readouterr().err == ""
    command("certificate", "shop", "planted-dan", "--erasure", nothing, "--output", page)
    assert str(nothing) in shown(page)
    said = f"memory: this erasure took nothing; others of the person did (--erasure): {took}\n"
    assert capsys.readouterr().err == said
    command("certificate", "shop", "planted-misspelt", "--output", page)
    assert "took nothing, and no other did: is the key right?\n" in capsys.readouterr().err


async def erased_jointly(database: Database) -> None:
    """The copy of a record about Ann and Bob is owed since Ann's erasure; Bob's is after it."""
    async with opened(database) as memory:
        shop = memory.for_tenant("shop")
        told = await shop.remember(text="planted text", subject_keys=[ANN, BOB])
        await shop.register_artefact(adapter="vectors", artefact_id="planted-id", sources=told)
        for person in (ANN, BOB):
            with pytest.raises(PartialErasureError):
                await shop.forget(subject_key=person)
        await shop.remember(text="planted text", subject_keys="planted-dan")
        await shop.forget(subject_key="planted-dan")


def test_what_an_earlier_erasure_left_owed_about_the_person_is_outstanding(
    database: Database, command: Command, tmp_path: Path
) -> None:
    asyncio.run(erased_jointly(database))
    page = tmp_path / "page.html"
    assert command("certificate", "shop", BOB, "--output", page) == 1
    assert "<h1>Certificate of an incomplete erasure</h1>" in shown(page)
    assert "1 outstanding" in shown(page)
    assert command("certificate", "shop", "planted-dan", "--output", page) == 0
    assert "<h1>Certificate of erasure</h1>" in shown(page)


async def swept(database: Database) -> None:
    """A hold on Cy has a sweep pass by what Bob shares with him; then Ann's row comes back."""
    async with opened(database) as memory:
        shop = memory.for_tenant("shop")
        for people in ([ANN], [BOB], [BOB, "planted-cy"], ["planted-dan"]):
            await shop.remember(text="planted text", subject_keys=people)
        await shop.hold(subject_key="planted-cy")
        with pytest.raises(LegalHoldError):
            await shop.forget_tenant(confirm="shop")
        for person in (ANN, "planted-dan"):
            await shop.remember(text="planted text", subject_keys=person)
    damage(
        database,
        "update memory.records as r set created_at = r.created_at - interval '1 day'"
        " from memory.record_subjects as l where l.record_id = r.record_id"
        f" and l.subject_key = '{ANN}'",
    )


def test_what_a_sweep_passed_by_and_what_came_back_is_not_certified_away(
    database: Database, command: Command, tmp_path: Path
) -> None:
    asyncio.run(swept(database))
    page = tmp_path / "page.html"
    for person in (ANN, BOB):
        assert command("certificate", "shop", person, "--output", page) == 1
        assert "<h1>Certificate of an incomplete erasure</h1>" in shown(page)
        assert "1 record of before it is there" in shown(page)
    assert command("certificate", "shop", "planted-dan", "--output", page) == 0
    assert "<h1>Certificate of erasure</h1>" in shown(page)


async def test_what_is_owed_is_owed_to_whom_the_tombstones_name(database: Database) -> None:
    await erased_jointly(database)
    async with opened(database) as memory:
        for person, owed in ((BOB, 1), ("planted-dan", 0)):
            [stone] = await memory.erasure_history("shop", subject_key=person)
            of = {"tenant_key": "shop", "erasure_id": stone.erasure_id}
            named = await purges_of(database.app_url, **of, subject_hash=stone.subject_hash)
            assert sum(state.owed or 0 for state in named) == owed
            assert await purges_of(database.app_url, **of) == named
    with pytest.raises(InvalidInputError, match="subject_hash"):
        await purges_of(database.app_url, **of, subject_hash="planted")


def test_a_page_and_a_stream_are_verified_without_the_database(
    settled: Database,
    command: Command,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page, stream = tmp_path / "page.html", tmp_path / "stream"
    assert command("certificate", "shop", "planted-dan", "--output", page) == 0
    [line] = [x for x in page.read_text().splitlines() if x.startswith('{"type":"tombstone"')]
    stone = json.loads(line)
    anchor = f"{stone['seq']}:{stone['digest']}"
    assert command("tombstones", "export", "--tenant", "shop", "--output", stream) == 0
    monkeypatch.delenv("MEMORY_DATABASE_URL")
    verify = ("tombstones", "verify")
    (tmp_path / "line").write_text(line)
    assert command(*verify, tmp_path / "line", "--anchor", anchor) == 0
    capsys.readouterr()
    given = ("--anchor", anchor, "--hash", stone["subject_hash"], "--json")
    assert command(*verify, stream, *given) == 0
    proof = json.loads(capsys.readouterr().out)
    assert (proof["tombstones"], proof["whole"], proof["beyond"]) == ([stone], True, 0)
    assert command(*verify, stream, "--anchor", anchor, "--hash", "0" * 64) == 1
    assert command(*verify, stream, "--anchor", anchor, "--erasure", stone["erasure_id"]) == 0
    for wrong in (f"{stone['seq']}:{'0' * 64}", f"{stone['seq'] + 1}:{stone['digest']}", "planted"):
        assert command(*verify, stream, "--anchor", wrong) == 2
    (tmp_path / "huge").write_bytes(b"[" * 10_000_000)
    assert command(*verify, tmp_path / "huge", "--anchor", anchor) == 2
    assert tombstones.verify(stream.read_bytes().splitlines()).tombstones == 3
    said = capsys.readouterr()
    assert "anchor" in said.err
    assert "planted" not in said.out + said.err
