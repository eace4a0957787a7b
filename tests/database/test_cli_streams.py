"""A stream kept beside the backups is not lost to a database that knows less than it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from memory import tombstones
from restores import backup, damage, opened
from servers import Database
from terminals import environment, piped


def export(database: Database, file: Path, *options: str) -> tuple[int, str]:
    done = piped(
        *("tombstones", "export", "--output", file, *options),
        env=environment(database.owner_url, "p"),
    )
    return done.returncode, done.stderr.decode()


async def forget(database: Database, *people: str, tenant: str = "planted-shop") -> None:
    async with opened(database) as service:
        for person in people:
            await service.remember(tenant, text="planted", subject_keys=person)
            await service.forget(tenant, subject_key=person)


def count(file: Path) -> int:
    return tombstones.verify(file.read_bytes().splitlines()).tombstones


async def test_a_restored_database_does_not_replace_the_stream_it_falls_short_of(
    database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "tombstones.jsonl"
    await forget(database, "ann")
    with backup(database) as restored:
        await forget(database, "bob", tenant="planted-bank")
        assert export(database, file) == (0, "")
        kept = file.read_bytes()
        code, said = export(restored, file)
        assert (code, "was kept" in said, "planted" in said) == (1, True, False)
        # As long as the stream, after a replay or without one, and still another chain.
        await forget(restored, "eve", "zoe", tenant="planted-bank")
        assert export(restored, file)[0] == 1
        assert file.read_bytes() == kept
        assert [path.name for path in tmp_path.iterdir()] == [file.name]
        assert export(restored, other := tmp_path / "other.jsonl") == (0, "")
        assert count(other) == 3
        assert export(restored, file, "--replace") == (0, "")
        assert file.read_bytes() == other.read_bytes()


async def test_a_stream_is_replaced_by_what_continues_it(
    database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "tombstones.jsonl"
    assert export(database, file) == (0, "")
    await forget(database, "ann")
    assert export(database, file) == (0, "")
    await forget(database, "bob")
    await forget(database, "ann", tenant="planted-bank")
    for _ in range(2):
        assert export(database, file) == (0, "")
        assert (count(file), stat.S_IMODE(file.stat().st_mode)) == (3, 0o600)
    # A tenant's stream lacks the others'.
    assert export(database, file, "--tenant", "planted-bank")[0] == 1
    assert count(file) == 3


@pytest.mark.parametrize("there", [b"", b"planted", b'{"type":"stream"}\n'])
async def test_what_is_no_stream_is_not_replaced_either(
    database: Database, tmp_path: Path, there: bytes
) -> None:
    file = tmp_path / "tombstones.jsonl"
    file.write_bytes(there)
    code, said = export(database, file)
    assert (code, said.startswith("memory: --output: must not be a file")) == (2, True)
    assert file.read_bytes() == there
    assert export(database, file, "--replace") == (0, "")
    assert count(file) == 0


async def test_a_stream_is_not_replaced_by_a_chain_that_was_edited(
    database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "tombstones.jsonl"
    await forget(database, "ann")
    assert export(database, file) == (0, "")
    kept = file.read_bytes()
    await forget(database, "bob")
    damage(database, "update memory.tombstones set memories = 9 where seq = 2")
    assert export(database, file)[0] == 1
    assert file.read_bytes() == kept
