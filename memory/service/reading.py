"""The verbs that only read."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory import fingerprint, validation, vectors
from memory.errors import InvalidInputError
from memory.metadata import metadata as checked_metadata
from memory.ports import Filters, Query
from memory.service.base import Base
from memory.service.notes import NO_TERMS, note
from memory.tokens import terms
from memory.types import Capabilities, Origin, Readiness, Recall, Record, Strategy, Tombstone
from memory.vectors import Vector

__all__ = ["Reading"]


class Reading(Base):
    """Each verb sees one tenant and never a record that has expired."""

    async def recall(
        self,
        tenant_key: str,
        *,
        text: str | None = None,
        embedding: Vector | None = None,
        subject_keys: str | Sequence[str] | None = None,
        kinds: str | Sequence[str] | None = None,
        origins: Origin | Sequence[Origin] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 8,
        strategy: Strategy | Literal["auto"] = "auto",
    ) -> Recall:
        """Find current records, best first; the answer says how it searched.

        ``auto`` searches by vector where an embedding is given or an embedder can make one, else by
        words, and without a text lists the most recent. A strategy that is named uses what it needs
        and ignores the rest. ``subject_keys`` is any-of, ``since`` inclusive and ``until``
        exclusive on ``occurred_at``, ``metadata`` containment as ``jsonb @>``.
        """
        tenant_key = validation.tenant(tenant_key)
        filters = self._filters(subject_keys, kinds, origins, since, until, metadata)
        most = validation.limit(limit)
        wanted = None if text is None else validation.text(text)
        vector = None if embedding is None else vectors.vector(embedding)
        chosen = self._strategy(validation.strategy(strategy), wanted, vector)
        query = await self._query(chosen, filters, most, wanted, vector)
        if chosen == "lexical" and not query.terms:
            return Recall(strategy=chosen, note=NO_TERMS, exact=True, hits=())
        found = await self._store.search(tenant_key, query)
        return Recall(strategy=chosen, note=note(found), exact=found.exact, hits=found.hits)

    def _strategy(
        self, asked: Strategy | None, text: str | None, vector: array[float] | None
    ) -> Strategy:
        can_embed = vector is not None or (text is not None and self._embedder is not None)
        if asked is None:
            return "vector" if can_embed else "lexical" if text is not None else "recent"
        if asked == "vector" and not can_embed:
            raise InvalidInputError(
                "strategy", "vector needs an embedding, or text and an embedder"
            )
        if asked == "lexical" and text is None:
            raise InvalidInputError("strategy", "lexical needs text")
        return asked

    async def _query(
        self,
        strategy: Strategy,
        filters: Filters,
        limit: int,
        text: str | None,
        vector: array[float] | None,
    ) -> Query:
        model: str | None = None
        words: tuple[str, ...] = ()
        if text is not None and (strategy == "lexical" or (strategy == "vector" and not vector)):
            (content,) = await self._redacted([(text, {})])
            if strategy == "lexical":
                words = tuple(terms(content.text))
            else:
                ((vector, model),) = await self._embedded([content.text], [None])
        return Query(
            strategy=strategy,
            filters=filters,
            limit=limit,
            terms=words,
            embedding=vector if strategy == "vector" else None,
            embedding_model=model,
        )

    def _filters(
        self,
        subject_keys: object,
        kinds: object,
        origins: object,
        since: object,
        until: object,
        metadata: object,
    ) -> Filters:
        start, end = validation.period(since, until)
        return Filters(
            subject_keys=() if subject_keys is None else validation.subject_keys(subject_keys),
            kinds=() if kinds is None else validation.kinds(kinds),
            origins=() if origins is None else validation.origins(origins),
            since=start,
            until=end,
            metadata=None if metadata is None else checked_metadata(metadata),
            now=self._now(),
        )

    async def get(self, tenant_key: str, *, record_id: UUID | str) -> Record | None:
        """Return one record, superseded or not; None where it is absent or expired."""
        tenant_key = validation.tenant(tenant_key)
        wanted = validation.record_id(record_id)
        return await self._store.get(tenant_key, wanted, self._now())

    async def history(self, tenant_key: str, *, record_key: str) -> list[Record]:
        """Return every version under a key, newest first; a record's id is its key by default."""
        tenant_key = validation.tenant(tenant_key)
        wanted = validation.key(record_key, "record_key")
        return await self._store.history(tenant_key, wanted, self._now())

    async def records(
        self,
        tenant_key: str,
        *,
        subject_keys: str | Sequence[str] | None = None,
        kinds: str | Sequence[str] | None = None,
        origins: Origin | Sequence[Origin] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        after: Record | UUID | str | None = None,
        limit: int = 100,
    ) -> list[Record]:
        """List current records by ``record_id`` descending: newest first for ids made here.

        ``after`` continues behind the last record of a page. The filters are those of
        :meth:`recall`.
        """
        tenant_key = validation.tenant(tenant_key)
        filters = self._filters(subject_keys, kinds, origins, since, until, metadata)
        below = None if after is None else validation.record_id(after, "after")
        return await self._store.records(tenant_key, filters, below, validation.limit(limit))

    async def erasure_history(self, tenant_key: str, *, limit: int = 100) -> list[Tombstone]:
        """Return the tombstones of past erasures: newest first, ``limit`` at most (1 to 1,000).

        The ``previous`` of a tenant's first tombstone is ``""``.
        """
        tenant_key = validation.tenant(tenant_key)
        return await self._store.tombstones(tenant_key, validation.limit(limit))

    def subject_fingerprint(self, tenant_key: str, *, subject_key: str) -> str:
        """Return the hash by which a tombstone names a person: to find the evidence of theirs."""
        tenant_key = validation.tenant(tenant_key)
        return self._subject(tenant_key, validation.key(subject_key, "subject_key")).hash

    async def capabilities(self) -> Capabilities:
        """Measure what the store can do, on its own connection."""
        return await self._store.capabilities()

    async def ready(self) -> Readiness:
        """Say whether this process may serve: for health checks."""
        return await self._store.ready(fingerprint.pepper_check(self._pepper))
