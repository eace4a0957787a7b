"""The verbs that store: remember, derive, supersede, relate, register an artefact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memory import validation
from memory.errors import InvalidInputError, UnknownRecordError
from memory.redaction import Redacted
from memory.service.base import Base
from memory.service.items import Item, checked, item_of, located
from memory.turns import Turns
from memory.types import Derived, Hit, Record, Remembered
from memory.vectors import Vector

__all__ = ["Sources", "Writing"]

_Source = Record | UUID | str | Remembered | Derived | Hit
Sources = _Source | Sequence[_Source]


class Writing(Base):
    """Each verb checks, redacts, embeds and stores, in this order; what fails stores nothing."""

    async def remember(
        self,
        tenant_key: str,
        *,
        text: str,
        subject_keys: str | Sequence[str],
        kind: str = "episodic",
        metadata: Mapping[str, Any] | None = None,
        record_key: str | None = None,
        occurred_at: datetime | None = None,
        expires_at: datetime | None = None,
        embedding: Vector | None = None,
        record_id: UUID | str | None = None,
        searchable: bool = True,
    ) -> Remembered:
        """Store what was told, linked to every person it is about.

        Identifiers are masked in ``text`` and ``metadata`` first. ``record_key`` names a line of
        versions: where it exists, this becomes its newest version. A ``record_id`` of your own
        makes a retry safe: the same content returns the stored record, other content is a
        ``ConflictError``. ``occurred_at`` defaults to now; ``expires_at`` hides the record from
        then on; one in the past hides it at once. An ``embedding`` of your own is compared with
        vectors of its length only. What is not ``searchable`` gets neither a vector nor words, nor
        does :func:`memory.reembed` give it one: it is found by person, time, key and metadata.

        >>> from memory import Memory
        >>> service = Memory()
        >>> told = await service.remember("shop", text="Call 98450 12345", subject_keys="dana")
        >>> told.record.text
        'Call [PHONE:****2345]'
        """
        item = Item(
            text=text,
            subject_keys=subject_keys,
            kind=kind,
            metadata=metadata,
            record_key=record_key,
            occurred_at=occurred_at,
            expires_at=expires_at,
            embedding=embedding,
            record_id=record_id,
            searchable=searchable,
        )
        return (await self._remember(validation.tenant(tenant_key), [checked(item)], ""))[0]

    async def remember_many(
        self, tenant_key: str, *, items: Sequence[Item | Mapping[str, Any]]
    ) -> list[Remembered]:
        """Store many memories, all or none, in one transaction and with one embedding call.

        Each item is an :class:`Item` or a mapping with the arguments of :meth:`remember`. The field
        of an ``InvalidInputError`` says which one is wrong: ``items.3.text``. Items of one
        ``record_key`` become successive versions in the order given.

        After a load of many thousands have ``memory.postings`` vacuumed: until autovacuum has come,
        recall by words reads some ten times the pages.

        >>> from memory import Memory
        >>> items = [{"text": text, "subject_keys": "customer:li"} for text in ("Hello", "Goodbye")]
        >>> told = await Memory().remember_many("shop", items=items)
        >>> [item.record.text for item in told]
        ['Hello', 'Goodbye']
        """
        tenant_key = validation.tenant(tenant_key)
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Sequence):
            raise InvalidInputError("items", "must be a sequence")
        found = []
        turns = Turns()
        for position, value in enumerate(items):
            await turns.give()
            item = item_of(value, f"items.{position}")
            with located(f"items.{position}."):
                found.append(checked(item))
        return await self._remember(tenant_key, found, "items.{}.") if found else []

    async def _remember(
        self, tenant_key: str, items: Sequence[Item], prefix: str
    ) -> list[Remembered]:
        contents = await self._redacted([(item.text, item.metadata) for item in items])
        drafts = await self._drafts(tenant_key, items, contents, prefix=prefix)
        await self._claim()
        records = await self._store.remember(tenant_key, drafts)
        return [
            Remembered(record=record, redactions=content.findings)
            for record, content in zip(records, contents, strict=True)
        ]

    async def derive(
        self,
        tenant_key: str,
        *,
        kind: str,
        text: str,
        sources: Sources,
        metadata: Mapping[str, Any] | None = None,
        embedding: Vector | None = None,
        record_key: str | None = None,
        artefacts: Sequence[tuple[str, str]] = (),
    ) -> Derived:
        """Store something made from records, with its provenance; it is erased with any of them.

        It is about everybody its sources are about. When one of them expires, this stays visible
        until :meth:`expire` erases both. ``sources`` are records, their ids, or what
        :meth:`remember`, :meth:`derive` and :meth:`recall` (its hits) returned. ``artefacts`` are
        ``(adapter, artefact_id)`` pairs that an external index will hold for it. Where
        ``record_key`` exists, this becomes its newest version. Raises ``ProvenanceRequiredError``
        without sources and ``UnknownSourceError`` for one that is not there.

        >>> from memory import Memory
        >>> service = Memory()
        >>> told = await service.remember("shop", text="Dana moved", subject_keys="customer:dana")
        >>> made = await service.derive("shop", kind="summary", text="New address", sources=told)
        >>> made.record.origin, made.record.subject_keys
        ('derived', ('customer:dana',))
        """
        tenant_key = validation.tenant(tenant_key)
        source_ids = validation.sources(sources)
        pairs = validation.artefacts(artefacts)
        # Whom it is about is the store's to say, under the lock on the sources.
        item = replace(
            checked(
                Item(
                    text=text,
                    subject_keys="inherited",
                    kind=kind,
                    metadata=metadata,
                    record_key=record_key,
                    embedding=embedding,
                )
            ),
            subject_keys=(),
        )
        contents = await self._redacted([(item.text, item.metadata)])
        (draft,) = await self._drafts(tenant_key, [item], contents, origin="derived")
        await self._claim()
        record = await self._store.derive(tenant_key, draft, source_ids, pairs)
        return Derived(record=record, redactions=contents[0].findings)

    async def supersede(
        self,
        tenant_key: str,
        *,
        record_id: UUID | str,
        text: str | None = None,
        subject_keys: str | Sequence[str] | None = None,
        kind: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        occurred_at: datetime | None = None,
        expires_at: datetime | None = None,
        embedding: Vector | None = None,
    ) -> Remembered:
        """Store a new version of a remembered record; give a text, subjects, or both.

        What is not given is kept, but for ``occurred_at``, which is now, and a vector of your own.
        The old version is hidden from recall, shown by :meth:`history`, and erased with the people
        *it* is about. Raises ``UnknownRecordError``, or ``ConflictError`` where another version
        came first. A derived record is refused: derive it again under its ``record_key``.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Ana and Ben pay", subject_keys=["ana", "ben"])
        >>> old = told.record.record_id
        >>> new = await shop.supersede(record_id=old, text="Ben pays", subject_keys="ben")
        >>> new.record.version, new.record.subject_keys
        (2, ('ben',))
        """
        tenant_key = validation.tenant(tenant_key)
        wanted = validation.record_id(record_id)
        if text is None and subject_keys is None:
            raise InvalidInputError("text", "must be given, or subject_keys, or both")
        # Checked before the store is asked; what is kept stands in as something that passes.
        given = checked(
            Item(
                text="kept" if text is None else text,
                subject_keys="kept" if subject_keys is None else subject_keys,
                kind="kept" if kind is None else kind,
                metadata=metadata,
                occurred_at=occurred_at,
                expires_at=expires_at,
                embedding=embedding,
            )
        )
        old = await self._superseded(tenant_key, wanted)
        item = replace(
            given,
            subject_keys=old.subject_keys if subject_keys is None else given.subject_keys,
            kind=old.kind if kind is None else given.kind,
            expires_at=old.expires_at if expires_at is None else given.expires_at,
            record_key=old.record_key,
        )
        contents = await self._redacted([(given.text, given.metadata)])
        content = _kept(old, contents[0], text=text is None, metadata=metadata is None)
        (draft,) = await self._drafts(tenant_key, [item], [content])
        await self._claim()
        record = await self._store.supersede(tenant_key, wanted, draft)
        return Remembered(record=record, redactions=content.findings)

    async def _superseded(self, tenant_key: str, record_id: UUID) -> Record:
        old = await self._store.get(tenant_key, record_id, self._now())
        if old is None:
            raise UnknownRecordError("record_id: no such record")
        if old.origin == "derived":
            raise InvalidInputError("record_id", "must be remembered; derive a derived one again")
        return old

    async def postpone(
        self,
        tenant_key: str,
        *,
        record_ids: Sequence[Record | UUID | str],
        expires_at: datetime,
    ) -> int:
        """Have records expire later; return how many do.

        Those that have expired, would expire later than that, or never, stay as they are.

        >>> from datetime import datetime, timedelta, UTC
        >>> from memory import Memory
        >>> shop, now = Memory().for_tenant("shop"), datetime.now(UTC)
        >>> told = await shop.remember(
        ...     text="Dana is on holiday", subject_keys="dana", expires_at=now + timedelta(days=1)
        ... )
        >>> await shop.postpone(record_ids=[told.record], expires_at=now + timedelta(days=7))
        1
        """
        tenant_key = validation.tenant(tenant_key)
        wanted = validation.record_ids(record_ids)
        moment = validation.moment(expires_at, "expires_at")
        return await self._store.postpone(tenant_key, wanted, moment, self._now())

    async def relate(
        self, tenant_key: str, *, record_id: UUID | str, subject_keys: str | Sequence[str]
    ) -> Record:
        """Link more people to a record, and to everything derived from it.

        For somebody who is recognised in a record later on. Raises ``UnknownRecordError``.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="My brother moved", subject_keys="ana")
        >>> record = await shop.relate(record_id=told.record.record_id, subject_keys="ben")
        >>> record.subject_keys
        ('ana', 'ben')
        """
        tenant_key = validation.tenant(tenant_key)
        wanted = validation.record_id(record_id)
        subjects = self._subjects(tenant_key, validation.subject_keys(subject_keys))
        await self._claim()
        return await self._store.relate(tenant_key, wanted, subjects)

    async def register_artefact(
        self, tenant_key: str, *, adapter: str, artefact_id: str, sources: Sources
    ) -> None:
        """Record that something outside the database was made from these records.

        Losing any of them makes the index named ``adapter`` owe a purge of ``artefact_id``.
        Register before writing to the index, and again after: that changes nothing, and raises
        ``UnknownSourceError`` where a source was erased in between, so that the entry is yours to
        remove. Raises ``ConflictError`` while the purge of ``artefact_id`` is owed.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Ana moved", subject_keys="ana")
        >>> await shop.register_artefact(adapter="cache", artefact_id="4711", sources=told)
        >>> (await shop.forget(subject_key="ana", dry_run=True)).adapters
        ('cache',)
        """
        tenant_key = validation.tenant(tenant_key)
        name = validation.key(adapter, "adapter", validation.MAX_NAME)
        artefact = validation.key(artefact_id, "artefact_id")
        source_ids = validation.sources(sources)
        await self._claim()
        await self._store.register(tenant_key, name, artefact, source_ids)


def _kept(old: Record, new: Redacted, *, text: bool, metadata: bool) -> Redacted:
    """Put what is kept beside what is new; the kept parts were redacted when they were stored."""
    kept = {"text": text, "metadata": metadata}
    paths = [path for path in old.redacted if kept[path.split(".", 1)[0]]]
    paths += [path for path in new.paths if not kept[path.split(".", 1)[0]]]
    return Redacted(
        text=old.text if text else new.text,
        metadata=dict(old.metadata) if metadata else new.metadata,
        findings=tuple(item for item in new.findings if not kept[item.path.split(".", 1)[0]]),
        paths=tuple(sorted(paths)),
    )
