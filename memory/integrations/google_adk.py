"""A memory service of Google's Agent Development Kit that can be erased; extra ``google-adk``.

The user of an app is a person, an event with a text is a record about them, and the app is the
record's kind, made from its name and the installation's pepper: so two apps of one tenant do not
read one another, and forgetting the person empties both.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from memory import validation
from memory.errors import InstallError, InvalidInputError
from memory.service import Item, TenantMemory
from memory.types import Record

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai import types
except ImportError:
    raise InstallError("needs: pip install 'erasable-memory[google-adk]'") from None

__all__ = ["ErasableMemoryService"]

_PAGE: Final = 1_000
_logger = logging.getLogger(__name__)
_NAMESPACE: Final = uuid5(NAMESPACE_URL, "urn:erasable-memory:google-adk")


def _user(app_name: str, user_id: str) -> str:
    del app_name
    return user_id


class ErasableMemoryService(BaseMemoryService):
    """A memory service: pass it to ``Runner(memory_service=...)``.

    ``memory`` has the tenant bound, or is a function from an app's name to one that has.
    ``subject_key`` makes a person's key of the app's name and the user's id; by default it is the
    id, and the same id in two apps is one person. ``limit`` bounds what a search returns.

    Of an event its author, time, role and text are kept, masked, once: adding a session again adds
    what is new. What was deleted stays deleted, but a person who was forgotten comes back with a
    session that is added again: delete it in the session service, or forget with ``block_future``.
    An event over 64 KiB is left out, with a warning that says how many were; a longer entry of
    ``add_memory`` is refused with ``InvalidInputError``.

    >>> from google.adk.memory.memory_entry import MemoryEntry
    >>> from google.genai.types import Content, Part
    >>> from memory import Memory
    >>> from memory.integrations.google_adk import ErasableMemoryService
    >>> shop = Memory(subject_pepper="from a secret manager").for_tenant("shop")
    >>> service = ErasableMemoryService(shop)
    >>> tea = MemoryEntry(content=Content(parts=[Part(text="Dana drinks tea")]))
    >>> await service.add_memory(app_name="clerk", user_id="dana", memories=[tea])
    >>> who = {"app_name": "clerk", "user_id": "dana"}
    >>> [entry] = (await service.search_memory(**who, query="tea")).memories
    >>> entry.content.parts[0].text
    'Dana drinks tea'
    >>> await service.delete_memory(**who, memory_id=entry.id)
    >>> (await service.search_memory(**who, query="tea")).memories
    []
    """

    def __init__(
        self,
        memory: TenantMemory | Callable[[str], TenantMemory],
        *,
        subject_key: Callable[[str, str], str] = _user,
        limit: int = 10,
    ) -> None:
        self._tenant: Callable[[str], TenantMemory] = (
            memory if callable(memory) else lambda app_name: memory
        )
        self._subject_key = subject_key
        self._limit = validation.limit(limit)

    def kind(self, app_name: str) -> str:
        """Return the kind of the app's records.

        For ``forget(kinds=...)``, which erases a person from one app, and for ``derive``: what has
        this kind is found by :meth:`search_memory`.
        """
        return _kind(self._tenant(app_name), app_name)

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember the events of the session that are not there yet."""
        await self._add(
            (session.app_name, session.user_id), session.id, _entries(session.events), {}
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember these events, but for those of the session that are there already."""
        custom = dict(custom_metadata or {})
        await self._add((app_name, user_id), session_id or "", _entries(events), custom)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember these entries; one with an id that is there already is left as it is."""
        custom = dict(custom_metadata or {})
        await self._add((app_name, user_id), None, memories, custom)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Recall what this app remembers about the user; a blank query finds nothing."""
        memory = self._tenant(app_name)
        if not query.strip():
            return SearchMemoryResponse()
        found = await memory.recall(
            text=query,
            subject_keys=self._subject_key(app_name, user_id),
            kinds=_kind(memory, app_name),
            limit=self._limit,
        )
        return SearchMemoryResponse(memories=[_entry(hit.record) for hit in found.hits])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Erase one memory and what was derived from it, by the id that a search returned.

        It does not come back with its session: a record without content remembers that, until the
        person is forgotten. An id that is unknown, or another user's or app's, changes nothing.
        """
        if not memory_id:
            return
        memory, kind = self._tenant(app_name), self.kind(app_name)
        person = self._subject_key(app_name, user_id)
        try:
            record = await memory.get(record_id=memory_id)
        except InvalidInputError:
            return  # no id that a search returned
        if record is None or record.kind != kind or person not in record.subject_keys:
            return
        # The oldest first: until the newest is gone, the deletion can be asked for again.
        versions = (await memory.history(record_key=record.record_key))[::-1]
        markers = [
            Item(
                record_id=_gone(version.record_id),
                text="deleted",
                subject_keys=person,
                kind=f"{kind}-deleted",
                metadata={"session": version.metadata.get("session")},
                occurred_at=version.occurred_at,
            )
            for version in versions
            if version.origin == "remembered"
        ]
        await memory.remember_many(items=markers)
        for version in versions:
            await memory.forget_record(record_id=version.record_id, reason="operator")

    async def _add(
        self,
        who: tuple[str, str],
        session_id: str | None,
        entries: Sequence[MemoryEntry],
        custom: dict[str, object],
    ) -> None:
        app_name = who[0]
        memory = self._tenant(app_name)
        person, kind = self._subject_key(*who), _kind(memory, app_name)
        items: dict[object, Item] = {}
        for position, entry in enumerate(entries):
            text = _text(entry.content)
            if not text.strip():
                continue
            identity = [*who, session_id, entry.id]
            record_id = uuid5(_NAMESPACE, json.dumps(identity)) if entry.id else None
            items[record_id or position] = Item(
                record_id=record_id,
                text=text,
                subject_keys=person,
                kind=kind,
                metadata={
                    "session": session_id,
                    "author": entry.author,
                    "role": entry.content.role,
                    "custom": {**custom, **entry.custom_metadata},
                },
                occurred_at=_moment(entry.timestamp, f"memories.{position}.timestamp"),
            )
        there = await self._there(memory, person, kind, session_id) if items else set()
        fresh = [
            item
            for key, item in items.items()
            if not isinstance(key, UUID) or not {key, _gone(key)} & there
        ]
        await memory.remember_many(items=fresh)

    async def _there(
        self, memory: TenantMemory, person: str, kind: str, session_id: str | None
    ) -> set[UUID]:
        """Return the ids of what the session left: events, versions of them, and deletions."""
        found: set[UUID] = set()
        last: Record | None = None
        while page := await memory.records(
            subject_keys=person,
            kinds=(kind, f"{kind}-deleted"),
            metadata={"session": session_id},
            include_superseded=True,
            after=last,
            limit=_PAGE,
        ):
            found |= {record.record_id for record in page}
            last = page[-1]
        return found


def _kind(memory: TenantMemory, app_name: str) -> str:
    return f"adk-{memory.subject_fingerprint(subject_key=f'google-adk:{app_name}')[:40]}"


def _gone(record_id: UUID) -> UUID:
    return uuid5(record_id, "deleted")


def _entries(events: Sequence[Event]) -> list[MemoryEntry]:
    found, too_long = [], 0
    for position, event in enumerate(events):
        if event.content is None:
            continue
        if len(_text(event.content).encode(errors="replace")) > validation.MAX_TEXT:
            too_long += 1
            continue
        moment = _time(event.timestamp, f"events.{position}.timestamp")
        found.append(
            MemoryEntry(id=event.id, author=event.author, content=event.content, timestamp=moment)
        )
    if too_long:
        # One pasted file must not keep a session out for ever.
        _logger.warning("events over 64 KiB were left out: %d", too_long)
    return found


def _time(timestamp: float, field: str) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        moment = None
    if moment is None:
        raise InvalidInputError(field, "must be a time in seconds since 1970")
    return moment.isoformat()


def _text(content: types.Content) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text)


def _moment(timestamp: str | None, field: str) -> datetime | None:
    if timestamp is None:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInputError(field, "must be in ISO 8601")
    return moment


def _entry(record: Record) -> MemoryEntry:
    values: Mapping[str, Any] = record.metadata
    return MemoryEntry(
        id=str(record.record_id),
        author=values.get("author"),
        timestamp=record.occurred_at.isoformat(),
        content=types.Content(role=values.get("role"), parts=[types.Part(text=record.text)]),
        custom_metadata=values.get("custom") or {},
    )
