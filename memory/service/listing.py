"""The verbs that read records by id and key, and page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memory import validation
from memory.service.filtering import Filtering, Where
from memory.types import Origin, Record, SubjectMatch

__all__ = ["Listing"]


class Listing(Filtering):
    """No verb here ranks: each is exact."""

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

    async def history(
        self, tenant_key: str, *, record_key: str, include_expired: bool = False
    ) -> list[Record]:
        """Return every version under a key, newest first; a record's id is its key by default.

        ``include_expired`` adds those that have expired and are not erased yet.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> for text in ("Dana lives in Pune", "Dana lives in Goa"):
        ...     told = await shop.remember(text=text, subject_keys="dana", record_key="dana/home")
        >>> [record.text for record in await shop.history(record_key="dana/home")]
        ['Dana lives in Goa', 'Dana lives in Pune']
        """
        tenant_key = validation.tenant(tenant_key)
        wanted = validation.key(record_key, "record_key")
        every = validation.flag(include_expired, "include_expired")
        return await self._store.history(tenant_key, wanted, None if every else self._now())

    async def record_keys(
        self,
        tenant_key: str,
        *,
        prefix: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[str]:
        """List the keys that current records were given, ascending by code point.

        Those that begin with ``prefix``, from behind ``after``; 1 to 1,000 at a time. No content is
        read.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> for key in ("dana/home", "dana/work", "eve/home"):
        ...     told = await shop.remember(text="moved", subject_keys="p", record_key=key)
        >>> await shop.record_keys(prefix="dana/")
        ['dana/home', 'dana/work']
        """
        tenant_key = validation.tenant(tenant_key)
        begins = "" if prefix is None else validation.key(prefix, "prefix")
        above = "" if after is None else validation.key(after, "after")
        most = validation.limit(limit)
        return await self._store.record_keys(tenant_key, begins, above, self._now(), most)

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
        where: Where | None = None,
        record_keys: str | Sequence[str] | None = None,
        key_prefix: str | None = None,
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
            (metadata, where),
            (record_keys, key_prefix),
            include_superseded,
        )
        below = None if after is None else validation.record_id(after, "after")
        most = validation.limit(limit)
        filters, _ = await self._masked(filters)
        return await self._store.records(tenant_key, filters, below, most)
