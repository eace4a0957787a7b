"""The examples run as a newcomer would run them, and do what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psycopg
import pytest

from samples import example, start
from servers import Database


def said(dialogue: str, text: str, name: str = "") -> dict[str, object]:
    """Return one turn; ``name`` is labelled in it."""
    at = text.find(name)
    spans = [{"slot": "name", "start": at, "end": at + len(name)}] if name else []
    return {"dialogue": dialogue, "turn": 0, "speaker": "user", "text": text, "spans": spans}


def written(file: Path, *turns: object) -> Path:
    file.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return file


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


def test_the_quickstart_proves_that_nothing_is_left() -> None:
    output = example("quickstart.py")
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


def test_the_replay_needs_a_file_only(conversations: Path) -> None:
    output = example("replay.py", conversations)
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
    conversations: Path, database: Database, inspector: str
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
    output = example("replay.py", conversations, *urls)
    assert "What is left: 21 tombstones." in output
    with psycopg.connect(database.superuser_url) as superuser:
        left = superuser.execute("select tenant_key, text from memory.records").fetchall()
    assert left == [("other", "Zoe likes tea")]


def test_a_name_within_another_and_a_word_of_the_schema_are_no_false_alarm(
    tmp_path: Path, database: Database
) -> None:
    file = written(
        tmp_path / "names.jsonl",
        said("d1", "Ann will come at eight o'clock.", "Ann"),
        said("d10", "Anna will come at nine o'clock.", "Anna"),
        said("z", "Is it Ann or Anna who comes?", "Anna"),
        said("z", "subject"),
        said("z", "subject"),
    )
    urls = ("--database", database.app_url, "--inspector", database.superuser_url)
    output = example("replay.py", file, *urls)
    assert cells(output, "turns remembered")[1] == "5"
    assert "What is left: 5 tombstones." in output


def test_one_person_alone_is_replayed(tmp_path: Path, database: Database) -> None:
    file = written(tmp_path / "one.jsonl", said("d1", "I will come at eight o'clock."))
    output = example("replay.py", file, "--database", database.app_url)
    assert cells(output, "user:d1")[1] == "1"
    assert "the other" not in output
    assert "What is left: 1 tombstones." in output


def test_a_copy_that_escapes_the_erasure_is_found(conversations: Path, database: Database) -> None:
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        superuser.execute(
            """
            create table memory.copies (tenant_key text, subject_key text);
            create function memory.copy_subject() returns trigger language plpgsql
            security definer as $$
            begin
                insert into memory.copies values (new.tenant_key, new.subject_key);
                return null;
            end
            $$;
            create trigger copy_subject after insert on memory.record_subjects
            for each row execute function memory.copy_subject()
            """
        )
    urls = ("--database", database.app_url, "--inspector", database.superuser_url)
    done = start("replay.py", conversations, *urls)
    assert done.returncode == 1
    assert re.search(r"not erased, rows by table: .*'memory.copies': [1-9]", done.stderr)


GOOD = json.dumps(said("d1", "I will come."))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": is empty"),
        (f"{GOOD}\n{{oops\n", ", line 2: is not JSON in UTF-8"),
        (f"{'[' * 100_000}\n", ", line 1: is not JSON in UTF-8"),
        (f"{GOOD}\n[]\n", ", line 2: is not an object"),
        (GOOD.replace('"speaker"', '"who"'), ", line 1: speaker: missing or of another type"),
        (GOOD.replace("I will come.", " "), ", line 1: text: blank"),
        (
            json.dumps(said("d1", "Ann") | {"spans": [{"slot": "name", "start": 0, "end": 4}]}),
            ", line 1: spans: each needs a slot, a start and an end within the text",
        ),
    ],
    ids=["empty", "no JSON", "no end of it", "no object", "no speaker", "no text", "span outside"],
)
def test_a_file_that_cannot_be_replayed_is_refused_in_one_line(
    tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(content)
    done = start("replay.py", file)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{file}{message}\n")


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    done = start("replay.py", tmp_path / "absent")
    assert (done.returncode, done.stderr) == (2, f"{tmp_path / 'absent'}: is not a file\n")


def test_a_text_that_the_library_refuses_is_one_line_too(
    tmp_path: Path, database: Database
) -> None:
    file = written(tmp_path / "nul.jsonl", said("d1", "a\0b"))
    done = start("replay.py", file, "--database", database.app_url)
    assert (done.returncode, done.stderr) == (
        2,
        "items.0.text: must not hold a NUL character\n",
    )
