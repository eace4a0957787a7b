"""How a step of the machine is run, compared with the model, and judged."""

from __future__ import annotations

import asyncio
import functools
import random
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from uuid import NAMESPACE_OID, UUID, uuid5

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from memory import (
    LegalHoldError,
    Memory,
    PartialErasureError,
    StoreUnavailableError,
    SubjectBlockedError,
)
from observed import Observed
from stages import UNDONE, UNKNOWN, WAYS, InPostgres, InProcess, Outcome
from stores import leaks
from world import PEPPER, Artefact, Done, Home, differences, hash_of

PEOPLE, ADAPTERS, ARTEFACTS = ["ann", "bob", "cy", "dee"], ["vectors", "cache"], ["p1", "p2", "p3"]

tenants, persons = st.integers(0, 1), st.sampled_from(PEOPLE)
people = st.lists(persons, min_size=1, max_size=3, unique=True)
picks = st.lists(st.integers(0, 60), min_size=1, max_size=3)
keys = st.sampled_from([None, None, "profile", "plan"])
kinds = st.sampled_from(["episodic", "profile"])
lives = st.sampled_from([None, None, None, 1, 3])
artefacts = st.tuples(st.sampled_from(ADAPTERS), st.sampled_from(ARTEFACTS))
ways = st.sampled_from(["plain"] * 10 + list(WAYS[1:]))
delays = st.integers(0, 12)


def step(**strategies: Any) -> Callable[[Any], Any]:
    """A rule that notes what it was called with and what it failed of.

    A failure that depends on the moment may not come again, and is then told of as flaky only.
    """

    def noted(method: Any) -> Any:
        @functools.wraps(method)
        def run(self: Performing, **drawn: Any) -> None:
            self.trace.append(f"{method.__name__} {drawn}")
            try:
                method(self, **drawn)
            except Exception:
                Performing.failures.append(traceback.format_exc() + "\n".join(self.trace))
                raise

        return rule(**strategies)(run)

    return noted


class Index:
    """An index in this process that fails as it is told to, and knows what it has confirmed."""

    def __init__(self, name: str) -> None:
        self.name, self.mode, self.chance = name, "well", random.Random(0)  # noqa: S311
        self.held: set[str] = set()
        self.asked: set[str] = set()
        self.answered: set[str] = set()
        self.confirmed: set[str] = set()

    def _fail(self) -> None:
        if self.mode == "raises" or (self.mode == "sometimes" and self.chance.random() < 0.5):
            raise OSError(self.name)

    async def purge(self, artefact_ids: list[str]) -> int:
        self.asked |= set(artefact_ids)
        await asyncio.sleep(0)
        self._fail()
        if self.mode != "lies":
            self.held -= set(artefact_ids)
        return len(artefact_ids)

    async def present(self, artefact_ids: list[str]) -> set[str]:
        await asyncio.sleep(0)
        self._fail()
        self.confirmed |= set(artefact_ids) - self.held
        self.answered |= set(artefact_ids)
        return self.held & set(artefact_ids)


@dataclass
class Step:
    """A verb to be run and what it does to the model, where nothing refuses it.

    ``change`` takes the home and the ids of the records that have come; it returns what went.
    """

    home: Home
    call: Callable[[Memory], Any]
    change: Callable[[Home, list[UUID]], list[Done]]
    refusals: set[type[Exception]] = field(default_factory=set)
    adds: int = 0
    operator: bool = False
    sweeps: bool = False
    raises_holds: bool = False
    lists_receipts: bool = False
    asks_all: bool = False


