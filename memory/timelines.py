"""What ``timeline`` returns: what was decided and done about one person, oldest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args
from uuid import UUID

from memory import pages, strips
from memory.palette import Tone
from memory.plain import plain
from memory.types import Decision, Reason, Scope, Tombstone

__all__ = ["Moment", "Purging", "Timeline", "TimelineEvent", "in_order"]

TimelineEvent = Literal[
    "hold", "request", "release", "complete", "readmit", "block", "erased", "purged", "owed"
]
"""A :data:`memory.Action`, or what happened to records and to an external index."""

# As written above, for what is of one time; what is owed comes last.
_ORDER: Final = get_args(TimelineEvent)
_WORDS: Final[dict[TimelineEvent, tuple[Tone, str, str]]] = {
    "hold": ("amber", "Legal hold", "nothing about this person is erased until it is released"),
    "release": ("amber", "Hold released", "what was asked for meanwhile is carried out"),
    "block": ("grey", "Blocked", "what is written about this person is refused"),
    "readmit": ("grey", "Readmitted", "this person may be remembered again"),
    "request": ("red", "Erasure asked for", "deferred: a legal hold keeps records"),
    "complete": ("red", "Deferred erasure carried out", ""),
    "erased": ("red", "Erased", ""),
    "purged": ("green", "Purged from {}", ""),
    "owed": ("red", "Purge still owed by {}", "since then"),
}
_SCOPES: Final[dict[Scope, str]] = {
    "subject": "the whole person",
    "kinds": "some kinds",
    "record": "one record",
    "retention": "what had expired",
    "tenant": "the whole tenant",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Purging:
    """What one index did, or owes (``settled`` false), of one erasure: how many artefacts.

    ``at`` is when the last of them was confirmed, or when the first of them was asked for;
    ``attempts`` is how often one that is owed has failed at the most.
    """

    adapter: str
    erasure_id: UUID
    artefacts: int
    at: datetime
    settled: bool
    attempts: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """One thing that was decided or done.

    ``event`` is the action of a :class:`memory.Decision`; ``erased`` for a tombstone, with its
    counts; ``purged`` or ``owed`` for an external index (``adapter``), whose ``artefacts`` are
    those of the whole erasure, others' than this person's included. What another erasure left owed
    about this person is ``owed`` too: then ``artefacts`` are the person's.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> receipt = await shop.forget(subject_key="customer:dana")
    >>> [moment] = (await shop.timeline(subject_key="customer:dana")).moments
    >>> moment.event, moment.erasure_id == receipt.erasure_id
    ('erased', True)
    """

    at: datetime
    event: TimelineEvent
    erasure_id: UUID | None = None
    reason: Reason | None = None
    scope: Scope | None = None
    memories: int = 0
    derived: int = 0
    artefacts: int = 0
    adapter: str | None = None
    attempts: int = 0

    @property
    def heading(self) -> str:
        """What happened, in a few words."""
        name = "" if self.adapter is None else pages.short(self.adapter)
        return _WORDS[self.event][1].format(name)

    @property
    def detail(self) -> str:
        """How much, why, and of which erasure, by the end of its id."""
        parts = [_WORDS[self.event][2]]
        if self.event == "erased":
            parts.append(self._erased())
        if self.adapter is not None:
            parts.append(_count(self.artefacts, "artefact", "artefacts"))
        if self.attempts:
            parts.append(f"tried {_count(self.attempts, 'time', 'times')}")
        if self.reason is not None:
            parts.append(self.reason.replace("_", " "))
        if self.scope is not None:
            parts.append(_SCOPES[self.scope])
        if self.erasure_id is not None:
            parts.append(f"erasure …{str(self.erasure_id)[-6:]}")
        return " · ".join(part for part in parts if part)

    def _erased(self) -> str:
        if not self.memories + self.derived:
            return "nothing was there"
        return f"{_count(self.memories, 'memory', 'memories')}, {self.derived} derived"


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """Evidence about one person by time: holds, requests, erasures, purges, blocks.

    It names the person by the hash of a tombstone, and holds no key and no content. ``cut`` is true
    where there was more than the limit: the oldest are left out. Decisions and tombstones are
    read one after the other, not in one snapshot.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> held = await shop.hold(subject_key="customer:dana")
    >>> evidence = await shop.timeline(subject_key="customer:dana")
    >>> print(evidence.text())
    Evidence about one person, ...…: times are UTC
    ...  Legal hold: nothing about this person is erased until it is released
    >>> evidence.svg()[:4], evidence.to_dict()["moments"][0]["event"]
    ('<svg', 'hold')
    """

    subject_hash: str
    moments: tuple[Moment, ...]
    cut: bool = False

    def text(self) -> str:
        """Return a line for each moment: for a terminal, a letter, a screen reader."""
        rows = [f"{_when(m)}  {m.heading}: {m.detail}".rstrip(": ") for m in self.moments]
        return "\n".join([f"{self._title()}: {self._subtitle()}", *rows])

    def svg(self) -> str:
        """Return an SVG drawing, for a light and a dark page."""
        entries = [
            strips.Entry(
                when=_when(moment),
                heading=moment.heading,
                detail=moment.detail,
                title=f"{moment.heading}, {moment.erasure_id or moment.at.isoformat()}",
                tone=_WORDS[moment.event][0],
                open=moment.event in ("owed", "request"),
            )
            for moment in self.moments
        ]
        return strips.strip(entries, title=self._title(), subtitle=self._subtitle())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        moments = [
            {item.name: plain(getattr(moment, item.name)) for item in fields(moment)}
            for moment in self.moments
        ]
        return {"subject_hash": self.subject_hash, "cut": self.cut, "moments": moments}

    def _repr_html_(self) -> str:
        return f"<div style='overflow:auto;max-height:640px'>{self.svg()}</div>"

    def _title(self) -> str:
        return f"Evidence about one person, {self.subject_hash[:16]}…"

    def _subtitle(self) -> str:
        if not self.moments:
            return "nothing was decided and nothing was erased"
        return "times are UTC" + ("; what came before is left out" if self.cut else "")


def in_order(
    subject_hash: str,
    tombstones: Iterable[Tombstone],
    decisions: Iterable[Decision],
    purges: Iterable[Purging],
    limit: int,
) -> Timeline:
    """Put what was found about one person in order, and keep the newest ``limit`` moments."""
    found = [
        *(_of_decision(decision) for decision in decisions),
        *(_of_tombstone(tombstone) for tombstone in tombstones),
        *(_of_purging(purging) for purging in purges),
    ]
    found.sort(key=lambda m: (m.event == "owed", m.at, _ORDER.index(m.event)))
    cut = len(found) > limit
    return Timeline(subject_hash=subject_hash, moments=tuple(found[-limit:]), cut=cut)


def _of_decision(decision: Decision) -> Moment:
    return Moment(
        at=decision.at,
        event=decision.action,
        erasure_id=decision.erasure_id,
        reason=decision.reason,
        scope=decision.scope,
    )


def _of_tombstone(tombstone: Tombstone) -> Moment:
    return Moment(
        at=tombstone.erased_at,
        event="erased",
        erasure_id=tombstone.erasure_id,
        reason=tombstone.reason,
        scope=tombstone.scope,
        memories=tombstone.memories,
        derived=tombstone.derived,
        artefacts=tombstone.artefacts,
    )


def _of_purging(purging: Purging) -> Moment:
    return Moment(
        at=purging.at,
        event="purged" if purging.settled else "owed",
        erasure_id=purging.erasure_id,
        artefacts=purging.artefacts,
        adapter=purging.adapter,
        attempts=purging.attempts,
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _when(moment: Moment) -> str:
    return f"{moment.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
