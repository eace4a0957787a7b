"""What the benchmarks store: the same texts, vectors and people in every run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from memory import Item

DIMENSIONS = 384
_SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]


class Load:
    """Makes items and the rows of the baseline that hold the same."""

    def __init__(self, seed: int = 7) -> None:
        self._source = random.Random(seed)  # noqa: S311 - the same in every run
        self._words = ["".join(self._source.choices(_SYLLABLES, k=3)) for _ in range(4_000)]
        self._words = list(dict.fromkeys(self._words))
        self._vectors = [[self._source.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(500)]

    def text(self, terms: int) -> str:
        """Return a text of so many different words."""
        return " ".join(self._source.sample(self._words, terms))

    def vector(self) -> list[float]:
        return self._source.choice(self._vectors)

    def items(self, count: int, subjects: Sequence[str], terms: int = 5) -> list[Item]:
        """Return items about the subjects in turn, one subject each."""
        return [
            Item(
                text=self.text(terms),
                subject_keys=subjects[number % len(subjects)],
                embedding=self.vector(),
            )
            for number in range(count)
        ]


def people(prefix: str, count: int) -> list[str]:
    return [f"{prefix}:{number}" for number in range(count)]


def row(tenant: str, item: Item) -> tuple[str, UUID, str, Any, Any]:
    """Return the row of the baseline for an item of one subject."""
    return tenant, uuid4(), item.text, item.embedding, item.subject_keys
