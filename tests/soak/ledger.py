"""What a client of the soak writes down, before and after each call, so that a kill loses nothing.

Every line is one write to a file opened for appending: what was written is there whatever becomes
of the process. A marker is letters that are nowhere else: each person has one, and each text.
"""

from __future__ import annotations

import json
import os
import random
import string
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARKER = "zq[a-z]{16}"


def marker(chance: random.Random) -> str:
    return "zq" + "".join(chance.choices(string.ascii_lowercase, k=16))


class Ledger:
    """Appends what one client does; times are seconds of the machine's monotonic clock."""

    def __init__(self, folder: Path, client: str) -> None:
        self._file = os.open(
            folder / f"{client}.ledger", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600
        )

    def note(self, what: str, **facts: Any) -> None:
        line = json.dumps({"what": what, **facts}, separators=(",", ":"))
        os.write(self._file, f"{line}\n".encode())

    def call(self, verb: str, seconds: float, outcome: str) -> None:
        self.note("call", at=time.monotonic(), verb=verb, s=round(seconds, 5), outcome=outcome)


def entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Every line of every client, client by client. Of one that was killed the last may be cut."""
    for file in sorted(folder.glob("*.ledger")):
        for line in file.read_text().splitlines():
            try:
                yield {"client": file.stem, **json.loads(line)}
            except ValueError:
                continue


@dataclass
class Text:
    """A text that was sent: about whom, as which record (None: nobody said), until when."""

    people: frozenset[str]
    tenant: str
    record: str | None = None
    expires: bool = False


@dataclass
class Account:
    """What all ledgers say: texts by their marker, people by theirs, artefacts by their id."""

    texts: dict[str, Text] = field(default_factory=dict)
    tenants: dict[str, str] = field(default_factory=dict)
    erasing: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    holds: set[str] = field(default_factory=set)
    artefacts: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    calls: list[tuple[float, str, float, str]] = field(default_factory=list)
    memory: dict[str, list[tuple[float, int]]] = field(default_factory=dict)

    def dead(self) -> set[str]:
        """The markers of the people who were erased, and of every text about any of them."""
        about = {it for it, text in self.texts.items() if text.people & self.erased}
        return self.erased | about | {it for it, text in self.texts.items() if text.expires}

    def standing(self) -> dict[str, Text]:
        """Texts whose write was acknowledged, about people whose erasure nobody asked for."""
        gone = self.erased | self.erasing
        return {
            it: text
            for it, text in self.texts.items()
            if text.record is not None and not text.expires and not text.people & gone
        }


def account(lines: Iterable[dict[str, Any]]) -> Account:
    """Add up the ledgers."""
    found = Account()
    for line in lines:
        match line["what"]:
            case "call":
                found.calls.append((line["at"], line["verb"], line["s"], line["outcome"]))
            case "memory":
                found.memory.setdefault(line["client"], []).append((line["at"], line["rss"]))
            case "born":
                found.tenants[line["person"]] = line["tenant"]
            case "telling":
                for it in line["texts"]:
                    found.texts[it] = Text(
                        frozenset(line["people"]), line["tenant"], None, line["expires"]
                    )
            case "told":
                found.texts[line["text"]].record = line["record"]
            case "artefact":
                found.artefacts[line["artefact"]] = line["person"]
            case "erasing":
                found.erasing.add(line["person"])
            case "erased":
                found.erased.add(line["person"])
            case "hold":
                found.holds.add(line["person"])
            case "violation":
                found.violations.append(f"{line['client']}: {line['text']}")
    return found
