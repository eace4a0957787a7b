"""What the MCP server offers: the verbs an agent needs, with plain types in and out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from mcp.types import ToolAnnotations
from pydantic import AwareDatetime, Field

from memory.errors import InvalidInputError, LegalHoldError, PartialErasureError
from memory.service import TenantMemory
from memory.types import Receipt

__all__ = ["ANNOTATIONS", "Tools"]

# What is offered, and what a client may tell its user before it calls.
ANNOTATIONS: Final = {
    "remember": ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    ),
    "recall": ToolAnnotations(read_only_hint=True, open_world_hint=False),
    "export": ToolAnnotations(read_only_hint=True, open_world_hint=False),
    "forget_dry_run": ToolAnnotations(read_only_hint=True, open_world_hint=False),
    "forget": ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
    "erasure_history": ToolAnnotations(read_only_hint=True, open_world_hint=False),
}

People = Annotated[
    list[str], Field(min_length=1, description="Opaque keys of the people it is about.")
]
Person = Annotated[str, Field(min_length=1, description="Opaque key of one person.")]
Limit = Annotated[int, Field(ge=1, le=1_000)]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A memory as it was stored; ``masked`` counts what redaction took out, by kind."""

    record_id: str
    text: str = field(repr=False)
    masked: dict[str, int] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Match:
    """A memory that was found; ``other_people`` counts those whom the server may not name."""

    record_id: str
    origin: Literal["remembered", "derived"]
    kind: str
    text: str = field(repr=False)
    subject_keys: list[str] = field(repr=False)
    other_people: int
    metadata: dict[str, Any] = field(repr=False)
    occurred_at: str
    score: float


@dataclass(frozen=True, kw_only=True)
class Matches:
    """What was found, best first; ``note`` says how, and why nothing was."""

    strategy: str
    note: str
    exact: bool
    hits: list[Match]


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """What an erasure did or, for a dry run, would do. ``closure`` is what ``forget`` expects."""

    erasure_id: str
    dry_run: bool
    complete: bool
    closure: str
    memories: int
    derived: int
    bystanders: int
    bystander_keys: list[str] = field(repr=False)
    held: int
    deferred: bool
    outstanding: list[str]


@dataclass(frozen=True, kw_only=True)
class Export:
    """A part of what is held about a person; ``more`` is whether something comes behind it."""

    entries: list[dict[str, Any]] = field(repr=False)
    more: bool


@dataclass(frozen=True, kw_only=True)
class History:
    """Tombstones, newest first: hashes, codes and counts."""

    tombstones: list[dict[str, Any]] = field(repr=False)


