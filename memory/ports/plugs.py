"""What a host plugs in. An object needs no base class; it fits when it has the methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable
from uuid import UUID

from memory.types import Finding, Reason, Scope

__all__ = ["DerivedIndex", "Embedder", "ErasureEvent", "EventSink", "Redactor"]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. Awaited outside any transaction; sees only redacted text.

    ``model`` names the vector space (``all-MiniLM-L6-v2``): vectors of two models are never
    compared. An embedder without the attribute is told apart by the length of its vectors.
    Where ``dimensions`` is a whole number, that is the length every vector must have.

    >>> from memory import Embedder, Memory
    >>> class Lengths:
    ...     model = "lengths"
    ...     async def embed(self, texts):
    ...         return [[float(len(text)), 1.0] for text in texts]
    >>> isinstance(Lengths(), Embedder)
    True
    >>> told = await Memory(embedder=Lengths()).remember("shop", text="Tea", subject_keys="dana")
    >>> told.record.embedding_model, told.record.embedding_dims
    ('lengths', 2)
    """

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector per text, in order, all of one length."""
        ...


@runtime_checkable
class Redactor(Protocol):
    """Masks identifiers. Called on text and on every string of the metadata before any write.

    >>> from memory import Finding, Memory
    >>> class Codenames:
    ...     def redact(self, text):
    ...         at = text.find("Falcon")
    ...         if at < 0:
    ...             return text, []
    ...         found = Finding(kind="project", start=at, end=at + 6, replacement="[PROJECT]")
    ...         return text.replace("Falcon", "[PROJECT]", 1), [found]
    >>> service = Memory(redactor=Codenames())
    >>> (await service.remember("shop", text="Falcon ships", subject_keys="li")).record.text
    '[PROJECT] ships'
    """

    def redact(self, text: str) -> tuple[str, Sequence[Finding]]:
        """Return the masked text and what was masked; never the values."""
        ...


@runtime_checkable
class DerivedIndex(Protocol):
    """An index outside the database that holds artefacts made from records.

    ``purge`` must be idempotent: an erasure resumes by asking again, so an artefact that is not
    there is no error. An optional ``async present(artefact_ids) -> subset`` lets the library verify
    that they are gone. Either is asked for at most 1,000 artefacts at a time, one call at a time.

    >>> from memory import Memory
    >>> class Cache:
    ...     name = "cache"
    ...     entries = {"4711": "Ana moved"}
    ...     async def purge(self, artefact_ids):
    ...         return sum(self.entries.pop(item, None) is not None for item in artefact_ids)
    >>> shop = Memory(indexes=[Cache()]).for_tenant("shop")
    >>> told = await shop.remember(text="Ana moved", subject_keys="ana")
    >>> await shop.register_artefact(adapter="cache", artefact_id="4711", sources=told)
    >>> (await shop.forget(subject_key="ana")).complete, Cache.entries
    (True, {})
    """

    @property
    def name(self) -> str:
        """The adapter name under which artefacts are registered."""
        ...

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        """Delete the artefacts; return how many were there (informative, not the proof)."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasureEvent:
    """One finished erasure: counts only, never a key and never a value.

    >>> from memory import ErasureEvent, Memory
    >>> class Printing:
    ...     async def publish(self, event: ErasureEvent) -> None:
    ...         print(event.reason, event.scope, event.memories, event.complete)
    >>> receipt = await Memory(events=Printing()).forget("shop", subject_key="customer:dana")
    subject_request subject 0 True
    """

    erasure_id: UUID
    reason: Reason
    scope: Scope
    memories: int
    derived: int
    provenance_edges: int
    artefacts: int
    complete: bool
    outstanding: tuple[str, ...]
    seq: int | None
    digest: str | None
    completed_at: datetime | None


@runtime_checkable
class EventSink(Protocol):
    """Receives one event per finished erasure. A failing sink never undoes or hides one.

    >>> from memory import Memory
    >>> class Counting:
    ...     erasures = 0
    ...     async def publish(self, event):
    ...         self.erasures += 1
    >>> sink = Counting()
    >>> receipt = await Memory(events=sink).forget("shop", subject_key="customer:dana")
    >>> sink.erasures
    1
    """

    async def publish(self, event: ErasureEvent) -> None:
        """Take the event. It holds no personal data."""
        ...
