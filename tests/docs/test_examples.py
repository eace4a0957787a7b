"""The examples run as a newcomer would run them, and do what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from servers import Database


def example(root: Path, name: str, *arguments: str | Path, **environment: str) -> str:
    """Run an example from another folder; return what it printed."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("DATABASE_URL")}
    script = root / "examples" / name
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *map(str, arguments)],
        cwd=root.parent,
        env={**clean, "COLUMNS": "120", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    """Twelve dialogues of three turns; ``Mira`` is named in every third."""
    lines = []
    for number in range(12):
        name = "Mira" if number % 3 == 0 else f"Guest{number}"
        texts = [
            f"Please book a table for {name}. It is number {number}.",
            "Which evening would suit you?",
            f"Friday, and call 98450 {12345 + number} when it is ready!",
        ]
        for turn, text in enumerate(texts):
            start = text.find(name)
            spans = [{"slot": "guest_name", "start": start, "end": start + len(name)}]
            line = {"dialogue": f"d{number}", "turn": turn, "text": text}
            line |= {"speaker": "system" if turn == 1 else "user", "spans": []}
            lines.append(json.dumps({**line, "spans": spans if start >= 0 else []}))
    file = tmp_path / "conversations.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def cells(output: str, first: str) -> list[str]:
    """Return the row of a printed table that begins with ``first``."""
    [line] = [line for line in output.splitlines() if line.startswith(f"│ {first} ")]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_the_quickstart_proves_that_nothing_is_left(root: Path) -> None:
    output = example(root, "quickstart.py")
    for identifier in ("98450 12345", "asha.k@example.com", "50100234567890", "HDFC0000123"):
        assert identifier not in output
    assert "also about: customer:vikram" in output
    assert "4 memories, 2 derived" in output
    proof = re.findall(r"^  (\w[\w ]+?) {2,}(\d+) +(\d+)$", output, re.MULTILINE)
    assert len(proof) == 6
    for what, before, now in proof:
        assert int(before) > 0, what
        assert int(now) == 0, what
    assert re.search(r"Li's \d+ rows are the same, byte for byte", output)


def test_the_replay_needs_a_file_only(root: Path, conversations: Path) -> None:
    output = example(root, "replay.py", conversations)
    assert cells(output, "turns remembered")[1] == "36"
    assert cells(output, "masked: phone_in")[1] == "12"
    for kind, count in {"summary": "12", "rolling": "12", "digest": "2"}.items():
        assert cells(output, f"derived: {kind}")[1] == count
    # The first user takes all of the rolling chain, its summary and its digest.
    assert cells(output, "user:d0")[1:3] == ["3", "14"]
    assert cells(output, "guest_name:mira")[1:3] == ["3", "3"]
    assert cells(output, "together")[1:3] == ["36", "26"]
    assert "What is left: 21 tombstones." in output


@pytest.mark.parametrize("inspector", ["superuser", "app"])
def test_the_replay_leaves_others_in_a_given_database_alone(
    root: Path, conversations: Path, database: Database, inspector: str
) -> None:
    kept = """
        insert into memory.records (tenant_key, record_id, text)
        values ('other', '0190a9c0-0000-7000-8000-000000000000', 'Zoe likes tea');
        insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
        values ('other', '0190a9c0-0000-7000-8000-000000000000', 'zoe', repeat('a', 64))
    """
    with psycopg.connect(database.superuser_url) as superuser:
        superuser.execute(kept)
    urls = ("--database", database.app_url, "--inspector", database.url(inspector))
    output = example(root, "replay.py", conversations, *urls)
    assert "What is left: 21 tombstones." in output
    with psycopg.connect(database.superuser_url) as superuser:
        left = superuser.execute("select tenant_key, text from memory.records").fetchall()
    assert left == [("other", "Zoe likes tea")]
