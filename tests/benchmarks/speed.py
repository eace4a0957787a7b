"""The same calls by each contender, taking turns: medians by round, ratios, and what was found."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg

from contender_raw import Raw
from corpus import Corpus
from servers import Database
from telling import DIMENSIONS, Contender, Told, Vectors

__all__ = ["QUICK", "VERBS", "Plan", "Speed", "table"]

VERBS: Final = ("remember", "ingest", "recall one person", "recall the tenant", "erase")
LIMIT: Final = 8
_BATCH: Final = 1_000
Job = Callable[[Contender], Awaitable[Any]]
Jobs = tuple[Job | None, Sequence[Job]]
"""What is done before, outside the clock, and what is timed."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything; the times of a quick run mean nothing."""

    others: int = 12_000
    people: int = 1_200
    rounds: int = 15
    calls: int = 20
    batch: int = 1_000
    batch_people: int = 20
    batch_rounds: int = 5
    erased: int = 40
    erase_calls: int = 2


QUICK: Final = Plan(
    others=60,
    people=6,
    rounds=2,
    calls=2,
    batch=20,
    batch_people=2,
    batch_rounds=1,
    erased=8,
    erase_calls=1,
)


@dataclass(kw_only=True)
class Speed:
    """Runs each measurement on contenders that hold the same memories of other people."""

    plan: Plan
    places: Mapping[str, tuple[Contender, Database]]
    vectors: Vectors
    say: Callable[[str], object] = str
    """Called with what begins."""
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    found: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._corpus = Corpus(dimensions=DIMENSIONS, people=self.plan.people)
        self._number = 0

    def told(self, person: str) -> Told:
        self._number += 1
        return Told(person=person, text=self.text(f"n{self._number}"))

    def text(self, first: str) -> str:
        return self.vectors.give(f"{first} {self._corpus.text()}", self._corpus.vector() or [])

    async def run(self) -> dict[str, Any]:
        await self.populate()
        await self.recalled()
        plan = self.plan
        await self.take("remember", plan.rounds, self._remember)
        await self.take("ingest", plan.batch_rounds, self._ingest)
        await self.take("recall one person", plan.rounds, self._recall_person)
        await self.take("recall the tenant", plan.rounds, self._recall_tenant)
        await self.take("erase", plan.rounds, self._erase)
        return self.figures()

    async def populate(self) -> None:
        told = [self.told(f"p:{n % self.plan.people}") for n in range(self.plan.others)]
        # By person, as one of them takes a batch of one person's.
        told.sort(key=lambda one: one.person)
        for name, (contender, database) in self.places.items():
            self.say(f"filling {name}")
            for start in range(0, len(told), _BATCH):
                await contender.ingest(told[start : start + _BATCH])
            await settle(database)

    async def take(self, verb: str, rounds: int, jobs: Callable[[int], Jobs]) -> None:
        """Time the jobs of each round by each contender, in another order every round."""
        self.say(verb)
        for _, database in self.places.values():
            await settle(database)
        for number in range(-1, rounds):
            prepare, todo = jobs(number)
            for name, contender in self._turns(number):
                if prepare is not None:
                    await prepare(contender)
                times = [await _seconds(job, contender) for job in todo]
                # The first round only warms up.
                if number >= 0:
                    by_name = self.seconds.setdefault(verb, {})
                    by_name.setdefault(name, []).append(statistics.median(times))

    def _turns(self, number: int) -> Iterator[tuple[str, Contender]]:
        names = list(self.places)
        for at in range(len(names)):
            name = names[(at + number) % len(names)]
            yield name, self.places[name][0]

    def _remember(self, number: int) -> Jobs:
        told = [self.told(f"writer:{number}") for _ in range(self.plan.calls)]
        return None, [lambda c, one=one: c.remember(one) for one in told]

    def _ingest(self, number: int) -> Jobs:
        people = self.plan.batch_people
        told = [self.told(f"batch:{number}:{n % people}") for n in range(self.plan.batch)]
        return None, [lambda c: c.ingest(told)]

    def _recall_person(self, number: int) -> Jobs:
        return None, [
            lambda c, q=q, p=p: c.recall(q, p, LIMIT) for q, p in self._questions(str(number))
        ]

    def _recall_tenant(self, number: int) -> Jobs:
        return None, [
            lambda c, q=q: c.recall(q, None, LIMIT) for q, _ in self._questions(f"t{number}")
        ]

    def _questions(self, name: str) -> list[tuple[str, str]]:
        people = self.plan.people
        return [(self.text(f"q{name}"), f"p:{n * 7 % people}") for n in range(self.plan.calls)]

    def _erase(self, number: int) -> Jobs:
        leavers = [f"leaver:{number}:{n}" for n in range(self.plan.erase_calls)]
        told = {who: [self.told(who) for _ in range(self.plan.erased)] for who in leavers}
        summaries = {
            self.text("summary"): (who, mine[at : at + 4])
            for who, mine in told.items()
            for at in range(0, len(mine), 4)
        }

        async def prepare(contender: Contender) -> None:
            for mine in told.values():
                await contender.ingest(mine)
            if contender.cascades:
                for text, (who, sources) in summaries.items():
                    await contender.summarise(text, sources, who)

        return prepare, [lambda c, who=who: c.erase(who) for who in leavers]

    async def recalled(self) -> None:
        """Compare what each finds with an exact scan, while all hold the same."""
        raw, _ = self.places["raw"]
        assert isinstance(raw, Raw)
        questions = self._questions("exact")
        for verb, alone in (("recall one person", True), ("recall the tenant", False)):
            shares: dict[str, list[float]] = {}
            for query, person in questions:
                who = person if alone else None
                right = set(await raw.exact(query, who, LIMIT))
                for name, (contender, _) in self.places.items():
                    got = set(await contender.recall(query, who, LIMIT))
                    shares.setdefault(name, []).append(len(got & right) / len(right))
            self.found[verb] = {name: statistics.mean(all_) for name, all_ in shares.items()}

    def figures(self) -> dict[str, Any]:
        return {verb: self._figures_of(verb) for verb in VERBS}

    def _figures_of(self, verb: str) -> dict[str, Any]:
        raw = self.seconds[verb]["raw"]
        return {
            name: {
                "median_us": statistics.median(times) * 1e6,
                "quartiles_us": [q * 1e6 for q in _quartiles(times)],
                "times_raw": statistics.median(a / b for a, b in zip(times, raw, strict=True)),
                "rounds": len(times),
            }
            | ({"found": self.found[verb][name]} if verb in self.found else {})
            for name, times in self.seconds[verb].items()
        }


