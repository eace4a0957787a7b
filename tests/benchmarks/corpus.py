"""Many memories with words as people use them: for benchmarks of recall, the same in every run.

The commonest word stands in half of the records, the next in .35, .28, .24 and so on, as in task
dialogues; beyond the first hundred a Zipf tail of 60,000 follows, half of it by topic. A record has
about 20 distinct words. Given a file of dialogues (JSON lines with ``text``), its words take the
first ranks; without it words are made up.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory import Item, Memory
from memory.stores.postgres import PostgresStore
from memory.tokens import terms

__all__ = ["Corpus", "fill"]

VOCABULARY, HEAD, TOPICS = 60_000, 100, 400
CENTRES, DIRECTIONS = 3_000, 40
BATCH = 2_000


@dataclass(kw_only=True)
class Corpus:
    """Texts, vectors and questions. ``dimensions`` of 0 makes no vectors."""

    seed: int = 7
    dialogues: Path | None = None
    dimensions: int = 0
    people: int = 1_000

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)  # noqa: S311 - the same in every run
        self.words = _words(self.dialogues)
        self._shares = [0.5 * rank**-0.52 for rank in range(1, HEAD + 1)]
        tail = (rank**-1.05 for rank in range(HEAD + 1, VOCABULARY + 1))
        self._tail = list(itertools.accumulate(tail))
        topical = VOCABULARY // TOPICS
        self._topical = list(itertools.accumulate(1 / rank for rank in range(1, topical + 1)))
        count = CENTRES if self.dimensions else 0
        self._centres = [self._direction(1.0) for _ in range(count)]
        self._directions = [self._direction(0.5) for _ in range(DIRECTIONS if count else 0)]

    def text(self) -> str:
        """Return a text of about 20 distinct words, in no order."""
        chance, words = self._chance, self.words
        chosen = [n for n, share in enumerate(self._shares) if chance.random() < share]
        chosen += chance.choices(range(HEAD, VOCABULARY), cum_weights=self._tail, k=6)
        topic = chance.randrange(TOPICS)
        chosen += (
            VOCABULARY - 1 - n * TOPICS - topic
            for n in chance.choices(range(len(self._topical)), cum_weights=self._topical, k=6)
        )
        chance.shuffle(chosen)
        return " ".join(words[n] for n in chosen)

    def vector(self) -> list[float] | None:
        """Return a point near one of the centres, or None where there are no dimensions."""
        if not self.dimensions:
            return None
        chance = self._chance
        first, second, third = chance.choices(self._directions, k=3)
        a, b, c = (chance.gauss(0, 1) for _ in range(3))
        centre = chance.choice(self._centres)
        return [
            x + a * i + b * j + c * k
            for x, i, j, k in zip(centre, first, second, third, strict=True)
        ]

    def items(self, count: int, *, vectors: int | None = None) -> Iterator[Item]:
        """Yield items, each about one of ``people`` in turn; the first ``vectors`` have one."""
        for number in range(count):
            yield Item(
                text=self.text(),
                subject_keys=f"p:{number % self.people}",
                embedding=self.vector() if vectors is None or number < vectors else None,
            )

    def natural(self, count: int, *, words: int = 8) -> list[str]:
        """Return questions: so many consecutive words of a text, the common ones left in.

        Every second one has a word that 28 % of the records or more hold.
        """
        common, found = set(self.words[:3]), list[str]()
        while len(found) < count:
            question = self.text().split()[:words]
            if len(question) == words and common.isdisjoint(question) == len(found) % 2:
                found.append(" ".join(question))
        return found

    def common(self, count: int, *, words: int = 3) -> list[str]:
        """Return questions of words that 15 to 50 % of the records hold, and no other."""
        ranks = [n for n, share in enumerate(self._shares) if share >= 0.15]
        drawn = (self._chance.sample(ranks, words) for _ in range(count))
        return [" ".join(self.words[n] for n in sample) for sample in drawn]

    def _direction(self, size: float) -> list[float]:
        scale = size / self.dimensions**0.5
        return [self._chance.gauss(0, scale) for _ in range(self.dimensions)]


def _words(dialogues: Path | None) -> list[str]:
    counted: Counter[str] = Counter()
    if dialogues is not None:
        with dialogues.open(encoding="utf-8") as lines:
            for line in lines:
                counted.update(terms(json.loads(line)["text"]).keys())
    words = [word for word, _ in counted.most_common()]
    syllables = [first + second for first in "bdfgklm" for second in "aeiou"]
    made = (f"{syllable}{n}" for n in itertools.count() for syllable in syllables)
    taken = set(words)
    words += itertools.islice((word for word in made if word not in taken), VOCABULARY)
    return words[:VOCABULARY]


async def fill(
    memory: Memory, tenant: str, corpus: Corpus, count: int, *, vectors: int | None = None
) -> None:
    """Remember ``count`` items for a tenant, the first ``vectors`` of them with a vector.

    Vacuum afterwards, or measure what it is not to: postings are read by index-only scans.
    """
    items = corpus.items(count, vectors=vectors)
    while batch := list(itertools.islice(items, BATCH)):
        await memory.remember_many(tenant, items=batch)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Fill a tenant with memories to recall.")
    parser.add_argument("url", help="the application role's URL")
    parser.add_argument("tenant")
    parser.add_argument("count", type=int)
    parser.add_argument("--dialogues", type=Path, help="JSON lines with text: real words by rank")
    parser.add_argument("--dimensions", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    corpus = Corpus(
        seed=arguments.seed, dialogues=arguments.dialogues, dimensions=arguments.dimensions
    )
    store = PostgresStore(arguments.url)
    async with Memory(store, redactor=None, subject_pepper="bench") as memory:
        await fill(memory, arguments.tenant, corpus, arguments.count)
    sys.stdout.write(f"{arguments.count} memories\n")


if __name__ == "__main__":
    asyncio.run(main())
