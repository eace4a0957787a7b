"""A file of conversations: its turns, whom each is about, and a summary without a model."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Turn = dict[str, Any]

FIELDS = {"dialogue": str | int, "turn": str | int, "speaker": str, "text": str, "spans": list}


class FileError(Exception):
    """Says in one line why a file cannot be replayed."""


def read(file: Path) -> dict[str, list[Turn]]:
    """Return the turns of each dialogue, in the order of the file."""
    dialogues: dict[str, list[Turn]] = defaultdict(list)
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            turn = json.loads(line)
            wrong = fault(turn)
        except (ValueError, RecursionError):
            wrong = "is not JSON in UTF-8"
        if wrong:
            raise FileError(f"{file}, line {number}: {wrong}")
        dialogues[str(turn["dialogue"])].append(turn)
    if not dialogues:
        raise FileError(f"{file}: is empty")
    return dialogues


def fault(turn: Any) -> str | None:
    """Say what keeps a line from being a turn, None if nothing does."""
    if not isinstance(turn, dict):
        return "is not an object"
    if wrong := [name for name, kind in FIELDS.items() if not isinstance(turn.get(name), kind)]:
        return f"{', '.join(wrong)}: missing or of another type"
    size = len(turn["text"])
    for span in turn["spans"]:
        match span:
            case {"slot": str(), "start": int(start), "end": int(end)} if 0 <= start < end <= size:
                continue
        return "spans: each needs a slot, a start and an end within the text"
    return None if turn["text"].strip() else "text: blank"


def people(turn: Turn) -> list[str]:
    """Return whom a turn is about: the dialogue's user, and every name labelled in it."""
    names = {
        f"{span['slot'].removeprefix('new_')}:{turn['text'][span['start'] : span['end']].lower()}"
        for span in turn["spans"]
        if span["slot"].endswith("name")
    }
    return [f"user:{turn['dialogue']}", *sorted(names)]


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+", text)


def extract(texts: Iterable[str], most: int) -> str:
    """Summarise without a model: the first sentence, then the longest others, in order."""
    first, *others = dict.fromkeys(s for text in texts for s in sentences(text))
    longest = sorted(others, key=len, reverse=True)[: most - 1]
    return " ".join([first, *(s for s in others if s in longest)])
