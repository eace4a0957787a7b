"""What a tenant holds after each verb, in plain dicts: the one model both stores are held against.

It says what is stored, whom it is about, what is owed and which evidence there is. It knows nothing
of SQL, locks, plans or retries, and is written anew here, from what the verbs promise: none of the
functions that the stores share is called.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

PEPPER = b"pepper"
Artefact = tuple[str, str]


def framed(*fields: object) -> bytes:
    """Each field with its length in bytes, so that no two lists of fields are alike."""
    return b"".join(b"%d:%b" % (len(it), it) for it in (str(one).encode() for one in fields))


def hash_of(tenant: str, person: str) -> str:
    return hmac.new(PEPPER, framed(tenant, person), hashlib.sha256).hexdigest()


@dataclass
class Told:
    """One record. ``expires`` is in hours of the moved clock; ``key`` is that of its line."""

    text: str
    kind: str
    direct: set[str]
    key: str
    expires: int | None = None
    sources: frozenset[UUID] = frozenset()
    version: int = 1
    current: bool = True
    people: set[str] = field(default_factory=set)

    @property
    def origin(self) -> str:
        return "derived" if self.sources else "remembered"


@dataclass(eq=False)
class Asked:
    """An erasure: of a person (of these kinds), or of one record. Waiting, it is a request."""

    person: str | None = None
    kinds: frozenset[str] | None = None
    record: UUID | None = None
    people: list[str] = field(default_factory=list)

    @property
    def scope(self) -> str:
        if self.record is not None:
            return "record"
        return "subject" if self.kinds is None else "kinds"


@dataclass
class Done:
    """What an erasure took, whom its purges are about (None: everybody), whether a hold met it."""

    gone: set[UUID] = field(default_factory=set)
    asked: set[UUID] = field(default_factory=set)
    about: set[str] | None = field(default_factory=set)
    adapters: set[str] = field(default_factory=set)
    counts: tuple[int, int, int, int] = (0, 0, 0, 0)
    deferred: bool = False


@dataclass
class Home:
    """One tenant. People are named by their keys; ``stones`` and ``decisions`` only grow."""

    tenant: str
    records: dict[UUID, Told] = field(default_factory=dict)
    artefacts: dict[Artefact, set[UUID]] = field(default_factory=dict)
    debts: dict[Artefact, set[str]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    blocked: set[str] = field(default_factory=set)
    waiting: list[Asked] = field(default_factory=list)
    stones: list[tuple[Any, ...]] = field(default_factory=list)
    decisions: list[tuple[str, str]] = field(default_factory=list)

    # What may be written

    def add(self, record_id: UUID, told: Told) -> None:
        """A new version of its line; a retry of what is there changes nothing."""
        if record_id in self.records:
            return
        line = [one for one in self.records.values() if one.key == told.key]
        told.version = max((one.version for one in line), default=0) + 1
        for one in line:
            one.current = False
        self.records[record_id] = told
        told.people = told.direct.union(*(self.records[item].people for item in told.sources))

    def same(self, record_id: UUID, told: Told) -> bool:
        """Whether this is a retry of what is stored under the id."""
        stored = self.records[record_id]
        return (stored.text, stored.kind, stored.direct, stored.key, stored.sources) == (
            told.text,
            told.kind,
            told.direct,
            told.key,
            told.sources,
        ) and told.expires in (None, stored.expires)

    def relate(self, record_id: UUID, people: Iterable[str]) -> None:
        record = self.records[record_id]
        new = set(people) - record.people
        record.direct |= new
        for reached in self.closure({record_id}):
            self.records[reached].people |= new

    def register(self, artefact: Artefact, sources: Iterable[UUID]) -> None:
        self.artefacts.setdefault(artefact, set()).update(sources)

    # What goes

    def closure(self, roots: set[UUID]) -> set[UUID]:
        """The records and everything derived from them."""
        reached = set(roots)
        while True:
            more = {item for item, one in self.records.items() if one.sources & reached} - reached
            if not more:
                return reached
            reached |= more

    def is_held(self, record_id: UUID) -> bool:
        return bool(self.records[record_id].people & self.held)

    def kept(self, asked: set[UUID]) -> set[UUID]:
        """What a hold keeps: the held, and all they were made from."""
        found = {item for item in asked if self.is_held(item)}
        while True:
            more = {source for item in found for source in self.records[item].sources} - found
            if not more:
                return found & asked
            found |= more

    def roots(self, asked: Asked) -> set[UUID]:
        if asked.record is not None:
            return {asked.record} & self.records.keys()
        if asked.kinds is None:
            return {i for i, one in self.records.items() if asked.person in one.direct}
        return {
            i
            for i, one in self.records.items()
            if asked.person in one.people and one.kind in asked.kinds
        }

    def forget(self, asked: Asked, *, block: bool = False) -> Done:
        """An erasure of a person or a record, as far as holds let it go."""
        reached = self.closure(self.roots(asked))
        person_held = asked.person in self.held
        kept = reached if person_held else self.kept(reached)
        deferred = person_held or bool(kept)
        about = {asked.person} if asked.person is not None else self.about(reached)
        if block:
            self.blocked.add(asked.person)
            self.decisions.append(("block", asked.person))
        if deferred and not any(one is asked for one in self.waiting):
            asked.people = [asked.person]
            if asked.record is not None:
                asked.people = self.sorted(self.records[asked.record].people)
            self.waiting.append(asked)
            self.decisions += [("request", person) for person in asked.people]
        gone = self.free(self.roots(asked), kept)
        done = Done(gone=gone, asked=reached, about=about, deferred=deferred)
        if gone or not deferred:
            self.bury([gone], asked.person, "subject_request", asked.scope, done)
        return done

    def free(self, roots: set[UUID], kept: set[UUID]) -> set[UUID]:
        """Of what was asked for, what no hold keeps."""
        made = {item for item, one in self.records.items() if one.sources & kept}
        return self.closure((roots | made) - kept)

    def sweep(self, due: set[UUID], reason: str, scope: str) -> Done:
        """An erasure that names nobody; what a hold keeps is passed by."""
        kept = self.kept(self.closure(due))
        done = Done(gone=self.free(due, kept), about=None, deferred=bool(kept & due))
        self.bury([done.gone], None, reason, scope, done)
        return done

    def expired(self, hours: int) -> set[UUID]:
        return {i for i, one in self.records.items() if one.expires is not None} - {
            i for i, one in self.records.items() if one.expires is not None and one.expires > hours
        }

    def delete(self, roots: set[UUID]) -> Done:
        """A DELETE in SQL: the trigger deletes what was derived before it settles the roots."""
        reached = self.closure(roots)
        done = Done(gone=reached)
        self.bury([reached - roots, roots], None, "operator", "record", done)
        return done

    def bury(
        self, batches: list[set[UUID]], person: str | None, reason: str, scope: str, done: Done
    ) -> None:
        """Remove records; leave a stone for the person or for everybody, and owe the purges."""
        counts: Counter[tuple[str, int]] = Counter()
        people = set() if person is None else {person}
        for batch in batches:
            lost = {item: ids for item, ids in self.artefacts.items() if ids & batch}
            done.adapters |= {adapter for adapter, _ in lost}
            named = self.about(batch) if person is None else {person}
            people |= named
            for one in named:
                own = [item for item in batch if one in self.records[item].people]
                made = [item for item in own if self.records[item].sources]
                counts[one, 0] += len(own) - len(made)
                counts[one, 1] += len(made)
                counts[one, 2] += sum(len(self.records[item].sources) for item in made)
                counts[one, 3] += sum(bool(ids & set(own)) for ids in lost.values())
            made = [item for item in batch if self.records[item].sources]
            edges = sum(len(self.records[item].sources) for item in made)
            new = (len(batch) - len(made), len(made), edges, len(lost))
            done.counts = tuple(a + b for a, b in zip(done.counts, new, strict=True))
            for item, ids in lost.items():
                self.debts[item] = self.about(ids)
                del self.artefacts[item]
        self.stones += [
            (one, reason, scope, *(counts[one, n] for n in range(4))) for one in self.sorted(people)
        ]
        for item in set().union(*batches):
            del self.records[item]

    def about(self, ids: Iterable[UUID]) -> set[str]:
        return set().union(*(self.records[item].people for item in ids))

    # What is decided

    def decide(self, action: str, person: str) -> None:
        change = {"hold": self.held.add, "release": self.held.discard}
        change.get(action, self.blocked.discard)(person)
        self.decisions.append((action, person))

    def release(self, person: str) -> list[Done]:
        """Lift the hold and ask again for what waited."""
        self.decide("release", person)
        receipts = []
        for asked in list(self.waiting):
            done = Done()
            if asked.record is None or asked.record in self.records:
                done = self.forget(asked)
                if done.gone or not done.deferred:
                    receipts.append(done)
            if not done.deferred:
                self.waiting = [one for one in self.waiting if one is not asked]
                self.decisions += [("complete", one) for one in asked.people]
        return receipts

    def sorted(self, people: Iterable[str]) -> list[str]:
        """In the order of their hashes, which is that of evidence."""
        return sorted(people, key=lambda person: hash_of(self.tenant, person))

    # What is seen from outside

    def state(self) -> dict[str, Any]:
        """The tables as they must be; see ``observed``."""

        def hashed(person: str) -> str:
            return hash_of(self.tenant, person)

        return {
            "records": {
                i: (
                    one.origin,
                    one.kind,
                    one.text,
                    one.key,
                    one.version,
                    one.current,
                    one.expires,
                    self.is_held(i),
                )
                for i, one in self.records.items()
            },
            "links": {
                (i, person, hashed(person), person not in one.direct)
                for i, one in self.records.items()
                for person in one.people
            },
            "edges": {(i, source) for i, one in self.records.items() for source in one.sources},
            "words": {
                (i, word) for i, one in self.records.items() for word in one.text.lower().split()
            },
            "count": len(self.records),
            "artefacts": {(*item, i) for item, ids in self.artefacts.items() for i in ids},
            "debts": {
                (*item, frozenset(map(hashed, people))) for item, people in self.debts.items()
            },
            "blocked": set(map(hashed, self.blocked)),
            "held": set(map(hashed, self.held)),
            "stones": Counter((hashed(person), *rest) for person, *rest in self.stones),
            "decisions": [(action, hashed(person)) for action, person in self.decisions],
        }

    def copied(self) -> Home:
        return copy.deepcopy(self)


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What of two states differs, for the message of a failure."""
    return [
        f"{name}: expected {_odd(expected[name], found[name])}, found"
        f" {_odd(found[name], expected[name])}"
        for name in expected
        if expected[name] != found[name]
    ]


def _odd(one: Any, other: Any) -> Any:
    if isinstance(one, Counter | set):
        return one - other
    if isinstance(one, dict):
        return {key: value for key, value in one.items() if other.get(key) != value}
    return one[-6:] if isinstance(one, Sequence) else one
