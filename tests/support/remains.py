"""A person to erase whose every trace can be told from a neighbour's, and a search for the traces.

Whatever is searched for is made of random letters, so that sixteen bytes of it are nowhere else.
"""

from __future__ import annotations

import base64
import json
import random
import string
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from memory import Memory
from memory.maintenance import find_residue
from memory.maintenance.needles import Needle
from memory.maintenance.residue import Trace

DIMENSIONS = 128
FRAGMENT = 16
_PHRASE = "the weather is fine today and nothing else is new "


@dataclass
class Person:
    """What is remembered about one person, and what to look for once it is gone."""

    key: str
    items: list[dict[str, Any]] = field(default_factory=list)
    texts: list[Needle] = field(default_factory=list)
    keys: list[Needle] = field(default_factory=list)
    words: list[Needle] = field(default_factory=list)
    vectors: list[Needle] = field(default_factory=list)
    metadata: list[Needle] = field(default_factory=list)
    compressed: list[Needle] = field(default_factory=list)
    encoded: list[Needle] = field(default_factory=list)

    @property
    def groups(self) -> dict[str, list[Needle]]:
        return {
            name: getattr(self, name)
            for name in ("texts", "keys", "words", "vectors", "metadata", "compressed", "encoded")
        }


def make_person(name: str, *, records: int, seed: int) -> Person:
    """Records short, long (kept out of line), long and compressible, and in other encodings."""
    dice = random.Random(seed)  # noqa: S311 - a test that can be repeated
    person = Person(key=f"customer:{name}:{_letters(dice, 16)}")
    person.keys.append(person.key)
    for number in range(records):
        word, note = _letters(dice, 18), _letters(dice, 40)
        text = " ".join([word, *(_letters(dice, dice.randint(4, 9)) for _ in range(9))])
        if number % 10 == 1:
            text += " " + " ".join(_letters(dice, 8) for _ in range(dice.randint(280, 420)))
        if number % 10 == 2:
            text = f"{word} {_PHRASE * 60}"
            person.compressed.append(word)
        else:
            person.texts.append(text)
        vector = [dice.uniform(-1, 1) for _ in range(DIMENSIONS)]
        record_key = f"profile:{_letters(dice, 20)}" if number % 3 == 0 else None
        person.words.append(word)
        person.metadata.append(note)
        person.vectors.append(vector)
        if record_key:
            person.keys.append(record_key)
        person.items.append(
            {
                "text": text,
                "subject_keys": person.key,
                "metadata": {"note": note, **_encoded(dice, person, number)},
                "embedding": vector,
                "record_key": record_key,
            }
        )
    return person


def _encoded(dice: random.Random, person: Person, number: int) -> dict[str, str]:
    if number % 10 != 3:
        return {}
    # What has to be escaped stands apart: eight letters between are nowhere else.
    secret = '"'.join(_letters(dice, 12) for _ in range(3)) + f"é{_letters(dice, 12)}\n"
    secret += _letters(dice, 12)
    person.encoded.append(secret)
    plain = secret.encode()
    return {
        "upper": secret.upper(),
        "hex": plain.hex(),
        **{f"base64_{n}": base64.b64encode(b"~" * n + plain).decode() for n in range(3)},
        "json": json.dumps(secret),
    }


def _letters(dice: random.Random, length: int) -> str:
    return "".join(dice.choices(string.ascii_lowercase, k=length))


async def remember(memory: Memory, *people: Person) -> None:
    """Write everybody's records among each other's, and derive from some."""
    rows = zip_longest(*(person.items for person in people))
    items = [item for row in rows for item in row if item is not None]
    for start in range(0, len(items), 50):
        await memory.remember_many("shop", items=items[start : start + 50])
    for number, person in enumerate(people):
        dice = random.Random(1_000 + number)  # noqa: S311
        for record in await memory.records("shop", subject_keys=person.key, limit=10):
            text = " ".join(_letters(dice, 8) for _ in range(30))
            vector = [dice.uniform(-1, 1) for _ in range(DIMENSIONS)]
            person.texts.append(text)
            person.vectors.append(vector)
            await memory.derive("shop", kind="summary", text=text, sources=record, embedding=vector)


@dataclass(frozen=True)
class Found:
    """The share of each group of a person's needles that was found, and the traces of them."""

    shares: dict[str, float]
    traces: tuple[Trace, ...]


def search(data: Path, *people: Person) -> list[Found]:
    """Look for sixteen bytes of anything about anybody, in every file."""
    owners = [(p.key, name) for p in people for name, group in p.groups.items() for _ in group]
    needles = [needle for p in people for group in p.groups.values() for needle in group]
    residue = find_residue(data, needles, fragment=FRAGMENT)
    assert residue.unreadable == ()
    found = [owners[position] for position in residue.found]
    return [
        Found(
            shares={
                name: found.count((person.key, name)) / len(group)
                for name, group in person.groups.items()
            },
            traces=tuple(t for t in residue.traces if owners[t.needle][0] == person.key),
        )
        for person in people
    ]