class Tools:
    """The tools of one tenant, for ``only`` these people where it is not None."""

    def __init__(self, memory: TenantMemory, only: Collection[str] | None) -> None:
        self._memory = memory
        self._only = only

    async def remember(
        self,
        text: Annotated[str, Field(min_length=1)],
        subject_keys: People,
        kind: str = "episodic",
        metadata: dict[str, Any] | None = None,
        occurred_at: AwareDatetime | None = None,
    ) -> Stored:
        """Remember a text about people. Identifiers such as phone numbers are masked."""
        self._check(subject_keys)
        told = await self._memory.remember(
            text=text,
            subject_keys=subject_keys,
            kind=kind,
            metadata=metadata,
            occurred_at=occurred_at,
        )
        return Stored(
            record_id=str(told.record.record_id),
            text=told.record.text,
            masked=Counter(finding.kind for finding in told.redactions),
        )

    async def recall(
        self,
        subject_keys: People,
        text: Annotated[str, Field(description="The question; empty: the most recent.")] = "",
        kinds: list[str] | None = None,
        since: AwareDatetime | None = None,
        until: AwareDatetime | None = None,
        limit: Limit = 8,
    ) -> Matches:
        """Recall what is remembered about any of these people."""
        self._check(subject_keys)
        found = await self._memory.recall(
            text=text or None,
            subject_keys=subject_keys,
            kinds=kinds,
            since=since,
            until=until,
            limit=limit,
        )
        return Matches(
            strategy=found.strategy,
            note=found.note,
            exact=found.exact,
            hits=[
                Match(
                    record_id=str(hit.record.record_id),
                    origin=hit.record.origin,
                    kind=hit.record.kind,
                    text=hit.record.text,
                    subject_keys=self._named(hit.record.subject_keys),
                    other_people=len(hit.record.subject_keys)
                    - len(self._named(hit.record.subject_keys)),
                    metadata=dict(hit.record.metadata),
                    occurred_at=_time(hit.record.occurred_at),
                    score=hit.score,
                )
                for hit in found.hits
            ],
        )

    async def export(
        self,
        subject_key: Person,
        skip: Annotated[int, Field(ge=0, description="Entries that you already have.")] = 0,
        limit: Limit = 100,
    ) -> Export:
        """Return everything held about a person, and the evidence of past erasures, in parts."""
        self._check([subject_key])
        entries: list[dict[str, Any]] = []
        position = 0
        stream = self._memory.export(subject_key=subject_key)
        try:
            async for entry in stream:
                if position >= skip + limit:
                    return Export(entries=entries, more=True)
                if position >= skip:
                    entries.append(entry.to_dict())
                position += 1
        finally:
            await stream.aclose()
        return Export(entries=entries, more=False)

    async def forget_dry_run(self, subject_key: Person) -> Erasure:
        """Say what erasing a person would take, and whose memories beside theirs; erase nothing."""
        self._check([subject_key])
        return self._erasure(await self._memory.forget(subject_key=subject_key, dry_run=True))

    async def forget(
        self,
        subject_key: Person,
        expect: Annotated[str, Field(description="The closure that forget_dry_run returned.")],
    ) -> Erasure:
        """Erase a person for ever: every memory about them and all that was derived from those.

        Refused where it would now take something else than the dry run said: run that again.
        """
        self._check([subject_key])
        try:
            receipt = await self._memory.forget(subject_key=subject_key, expect=expect)
        except (LegalHoldError, PartialErasureError) as stopped:
            # Not complete, and the answer says so: what could be erased is.
            receipt = stopped.receipt
        return self._erasure(receipt)

    async def erasure_history(
        self,
        subject_key: Annotated[str, Field(description="Of one person; empty: of all.")] = "",
        before: Annotated[
            int | None, Field(description="The seq of the last one you have.")
        ] = None,
        limit: Limit = 100,
    ) -> History:
        """Return the evidence of past erasures, newest first. It names nobody."""
        if subject_key or self._only is not None:
            self._check([subject_key])
        stones = await self._memory.erasure_history(
            subject_key=subject_key or None, before=before, limit=limit
        )
        kept = [stone.to_dict() for stone in stones]
        for stone in kept:
            del stone["tenant_key"]
        return History(tombstones=kept)

    def _check(self, subject_keys: Collection[str]) -> None:
        if self._only is not None and not set(subject_keys) <= set(self._only):
            raise InvalidInputError("subject_key", "must be of those that this server is for")

    def _named(self, subject_keys: Collection[str]) -> list[str]:
        """Return the people that the server may name; how many there are it says of all."""
        return [key for key in subject_keys if self._only is None or key in self._only]

    def _erasure(self, receipt: Receipt) -> Erasure:
        return Erasure(
            erasure_id=str(receipt.erasure_id),
            dry_run=receipt.dry_run,
            complete=receipt.complete,
            closure=receipt.closure,
            memories=receipt.counts.memories,
            derived=receipt.counts.derived,
            bystanders=receipt.bystanders,
            bystander_keys=self._named(receipt.bystander_keys),
            held=receipt.held,
            deferred=receipt.deferred,
            outstanding=list(receipt.outstanding),
        )


def _time(moment: datetime) -> str:
    return moment.isoformat()
