"""What every verb of ``Memory`` needs: the plugs, and the way from arguments to drafts."""

from __future__ import annotations

import asyncio
import functools
import logging
from array import array
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from memory import fingerprint, validation
from memory.embedding import ask
from memory.errors import InvalidInputError
from memory.ids import uuid7
from memory.metadata import metadata as checked_metadata
from memory.ports import DerivedIndex, Draft, Embedder, EventSink, Redactor, Store, Subject
from memory.redaction import Redacted, default_redactor, no_redactor, redact_many
from memory.service import plugs
from memory.service.events import LoggingSink
from memory.service.items import Item, located
from memory.stores.in_memory import InMemoryStore
from memory.tokens import terms
from memory.turns import Turns
from memory.types import Origin

__all__ = ["Base", "utc_now"]

_logger = logging.getLogger("memory")


def utc_now() -> datetime:
    """Return the time: the default clock."""
    return datetime.now(UTC)


@functools.cache
def _warn_of_pseudonyms() -> None:
    _logger.warning(
        "no subject_pepper: the hashes in tombstones are pseudonyms, which whoever can list the "
        "subject keys can undo"
    )


class Base:
    """Holds what the host plugged in; see :class:`memory.Memory`."""

    def __init__(
        self,
        store: Store | None = None,
        *,
        embedder: Embedder | None = None,
        redactor: Redactor | None = default_redactor,
        indexes: Sequence[DerivedIndex] = (),
        events: EventSink | None = None,
        subject_pepper: str | bytes | None = None,
        postings: bool = True,
        clock: Callable[[], datetime] = utc_now,
        purge_timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        self._store: Store = InMemoryStore() if store is None else store
        plugs.check_store(self._store)
        self._embedder = embedder
        if embedder is not None:
            plugs.check(embedder, "embedder", "embed")
        self._redactor: Redactor = no_redactor if redactor is None else redactor
        plugs.check(self._redactor, "redactor", "redact")
        self._indexes = plugs.by_name(indexes)
        self._events: EventSink = LoggingSink() if events is None else events
        plugs.check(self._events, "events", "publish")
        self._purge_timeout = validation.duration(purge_timeout, "purge_timeout")
        self._pepper = validation.pepper(subject_pepper)
        self._postings = validation.flag(postings, "postings")
        self._clock = clock
        if not callable(clock):
            raise InvalidInputError("clock", "must be callable")
        self._claimed = False
        self._claiming = asyncio.Lock()

    def _now(self) -> datetime:
        return validation.moment(self._clock(), "clock")

    def _subject(self, tenant_key: str, subject_key: str) -> Subject:
        hash_ = fingerprint.subject_hash(tenant_key, subject_key, self._pepper)
        return Subject(key=subject_key, hash=hash_)

    def _subjects(self, tenant_key: str, subject_keys: Iterable[str]) -> tuple[Subject, ...]:
        return tuple(self._subject(tenant_key, key) for key in subject_keys)

    async def _claim(self) -> None:
        """Make sure, before the first write, that the store knows this pepper and no other."""
        if self._claimed:
            return
        async with self._claiming:
            if not self._claimed:
                await self._store.claim(fingerprint.pepper_check(self._pepper))
                # In the caller's transaction a rollback takes the claim with it.
                self._claimed = self._store.calls_indexes
        if not self._pepper:
            _warn_of_pseudonyms()

    async def _evident(self, tenant_key: str, subject_key: str | None) -> str | None:
        """Return the hash by which evidence names a person, where one is asked for."""
        if subject_key is None:
            return None
        subject = self._subject(tenant_key, validation.key(subject_key, "subject_key"))
        # With another pepper than the installation's the evidence would not be found.
        await self._claim()
        return subject.hash

    async def _redacted(self, contents: Sequence[tuple[str, Any]]) -> list[Redacted]:
        return await redact_many(self._redactor, contents)

    async def _embedded(
        self, texts: Sequence[str], given: Sequence[array[float] | None]
    ) -> list[tuple[array[float] | None, str | None]]:
        """Return a vector and its model per text, asking the embedder once for what is missing.

        What the embedder raises is the host's own and passes through.
        """
        wanted = [text for text, vector in zip(texts, given, strict=True) if vector is None]
        if self._embedder is None or not wanted:
            return [(vector, None) for vector in given]
        found, model = await ask(self._embedder, wanted)
        answers = iter(found)
        return [(next(answers), model) if vector is None else (vector, None) for vector in given]

    async def _drafts(
        self,
        tenant_key: str,
        items: Sequence[Item],
        contents: Sequence[Redacted],
        *,
        origin: Origin = "remembered",
        prefix: str = "",
    ) -> list[Draft]:
        """Turn checked items and their redacted contents into drafts, embedded where possible."""
        turns = Turns()
        for position, content in enumerate(contents):
            await turns.give()
            with located(prefix.format(position)):
                validation.text(content.text)
                checked_metadata(content.metadata)
        embedded = await self._embedded_items(items, contents)
        drafts = []
        for item, content, vector in zip(items, contents, embedded, strict=True):
            await turns.give()
            drafts.append(self._draft(tenant_key, item, content, vector, origin))
        return drafts

    async def _embedded_items(
        self, items: Sequence[Item], contents: Sequence[Redacted]
    ) -> list[tuple[array[float] | None, str | None]]:
        """Return what :meth:`_embedded` does, without a vector for what is not searchable."""
        wanted = [place for place, item in enumerate(items) if item.searchable]
        given: list[Any] = [items[place].embedding for place in wanted]
        found = await self._embedded([contents[place].text for place in wanted], given)
        vectors = dict(zip(wanted, found, strict=True))
        return [vectors.get(place, (None, None)) for place in range(len(items))]

    def _draft(
        self,
        tenant_key: str,
        item: Item,
        content: Redacted,
        embedded: tuple[array[float] | None, str | None],
        origin: Origin,
    ) -> Draft:
        vector, model = embedded
        return Draft(
            record_id=item.record_id if isinstance(item.record_id, UUID) else uuid7(),
            own_id=item.record_id is not None,
            origin=origin,
            kind=item.kind,
            text=content.text,
            metadata=content.metadata,
            redacted=tuple(content.paths),
            subjects=self._subjects(tenant_key, item.subject_keys),
            record_key=item.record_key,
            embedding=vector,
            embedding_model=model,
            occurred_at=item.occurred_at or self._now(),
            dated=item.occurred_at is not None,
            expires_at=item.expires_at,
            terms=terms(content.text) if self._postings and item.searchable else {},
        )
