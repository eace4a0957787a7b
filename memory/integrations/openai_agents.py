"""Sessions of the OpenAI Agents SDK that can be erased; extra ``openai-agents``.

An item of the conversation is a record about the people of the session: its main string is the
text, the rest its metadata, both masked. All items of a session share a kind, which is made from
the session's id, its people and the installation's pepper, so that one ``forget`` clears the
session, with all that was derived from its items, and sessions of other people never meet it,
whatever their ids and whoever is in both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, cast

from memory import validation
from memory.errors import InstallError, UnknownRecordError
from memory.ids import uuid7
from memory.integrations.openai_items import item_of, role_of, split
from memory.service import Item, TenantMemory
from memory.service.base import utc_now
from memory.types import Record

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
except ImportError:
    raise InstallError("needs: pip install 'erasable-memory[openai-agents]'") from None

__all__ = ["MemorySession"]

_PAGE: Final = 1_000
_LONGEST_ID: Final = 512  # bytes of UTF-8


class MemorySession:
    """A ``Session``: pass it to ``Runner.run(..., session=...)``, or to what wraps sessions.

    ``memory`` has the tenant bound; ``subject_keys`` are the people whom the conversation is about,
    which each item is then about. A session is theirs, in whatever order: opened with other people,
    or with some of them, the same ``session_id`` holds other items. With a ``lifetime``, items
    expire that long after they were added: ``expire`` erases them.

    Items come back in the order in which they were added, as they are stored: what was masked stays
    masked, and what was superseded comes in its newest version, at its old place. What has metadata
    of the host's, superseded or remembered with the session's kind, is a plain message.
    ``add_items`` stores all or none. It raises ``InvalidInputError`` for what is no JSON or has a
    text, or a rest, of over 64 KiB, and ``SubjectBlockedError`` for people who are not to be
    remembered.
    ``pop_item`` and ``clear_session`` are erasures: every version of an item goes, with what was
    derived from it, tombstones stay, and they raise what ``forget`` raises.

    >>> from memory import Memory
    >>> from memory.integrations.openai_agents import MemorySession
    >>> shop = Memory(subject_pepper="from a secret manager").for_tenant("shop")
    >>> session = MemorySession("thread-7", shop, subject_keys="customer:dana")
    >>> await session.add_items([{"role": "user", "content": "My number is 98450 12345"}])
    >>> await session.get_items()
    [{'role': 'user', 'content': 'My number is [PHONE:****2345]'}]
    >>> await session.pop_item()
    {'role': 'user', 'content': 'My number is [PHONE:****2345]'}
    >>> await session.clear_session()
    """

    session_id: str
    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        memory: TenantMemory,
        *,
        subject_keys: str | Sequence[str],
        lifetime: timedelta | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = (
            SessionSettings()
            if session_settings is None
            else coerce_session_settings(session_settings)
        )
        self._memory = memory
        self._people = tuple(sorted(validation.subject_keys(subject_keys)))
        if lifetime is not None:
            validation.before(utc_now(), lifetime, "lifetime")
        self._lifetime = lifetime
        parts = (validation.key(session_id, "session_id", _LONGEST_ID), *self._people)
        framed = "".join(f"{len(part)}:{part}" for part in parts).encode()
        name = f"openai-agents:{hashlib.sha256(framed).hexdigest()}"
        self._kind = f"session-{memory.subject_fingerprint(subject_key=name)[:40]}"

    @property
    def kind(self) -> str:
        """The kind of this session's records, for ``recall`` and ``forget(kinds=...)``."""
        return self._kind

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest ``limit`` items (None: those of the settings, or all), oldest first."""
        newest = await self._newest(resolve_session_limit(limit, self.session_settings))
        return [await self._item(record) for record in reversed(newest)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store the items behind those that are there, in one transaction."""
        expires_at = None if self._lifetime is None else utc_now() + self._lifetime
        drafts = []
        for position, item in enumerate(items):
            # As the verb will: what masking would spoil is stored otherwise.
            redact = self._memory.memory._redacted
            text, metadata = await split(item, f"items.{position}", redact)
            drafts.append(
                Item(
                    # Made here, so that nothing comes between the items of one call.
                    record_id=uuid7(),
                    text=text,
                    metadata=metadata,
                    subject_keys=self._people,
                    kind=self._kind,
                    expires_at=expires_at,
                )
            )
        await self._memory.remember_many(items=drafts)

    async def pop_item(self) -> TResponseInputItem | None:
        """Erase the newest item and return it; None where there is none."""
        while newest := await self._newest(1):
            versions = await self._versions(newest[0].record_key)
            # The oldest first: until the newest is gone, popping can be asked for again. Who
            # erases that one has popped the item, whoever else is about it.
            gone = [await self._erase(version) for version in reversed(versions)]
            if gone and gone[-1]:
                return await self._item(versions[0], versions)
        return None

    async def clear_session(self) -> None:
        """Erase all items, and all that was derived from them."""
        one = self._people[0]
        # A version that the host made about others only is of the session all the same.
        for key in await self._superseded():
            for version in reversed(await self._versions(key)):
                if version.kind == self._kind and one not in version.subject_keys:
                    await self._erase(version)
        await self._memory.forget(subject_key=one, kinds=self._kind, reason="operator")

    async def _item(
        self, record: Record, versions: Sequence[Record] | None = None
    ) -> TResponseInputItem:
        found = item_of(record)
        if found is None:
            # Of older versions the role alone: the rest is what a correction may have taken out.
            known = await self._versions(record.record_key) if versions is None else versions
            found = {"role": role_of(known), "content": record.text}
        return cast("TResponseInputItem", found)

    async def _newest(self, wanted: int | None) -> list[Record]:
        """Return the newest items, newest first: each at the place of its first version."""
        found: list[Record] = []
        if wanted is not None and wanted <= 0:
            return found
        while True:
            most = _PAGE if wanted is None else min(_PAGE, wanted + len(found))
            page = await self._page(most, found[-1:])
            found += page
            # The key of a line is the id of its first version, whose successors have higher ones.
            lines = sorted(found, key=lambda record: record.record_key, reverse=True)[:wanted]
            if len(page) < most or (
                len(lines) == wanted and lines[-1].record_key >= str(page[-1].record_id)
            ):
                return lines

    async def _superseded(self) -> set[str]:
        """Return the keys of the items that have had a newer version."""
        found: set[str] = set()
        page: list[Record] = []
        while page := await self._page(_PAGE, page[-1:], include_superseded=True):
            found |= {one.record_key for one in page if one.version > 1 or one.superseded_at}
        return found

    async def _versions(self, record_key: str) -> list[Record]:
        return await self._memory.history(record_key=record_key, include_expired=True)

    async def _erase(self, version: Record) -> bool:
        try:
            await self._memory.forget_record(record_id=version.record_id, reason="operator")
        except UnknownRecordError:
            return False  # somebody else did
        return True

    async def _page(
        self, limit: int, after: list[Record], *, include_superseded: bool = False
    ) -> list[Record]:
        return await self._memory.records(
            subject_keys=self._people,
            kinds=self._kind,
            origins="remembered",
            include_superseded=include_superseded,
            after=after[0] if after else None,
            limit=limit,
        )
