"""The verbs that only read."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal

from memory import fingerprint, validation, vectors
from memory.errors import InvalidInputError
from memory.ports import Filters, Query
from memory.service.filtering import Where
from memory.service.listing import Listing
from memory.service.notes import NO_TERMS, note
from memory.tokens import terms
from memory.types import (
    Capabilities,
    Origin,
    Readiness,
    Recall,
    Strategy,
    SubjectMatch,
    Tombstone,
)
from memory.vectors import Vector

__all__ = ["Reading"]

_BY_WORDS: Final = frozenset({"lexical", "keyword", "hybrid"})
_BY_VECTOR: Final = frozenset({"vector", "hybrid"})


class Reading(Listing):
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
        where: Where | None = None,
        record_keys: str | Sequence[str] | None = None,
        key_prefix: str | None = None,
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
        masked value stands for all values of its mask. ``where`` compares values in the metadata,
        ``[(("trip", "days"), ">", 3), ("city", "!=", "Pune")]``: numbers with numbers, strings with
        strings by code points; what is not there counts as None. ``record_keys`` and ``key_prefix``
        ask for the keys that records were given. Superseded versions are hidden unless
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
            (metadata, where),
            (record_keys, key_prefix),
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