async def _seconds(job: Job, contender: Contender) -> float:
    start = time.perf_counter()
    await job(contender)
    return time.perf_counter() - start


def _quartiles(times: Sequence[float]) -> tuple[float, float]:
    if len(times) < 2:
        return times[0], times[0]
    first, _, third = statistics.quantiles(times, n=4, method="inclusive")
    return first, third


async def settle(database: Database) -> None:
    """Vacuum and checkpoint now, so that the server does not do it in the middle of a round."""
    connection = await asyncpg.connect(database.superuser_url)
    await connection.execute("vacuum (analyze)")
    await connection.execute("checkpoint")
    await connection.close()


def table(figures: Mapping[str, Any]) -> Iterator[str]:
    names = list(figures[VERBS[0]])
    yield f"{'us a call: median (quartiles)':<20}" + "".join(f"{name:>28}" for name in names)
    for verb in VERBS:
        cells = []
        for name in names:
            it = figures[verb][name]
            low, high = it["quartiles_us"]
            cells.append(f"{it['median_us']:>10,.0f} ({low:,.0f}-{high:,.0f})")
        yield f"{verb:<20}" + "".join(f"{cell:>28}" for cell in cells)
    yield "times raw's"
    for verb in VERBS:
        cells = [f"{figures[verb][name]['times_raw']:.1f}" for name in names]
        yield f"{verb:<20}" + "".join(f"{cell:>28}" for cell in cells)
    yield f"of the exact {LIMIT} nearest"
    for verb in VERBS:
        if "found" in figures[verb][names[0]]:
            cells = [f"{figures[verb][name]['found']:.1%}" for name in names]
            yield f"{verb:<20}" + "".join(f"{cell:>28}" for cell in cells)
