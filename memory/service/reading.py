"""The verbs that only read."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from memory import fingerprint, validation, vectors
from memory.errors import InvalidInputError
from memory.metadata import metadata as checked_metadata
from memory.ports import Filters, Query
from memory.service.base import Base
from memory.service.notes import NO_TERMS, note
from memory.tokens import terms
from memory.types import (
    Capabilities,
    Origin,
    Readiness,
    Recall,
    Record,
    Strategy,
    SubjectMatch,
    Tombstone,
)
from memory.vectors import Vector

__all__ = ["Reading"]

_BY_WORDS: Final = frozenset({"lexical", "keyword", "hybrid"})
_BY_VECTOR: Final = frozenset({"vector", "hybrid"})


class Reading(Base):
    """Each verb sees one tenant and never a record that has expired.

    What was derived from one is seen until :meth:`expire` erases both.
    """

    async def recall(
        self,
        tenant_key: str,
        *,
        text: str | None = None,
        embedding: Vector | None = None,
        subject_keys: str | Sequence[str] | None = None,
        subject_match: SubjectMatch = "any",
        kinds: str | Sequence[str] | None = None,
        origins: Origin | Sequence[Origin] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        include_superseded: bool = False,
        neighbours: float = 0.0,
        limit: int = 8,
        strategy: Strategy | Literal["auto"] = "auto",
    ) -> Recall:
        """Find records, best first; the answer says how it searched.

        ``auto`` searches by vector where an embedding is given or an embedder can make one, else by
        words, and without a text lists the most recent. A strategy that is named uses what it needs
        and ignores the rest.

        A record is found if it is about any of ``subject_keys``, or about all of them with
        ``subject_match="all"``. ``since`` is inclusive and ``until`` exclusive on ``occurred_at``;
        ``metadata`` is containment as ``jsonb @>``, masked first as what is stored was, so that a
        masked value stands for all values of its mask. Superseded versions are hidden unless
        ``include_superseded``; what has expired always is, though not what was derived from it.
        Hits that score below ``min_score``, on the scale of the strategy
        (:class:`memory.Hit`), are left out; ``recent`` has no scores and refuses it.
        ``neighbours``, for ``hybrid`` only, adds this share (0 to 1) of the greater score of the
        turn just before or just after, by ``record_id``, about one of the same people.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Dana likes green tea", subject_keys="customer:dana")
        >>> found = await shop.recall(text="which tea?", subject_keys="customer:dana")
        >>> found.strategy, found.hits[0].record.text
        ('lexical', 'Dana likes green tea')
        """
        tenant_key = validation.tenant(tenant_key)
        filters = self._filters(
            (subject_keys, subject_match),
            kinds,
            origins,
            (since, until),
            metadata,
            include_superseded,
        )
        most = validation.limit(limit)
        wanted = None if text is None else validation.text(text)
        vector = None if embedding is None else vectors.vector(embedding)
        chosen = self._strategy(validation.strategy(strategy), wanted, vector)
        least, share = _scoring(chosen, min_score, neighbours)
        filters, masked = await self._masked(filters)
        query = await self._query(chosen, filters, most, wanted, vector)
        query = replace(query, min_score=least, neighbours=share)
        if chosen in ("lexical", "keyword") and not query.terms:
            return Recall(strategy=chosen, note=NO_TERMS, exact=True, hits=())
        found = await self._store.search(tenant_key, query)
        return Recall(
            strategy=chosen, note=note(found, masked=masked), exact=found.exact, hits=found.hits
        )

    def _strategy(
        self, asked: Strategy | None, text: str | None, vector: array[float] | None
    ) -> Strategy:
        can_embed = vector is not None or (text is not None and self._embedder is not None)
        if asked is None:
            asked = "vector" if can_embed else "lexical" if text is not None else "recent"
        if asked in _BY_WORDS and not self._postings:
            raise InvalidInputError("strategy", f"must not be {asked} without postings")
        if asked in _BY_WORDS and text is None:
            raise InvalidInputError("strategy", f"{asked} needs text")
        if asked in _BY_VECTOR and not can_embed:
            raise InvalidInputError(
                "strategy", f"{asked} needs an embedding, or text and an embedder"
            )
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
        embeds = strategy in _BY_VECTOR and vector is None
        if text is not None and (embeds or strategy in _BY_WORDS):
            (content,) = await self._redacted([(text, {})])
            if strategy in _BY_WORDS:
                words = tuple(terms(content.text))
            if embeds:
                ((vector, model),) = await self._embedded([content.text], [None])
        return Query(
            strategy=strategy,
            filters=filters,
            limit=limit,
            terms=words,
            embedding=vector if strategy in _BY_VECTOR else None,
            embedding_model=model,
        )

    def _filters(
        self,
        subjects: tuple[object, object],
        kinds: object,
        origins: object,
        period: tuple[object, object],
        metadata: object,
        superseded: object,
    ) -> Filters:
        subject_keys, match = subjects
        start, end = validation.period(*period)
        return Filters(
            subject_keys=() if subject_keys is None else validation.subject_keys(subject_keys),
            every_subject=validation.subject_match(match) == "all",
            kinds=() if kinds is None else validation.kinds(kinds),
            origins=() if origins is None else validation.origins(origins),
            since=start,
            until=end,
            metadata=None if metadata is None else checked_metadata(metadata),
            superseded=validation.flag(superseded, "include_superseded"),
            now=self._now(),
        )

    async def _masked(self, filters: Filters) -> tuple[Filters, bool]:
        """Mask the metadata as what is stored was, and say whether anything had to be."""
        if not filters.metadata:
            return filters, False
        (content,) = await self._redacted([("", filters.metadata)])
        masked = replace(filters, metadata=checked_metadata(content.metadata))
        return masked, bool(content.paths)

    async def get(self, tenant_key: str, *, record_id: UUID | str) -> Record | None:
        """Return one record, superseded or not; None where it is absent or expired.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Dana moved", subject_keys="customer:dana")
        >>> (await shop.get(record_id=told.record.record_id)).text
        'Dana moved'
        """
        tenant_key = validation.tenant(tenant_key)
        wanted = validation.record_id(record_id)
        return await self._store.get(tenant_key, wanted, self._now())

    async def history(self, tenant_key: str, *, record_key: str) -> list[Record]:
        """Return every version under a key, newest first; a record's id is its key by default.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> for text in ("Dana lives in Pune", "Dana lives in Goa"):
        ...     told = await shop.remember(text=text, subject_keys="dana", record_key="dana/home")
        >>> [record.text for record in await shop.history(record_key="dana/home")]
        ['Dana lives in Goa', 'Dana lives in Pune']
        """
        tenant_key = validation.tenant(tenant_key)
        wanted = validation.key(record_key, "record_key")
        return await self._store.history(tenant_key, wanted, self._now())

    async def records(
        self,
        tenant_key: str,
        *,
        subject_keys: str | Sequence[str] | None = None,
        subject_match: SubjectMatch = "any",
        kinds: str | Sequence[str] | None = None,
        origins: Origin | Sequence[Origin] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        include_superseded: bool = False,
        after: Record | UUID | str | None = None,
        limit: int = 100,
    ) -> list[Record]:
        """List records by ``record_id`` descending: newest first for ids made here.

        ``after`` continues behind the last record of a page. The filters are those of
        :meth:`recall`.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> items = [{"text": f"Turn {n}", "subject_keys": "dana"} for n in range(3)]
        >>> told = await shop.remember_many(items=items)
        >>> page = await shop.records(subject_keys="dana", limit=2)
        >>> [record.text for record in page + await shop.records(after=page[-1], limit=2)]
        ['Turn 2', 'Turn 1', 'Turn 0']
        """
        tenant_key = validation.tenant(tenant_key)
        filters = self._filters(
            (subject_keys, subject_match),
            kinds,
            origins,
            (since, until),
            metadata,
            include_superseded,
        )
        below = None if after is None else validation.record_id(after, "after")
        most = validation.limit(limit)
        filters, _ = await self._masked(filters)
        return await self._store.records(tenant_key, filters, below, most)

    async def erasure_history(
        self,
        tenant_key: str,
        *,
        subject_key: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Tombstone]:
        """Return the tombstones of past erasures: newest first, ``limit`` at most (1 to 1,000).

        ``subject_key`` asks for one person's, ``before`` for older ones than that ``seq``: give it
        the last one's to go on. The ``previous`` of a tenant's first tombstone is ``""``.

        Raises ``InstallError`` where a person is asked for with another pepper than the
        installation's, under which nothing would be found.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> receipt = await shop.forget(subject_key="customer:dana")
        >>> [stone] = await shop.erasure_history(subject_key="customer:dana")
        >>> stone.erasure_id == receipt.erasure_id, stone.memories
        (True, 0)
        """
        tenant_key = validation.tenant(tenant_key)
        below, most = validation.below(before), validation.limit(limit)
        person = await self._evident(tenant_key, subject_key)
        return await self._store.tombstones(tenant_key, person, below, most)

    def subject_fingerprint(self, tenant_key: str, *, subject_key: str) -> str:
        """Return the hash by which a tombstone names a person: to find the evidence of theirs.

        >>> from memory import Memory
        >>> service = Memory(subject_pepper="from a secret manager")
        >>> service.subject_fingerprint("shop", subject_key="customer:dana")[:16]
        '62c1d07d0075ab51'
        """
        tenant_key = validation.tenant(tenant_key)
        return self._subject(tenant_key, validation.key(subject_key, "subject_key")).hash

    async def capabilities(self) -> Capabilities:
        """Measure what the store can do, on its own connection.

        >>> from memory import Memory
        >>> (await Memory().capabilities()).vector_search
        'in-process'
        """
        return await self._store.capabilities()

    async def ready(self) -> Readiness:
        """Say whether this process may serve: for health checks.

        >>> from memory import Memory
        >>> await Memory().ready()
        Readiness(ready=True, problems=())
        """
        return await self._store.ready(fingerprint.pepper_check(self._pepper))


def _scoring(
    strategy: Strategy, min_score: object, neighbours: object
) -> tuple[float | None, float]:
    """Check the least score and the neighbours' share, which not every strategy has."""
    least = None if min_score is None else validation.min_score(min_score)
    share = validation.neighbours(neighbours)
    if least is not None and strategy == "recent":
        raise InvalidInputError("min_score", "must not be given for recent, which has no scores")
    if share and strategy != "hybrid":
        raise InvalidInputError("neighbours", "must be 0 for any strategy but hybrid")
    return least, share