class Performing(RuleBasedStateMachine):
    """One history; ``stage`` is set by whoever runs it and outlives it."""

    stage: ClassVar[InProcess | InPostgres]
    steps: ClassVar[int] = 0
    histories: ClassVar[int] = 0
    failures: ClassVar[list[str]] = []

    def __init__(self) -> None:
        super().__init__()
        Performing.histories += 1
        self.start = datetime.now(UTC).replace(microsecond=0)
        self.hours = 0
        self.written = 0
        self.trace: list[str] = []
        self.gone: set[str] = set()
        self.indexes = {name: Index(name) for name in ADAPTERS}
        token = uuid5(NAMESPACE_OID, f"{self.start.isoformat()} {Performing.histories}").hex[:8]
        self.token = "".join(chr(ord("a") + int(digit, 16)) for digit in token)
        self.homes = [Home(f"{name}-{self.token}") for name in ("acme", "globex")]
        self.stage.begin(indexes=list(self.indexes.values()), subject_pepper=PEPPER, clock=self.now)
        self.seen = [self.run(self.stage.observe(home.tenant, self.start)) for home in self.homes]

    def run(self, work: Any) -> Any:
        return self.stage.runner.run(work)

    def now(self) -> datetime:
        return self.start + timedelta(hours=self.hours)

    # Names that are nowhere else, so that what is left of somebody is found by searching for them

    def person(self, name: str) -> str:
        return f"customer:{name}-{self.token}"

    def everybody(self, names: Iterable[str]) -> list[str]:
        return [self.person(name) for name in names]

    def text(self) -> str:
        self.written += 1
        letters = "".join(chr(ord("a") + int(digit)) for digit in f"{self.written:04d}")
        return f"note zq{self.token}{letters}z"

    def artefact(self, pair: Artefact) -> Artefact:
        return pair[0], f"{pair[1]}-{self.token}"

    def picked(self, home: Home, numbers: Iterable[int]) -> list[UUID]:
        ids = list(home.records)
        return list(dict.fromkeys(ids[number % len(ids)] for number in numbers)) if ids else []

    def at(self, hours: int | None) -> datetime | None:
        return None if hours is None else self.start + timedelta(hours=hours)

    def blocked(self, home: Home, named: Iterable[str]) -> set[type[Exception]]:
        return {SubjectBlockedError} if set(named) & home.blocked else set()

    def observe(self, home: Home) -> Observed:
        return self.run(self.stage.observe(home.tenant, self.start))

    def perform(self, step: Step, way: str, delay: int) -> None:
        way = way if way in self.stage.ways else "plain"
        for index in self.indexes.values():
            index.asked, index.confirmed, index.answered = set(), set(), set()
        found = self.run(self.stage.run(step.call, way, delay / 1000, operator=step.operator))
        if found.error is not None:
            assert leaks(found.error, [self.token]) == [] or way == "cancelled", found.error
        seen = self.observe(step.home)
        cut_off = isinstance(found.error, StoreUnavailableError | asyncio.CancelledError)
        if way in UNKNOWN and cut_off:
            return self.either(step, seen)
        if step.refusals:
            assert type(found.error) in step.refusals, f"{found.error!r}, not {step.refusals}"
            return self.settle_on(step.home, step.home, seen)
        after, dones = self.changed(step, seen)
        if way in UNDONE:
            self.judge(step, found, dones, after, drained=False)
            return self.settle_on(step.home, step.home, seen)
        drained = way != "joined"
        if drained:
            self.drain(step, after, dones, exactly=way == "plain", seen=seen)
        self.judge(step, found, dones, after, drained=drained, torn=way in UNKNOWN)
        return self.settle_on(step.home, after, seen)

    def changed(self, step: Step, seen: Observed) -> tuple[Home, list[Done]]:
        after = step.home.copied()
        ids = sorted(seen.rows.keys() - step.home.records.keys())
        # What did not come, as in a transaction that was rolled back, has ids of its own here.
        ids += [uuid5(NAMESPACE_OID, str(n)) for n in range(step.adds - len(ids))]
        return after, step.change(after, ids)

    def either(self, step: Step, seen: Observed) -> None:
        """The call was cut off: it has happened as a whole, or not at all."""
        after, dones = step.home.copied(), [Done(about=None, adapters=set(ADAPTERS))]
        state = {**after.state(), "debts": seen.state["debts"]}
        if not step.refusals and differences(state, seen.state):
            after, dones = self.changed(step, seen)
        self.drain(step, after, dones, exactly=False, seen=seen)
        return self.settle_on(step.home, after, seen)

    def drain(
        self, step: Step, after: Home, dones: list[Done], *, exactly: bool, seen: Observed
    ) -> None:
        """Settle in the model what the indexes have confirmed; nothing else was asked for."""
        elsewhere = {
            item for home in self.homes if home is not step.home for item in home.artefacts
        }
        allowed: set[Artefact] = set()
        for done in dones:
            asks = not step.sweeps or done.adapters
            for item, owed in after.debts.items():
                about = done.about is None or owed & done.about
                if asks and about and not owed & after.held:
                    allowed.add(item)
        left = {item[:2] for item in seen.state["debts"]}
        for name, index in self.indexes.items():
            owed = {item for item in allowed if item[0] == name}
            retained = {item for item in owed if item in elsewhere}
            asked = {(name, item) for item in index.asked | index.answered}
            assert asked <= allowed, f"asked for {asked - allowed}"
            assert not {(name, item) for item in index.asked} & elsewhere, "asked for another's"
            confirmed = {(name, item) for item in index.confirmed}
            confirmed |= {item for item in retained if item[1] in index.answered}
            if exactly and index.mode == "well":
                assert confirmed == owed, f"not asked for {owed - confirmed}"
            for item in confirmed & after.debts.keys():
                if exactly or item not in left:
                    del after.debts[item]

    def judge(
        self, step: Step, found: Outcome, dones: list[Done], after: Home, *,
        drained: bool, torn: bool = False,
    ) -> None:  # fmt: skip
        """The outcome is the one that what happened calls for; receipts have the model's counts."""
        expected: set[type[BaseException] | type[None]] = {type(None)}
        for done in dones if drained and not step.lists_receipts and not step.asks_all else ():
            owing = {item[0] for item, owed in after.debts.items() if self.about(done, owed)}
            if (owing & done.adapters) if step.sweeps else owing:
                expected = {PartialErasureError}
        if step.raises_holds and any(done.deferred for done in dones):
            expected = {LegalHoldError}
        if torn:
            expected |= {PartialErasureError} if dones else set()
        assert type(found.error) in expected, f"{found.error!r}, not {expected}"
        receipts = [getattr(found.error, "receipt", found.result)] if dones else []
        if step.lists_receipts:
            receipts = list(found.result.receipts)
        if not step.asks_all:
            assert len(receipts) == len(dones)
            for receipt, done in zip(receipts, dones, strict=True):
                self.agree(receipt, done, step.home)

    @staticmethod
    def about(done: Done, owed: set[str]) -> bool:
        return done.about is None or bool(owed & done.about)

    def agree(self, receipt: Any, done: Done, home: Home) -> None:
        counts = receipt.counts
        assert done.counts == (
            counts.memories, counts.derived, counts.provenance_edges, counts.artefacts,
        )  # fmt: skip
        if done.about is not None:
            assert receipt.deferred == done.deferred
            assert receipt.held == len(done.asked - done.gone)
            assert set(receipt.subject_hashes) == {hash_of(home.tenant, one) for one in done.about}

    def settle_on(self, home: Home, after: Home, seen: Observed) -> None:
        """The tables are the model's, whole; what the step did not touch is untouched."""
        Performing.steps += 1
        place = self.homes.index(home)
        assert seen.faults == []
        different = differences(after.state(), seen.state)
        assert not different, different
        before = self.seen[place]
        old, new = home.state()["records"], after.state()["records"]
        for i in old.keys() & new.keys():
            if old[i] == new[i] and home.records[i].people == after.records[i].people:
                assert seen.rows[i] == before.rows[i], f"record {i} is not what it was"
        other = self.run(self.stage.image(self.homes[1 - place].tenant))
        assert other == self.seen[1 - place].image, "another tenant's rows have changed"
        self.seen[place] = seen
        self.homes[place] = after
        self.search(home, after)
        for adapter, item in after.artefacts.keys() - home.artefacts.keys():
            self.indexes[adapter].held.add(item)
        self.keep_indexes()

    def search(self, home: Home, after: Home) -> None:
        """Nothing that is gone is found in any column of any table, of either tenant."""
        self.gone |= {home.records[i].text.split()[1] for i in home.records.keys() - after.records}
        living = {one.text.split()[1] for it in self.homes for one in it.records.values()}
        # A text under an id of the caller's own may come back.
        self.gone -= living
        remembered = {
            one for it in self.homes for item in it.records.values() for one in item.people
        }
        absent = {self.person(name) for name in PEOPLE} - remembered
        known = {item[1] for it in self.homes for item in (*it.artefacts, *it.debts)}
        absent |= {self.artefact(("", name))[1] for name in ARTEFACTS} - known
        for seen in self.seen:
            found = [it for it in self.gone | absent if it in seen.image or it in seen.shared]
            assert found == [], f"still there: {found}"

    def keep_indexes(self) -> None:
        """What is registered stands in its index; what stands there is registered or owed."""
        for name, index in self.indexes.items():
            registered = {i[1] for home in self.homes for i in home.artefacts if i[0] == name}
            owed = {i[1] for home in self.homes for i in home.debts if i[0] == name}
            assert registered <= index.held, "an index has lost what is registered"
            assert index.held <= registered | owed, "an index keeps what nobody owes"
