"""Sessions of the OpenAI Agents SDK that can be erased; extra ``openai-agents``.

An item of the conversation is a record about the people of the session: its main string is the
text, the rest its metadata, both masked. All items of a session share a kind, which is made from
the session's id and the installation's pepper, so that one ``forget`` clears the session, with all
that was derived from its items, and two people's sessions never meet, whatever their ids.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, cast

from memory import validation
from memory.errors import InstallError, InvalidInputError, UnknownRecordError
from memory.ids import uuid7
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
_SPOKEN: Final = ("content", "output", "summary")
# A number in JSON is masked without quotes; a model's adapter that parses arguments would fail.
_BARE_MASK: Final = re.compile(r"""(?<=[\[:,\s])\[[A-Z_]+(?::\*{4}\d{4})?\](?=\s*[,}\]])""")

_Place = list[str | int]


class MemorySession:
    """A ``Session``: pass it to ``Runner.run(..., session=...)``, or to what wraps sessions.

    ``memory`` has the tenant bound; ``subject_keys`` are the people whom the conversation is about,
    which each item is then about. A session is theirs: opened with other people, the same
    ``session_id`` holds other items. With a ``lifetime``, items expire that long after they were
    added: ``expire`` erases them.

    Items come back in the order in which they were added, as they are stored: what was masked stays
    masked. ``add_items`` stores all or none. It raises ``InvalidInputError`` for what is no JSON or
    has a text, or a rest, of over 64 KiB, and ``SubjectBlockedError`` for people who are not to be
    remembered. ``pop_item`` and ``clear_session`` are erasures: what was derived from the items
    goes too, tombstones stay, and they raise what ``forget`` raises.

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
        self._people = validation.subject_keys(subject_keys)
        if lifetime is not None:
            validation.before(utc_now(), lifetime, "lifetime")
        self._lifetime = lifetime
        name = f"openai-agents:{validation.key(session_id, 'session_id', _LONGEST_ID)}"
        self._kind = f"session-{memory.subject_fingerprint(subject_key=name)[:40]}"

    @property
    def kind(self) -> str:
        """The kind of this session's records, for ``recall`` and ``forget(kinds=...)``."""
        return self._kind

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest ``limit`` items (None: those of the settings, or all), oldest first."""
        wanted = resolve_session_limit(limit, self.session_settings)
        found: list[Record] = []
        while wanted is None or len(found) < wanted:
            most = _PAGE if wanted is None else min(_PAGE, wanted - len(found))
            page = await self._newest(most, found[-1] if found else None)
            found += page
            if len(page) < most:
                break
        return [_item(record) for record in reversed(found)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store the items behind those that are there, in one transaction."""
        expires_at = None if self._lifetime is None else utc_now() + self._lifetime
        drafts = []
        for position, item in enumerate(items):
            text, metadata = _split(item, f"items.{position}")
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
        while page := await self._newest(1, None):
            try:
                await self._memory.forget_record(record_id=page[0].record_id, reason="operator")
            except UnknownRecordError:
                continue  # somebody else popped it
            return _item(page[0])
        return None

    async def clear_session(self) -> None:
        """Erase all items, and all that was derived from them."""
        # Each item is about all of them.
        one = self._people[0]
        await self._memory.forget(subject_key=one, kinds=self._kind, reason="operator")

    async def _newest(self, limit: int, after: Record | None) -> list[Record]:
        return await self._memory.records(
            subject_keys=self._people,
            subject_match="all",
            kinds=self._kind,
            origins="remembered",
            after=after,
            limit=limit,
        )


def _split(item: object, field: str) -> tuple[str, dict[str, Any]]:
    """Return the item's main string, to be found by, and the item without it."""
    if not isinstance(item, Mapping):
        raise InvalidInputError(field, "must be a mapping")
    place = _spoken(item)
    if place is None:
        named = (item.get("type"), item.get("name"))
        return " ".join(word for word in named if isinstance(word, str) and word) or "item", {
            "item": item
        }
    rest = copy.deepcopy(dict(item))
    return _exchange(rest, place, None), {"item": rest, "text": place}


def _spoken(item: Mapping[str, Any]) -> _Place | None:
    """Return where the first string stands that somebody said or a tool returned."""
    for name in _SPOKEN:
        value = item.get(name)
        if isinstance(value, str) and value.strip():
            return [name]
        for position, part in enumerate(value if isinstance(value, list) else ()):
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str) and text.strip():
                return [name, position, "text"]
    return None


def _item(record: Record) -> TResponseInputItem:
    item = copy.deepcopy(dict(record.metadata["item"]))
    if place := record.metadata.get("text"):
        _exchange(item, place, record.text)
    arguments = item.get("arguments")
    if isinstance(arguments, str) and not _is_json(arguments):
        item["arguments"] = _BARE_MASK.sub(r'"\g<0>"', arguments)
    return cast("TResponseInputItem", item)


def _exchange(item: Any, place: _Place, value: str | None) -> Any:
    """Put the value at its place in the item; return what was there."""
    *way, last = place
    for step in way:
        item = item[step]
    old, item[last] = item[last], value
    return old


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
