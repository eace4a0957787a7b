"""The comparison of strategies runs and reports every figure, on turns made of the questions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from dialogues import WAYS
from questions import QUESTIONS

SCRIPT = Path(__file__).with_name("dialogues.py")


def written(file: Path) -> Path:
    """A file in which each turn that answers says what it is asked."""
    texts = {turn: question.text for question in QUESTIONS for turn in question.evidence}
    lines = []
    for name, text in sorted(texts.items()):
        dialogue, turn = name.split(":")
        lines.append(json.dumps({"dialogue": dialogue, "turn": int(turn), "text": text}))
    file.write_text("\n".join(lines) + "\n")
    return file


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def test_every_strategy_is_reported_at_every_depth(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = run(written(tmp_path / "turns.jsonl"), "--json", figures)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(figures.read_text())
    assert sum(found["questions"].values()) == len(QUESTIONS)
    for way in WAYS:
        assert found[way].keys() == {"all", *found["questions"]}
        # What is said in the very words of the question is found by any of them.
        assert found[way]["all"]["at_5"] > 0.9
        assert found[way]["all"]["at_10"] == 1.0
        assert any(line.startswith(way) for line in done.stdout.splitlines())


def test_another_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"dialogue": "d", "turn": 0, "text": "Hello"}) + "\n")
    done = run(other)
    assert done.returncode != 0
    assert "not the file of these questions" in done.stderr
