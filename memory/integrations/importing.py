"""Moving in from LangGraph's PostgreSQL store and from mem0's table in pgvector.

Both are read page by page, with their times and, where there is one to a text, their vectors, and
written by ``remember_many``: masked, with postings, about somebody. The id of a record is made from
what it came from, and a key that is here already with something as new is left as it is, so that a
run that stopped is run again. What was erased here since then comes back with a second run: erase
the source first.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory import validation
from memory.errors import ConflictError, InvalidInputError, SubjectBlockedError
from memory.failures import translate
from memory.service import Item, TenantMemory
from memory.service.base import utc_now
from memory.vectors import vector

if TYPE_CHECKING:
    from memory.integrations.langgraph import ErasableStore

__all__ = ["Imported", "from_langgraph", "from_mem0"]

Source = AsyncEngine | AsyncConnection

_PAGE: Final = 500
_OWN: Final = frozenset({"data", "hash", "text_lemmatized", "user_id", "expiration_date"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What an import did: rows ``read``, records ``imported``, ``vectors`` that came with them.

    ``existing`` counts what was here already, as new or newer. ``skipped`` counts the others by
    reason: ``expired``; ``nobody``, about whom it would be; ``barred``, since somebody is not to be
    remembered; ``refused``, for what breaks a limit (a text of over 64 KiB, say).

    >>> from memory.integrations.importing import Imported
    >>> done = Imported(read=3, imported=1, existing=1, vectors=1, skipped={"expired": 1})
    >>> done.read == done.imported + done.existing + sum(done.skipped.values())
    True
    """

    read: int
    imported: int
    existing: int
    vectors: int
    skipped: Mapping[str, int] = field(default_factory=dict)


async def from_langgraph(
    store: ErasableStore, source: Source, *, schema: str = "public", vectors: bool = True
) -> Imported:
    """Import the items of LangGraph's PostgreSQL store, tables ``store`` and ``store_vectors``.

    ``store`` says whom they are about and what of them is searched. What is left of a TTL goes on.
    A vector is kept where the item has one and ``vectors`` is true; it was made of the text before
    it was masked here. Else the memory's embedder makes one. Raises a ``MemoryServiceError`` for
    what cannot be read.

    >>> from memory import Memory
    >>> from memory.integrations.importing import from_langgraph
    >>> from memory.integrations.langgraph import ErasableStore
    >>> from sqlalchemy.ext.asyncio import create_async_engine
    >>> async def move(url, service: Memory):
    ...     engine = create_async_engine(url)  # postgresql+asyncpg://... of their database
    ...     store = ErasableStore(service.for_tenant("shop"), subjects=1)
    ...     return await from_langgraph(store, engine)
    """
    place = _quoted(schema)
    held = f"{place}.store_vectors"
    there = await _fetch(source, "select to_regclass(:name) is not null as found", name=held)
    one = f"""(
        select case when count(*) = 1 then min(v.embedding::text) end from {held} as v
        where v.prefix = s.prefix and v.key = s.key
    )"""
    statement = f"""
        select s.prefix, s.key, s.value::text as value, s.created_at, s.expires_at, s.ttl_minutes,
            coalesce(s.updated_at, s.created_at, '-infinity') as updated_at,
            {one if there[0].found and vectors else "null"} as embedding
        from {place}.store as s
        where (s.prefix, s.key) > (:prefix, :key)
        order by s.prefix, s.key limit {_PAGE}
    """
    counts: Counter[str] = Counter()
    after = {"prefix": "", "key": ""}
    while rows := await _fetch(source, statement, **after):
        after = {"prefix": rows[-1].prefix, "key": rows[-1].key}
        drafts = []
        for row in rows:
            if row.expires_at is not None and row.expires_at <= utc_now():
                counts["expired"] += 1
                continue
            draft = _item(store, row, counts)
            if draft is not None:
                drafts.append(draft)
        counts["read"] += len(rows)
        await _write(store.tenant, drafts, counts)
    return _imported(counts)


async def from_mem0(
    memory: TenantMemory,
    source: Source,
    *,
    table: str = "mem0",
    schema: str = "public",
    subjects: Callable[[Mapping[str, Any]], str | Sequence[str] | None] | None = None,
    kind: str = "semantic",
    vectors: bool = True,
) -> Imported:
    """Import mem0's memories from its table in pgvector: its ``collection_name``.

    ``subjects`` says whom a memory is about, given its payload; by default its ``user_id``. What is
    about nobody is skipped. The text is the payload's ``data``, the rest of the payload becomes
    metadata, but for what mem0 computes from the text. mem0's entities and its history of old texts
    are not read. Vectors and errors: as in :func:`from_langgraph`.

    >>> from memory import Memory
    >>> from memory.integrations.importing import from_mem0
    >>> from sqlalchemy.ext.asyncio import create_async_engine
    >>> async def move(url, service: Memory):
    ...     engine = create_async_engine(url)  # postgresql+asyncpg://... of their database
    ...     return await from_mem0(service.for_tenant("shop"), engine, table="memories")
    """
    validation.kind(kind)
    about = _user if subjects is None else subjects
    statement = f"""
        select m.id, m.payload::text as payload, {"m.vector::text" if vectors else "null"} as vector
        from {_quoted(schema)}.{_quoted(table)} as m
        where cast(:after as uuid) is null or m.id > :after
        order by m.id limit {_PAGE}
    """
    counts: Counter[str] = Counter()
    after: UUID | None = None
    while rows := await _fetch(source, statement, after=after):
        after = rows[-1].id
        found = [
            _memory(row.id, json.loads(row.payload or "{}"), row.vector, about) for row in rows
        ]
        drafts = [replace(item, kind=kind) for item in found if isinstance(item, Item)]
        counts["read"] += len(rows)
        counts.update(reason for reason in found if isinstance(reason, str))
        await _write(memory, drafts, counts)
    return _imported(counts)


def _item(store: ErasableStore, row: Any, counts: Counter[str]) -> Item | None:
    """Return an item as LangGraph would have put it into ``store`` at its time."""
    namespace, value = tuple(row.prefix.split(".")), json.loads(row.value)
    try:
        # The one way from an item to a record, so that both find the same.
        draft = store.draft(namespace, row.key, value)
    except InvalidInputError as error:
        counts["nobody" if error.field == "namespace" else "refused"] += 1
        return None
    kept = {**(draft.metadata or {}), "created_at": _utc(row.created_at).isoformat()}
    if row.ttl_minutes is not None:
        kept["ttl"] = row.ttl_minutes
    return replace(
        draft,
        metadata=kept,
        record_id=_id(row.updated_at, "langgraph", row.prefix, row.key),
        occurred_at=_utc(row.updated_at),
        expires_at=row.expires_at,
        embedding=_vector(row.embedding) if draft.searchable else None,
    )


def _memory(
    id_: UUID,
    payload: dict[str, Any],
    embedding: str | None,
    about: Callable[[Mapping[str, Any]], str | Sequence[str] | None],
) -> Item | str:
    """Return one of mem0's memories as an item, or the reason for which it is skipped."""
    expires_at = _end_of(payload.get("expiration_date"))
    if expires_at is not None and expires_at <= utc_now():
        return "expired"
    subject_keys = about(payload)
    if not subject_keys:
        return "nobody"
    moment = _moment(payload.get("updated_at")) or _moment(payload.get("created_at"))
    return Item(
        text=payload.get("data") or "",
        subject_keys=subject_keys,
        metadata={key: value for key, value in payload.items() if key not in _OWN},
        record_key=f"mem0:{id_}",
        record_id=_id(moment, "mem0", str(id_)),
        occurred_at=moment,
        expires_at=expires_at,
        embedding=_vector(embedding),
    )


def _user(payload: Mapping[str, Any]) -> str | None:
    found = payload.get("user_id")
    return found if isinstance(found, str) else None


async def _write(memory: TenantMemory, drafts: Sequence[Item], counts: Counter[str]) -> None:
    """Write what is not here yet: at once, or one by one where something is refused."""
    keys = [draft.record_key or "" for draft in drafts]
    found = await memory.records(record_keys=keys, limit=len(keys)) if keys else []
    here = {record.record_key: record.occurred_at for record in found}
    fresh = [draft for draft in drafts if not _is_here(draft, here)]
    counts["existing"] += len(drafts) - len(fresh)
    try:
        await memory.remember_many(items=fresh)
    except (ConflictError, InvalidInputError, SubjectBlockedError):
        for draft in fresh:
            await _write_one(memory, draft, counts)
    else:
        for draft in fresh:
            _count(draft, counts)


def _is_here(draft: Item, here: Mapping[str, datetime]) -> bool:
    known = here.get(draft.record_key or "")
    return known is not None and (draft.occurred_at is None or known >= draft.occurred_at)


async def _write_one(memory: TenantMemory, draft: Item, counts: Counter[str]) -> None:
    try:
        await memory.remember_many(items=[draft])
    except SubjectBlockedError:
        counts["barred"] += 1
    except InvalidInputError:
        counts["refused"] += 1
    except ConflictError:  # a newer version has come from elsewhere
        counts["existing"] += 1
    else:
        _count(draft, counts)


def _count(draft: Item, counts: Counter[str]) -> None:
    counts["imported"] += 1
    counts["vectors"] += draft.embedding is not None


def _imported(counts: Counter[str]) -> Imported:
    own = {name: counts.pop(name, 0) for name in ("read", "imported", "existing", "vectors")}
    return Imported(**own, skipped=dict(sorted(counts.items())))


def _id(moment: datetime | None, *parts: str) -> UUID:
    """Return a UUIDv7 of the time, the same for the same parts: a second run finds the first's."""
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    digest = int.from_bytes(hashlib.sha256(framed.encode()).digest()[:10])
    milliseconds = 0 if moment is None else max(0, int(_utc(moment).timestamp() * 1000))
    bits = milliseconds << 80 | 0x7 << 76 | (digest >> 62 & 0xFFF) << 64
    return UUID(int=bits | 0b10 << 62 | digest & (1 << 62) - 1)


def _moment(value: object) -> datetime | None:
    """Return a time as mem0 writes it; without a zone it is in UTC."""
    try:
        return _utc(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def _utc(moment: datetime) -> datetime:
    # asyncpg leaves out the zone of "-infinity", and mem0 once did of every time.
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _end_of(day: object) -> datetime | None:
    """Return when a day has passed: mem0 shows a memory through its ``expiration_date``."""
    try:
        last = date.fromisoformat(day) if isinstance(day, str) else None
    except ValueError:
        return None
    return None if last is None else datetime(last.year, last.month, last.day, tzinfo=UTC) + _DAY


_DAY: Final = timedelta(days=1)


def _vector(written: str | None) -> Sequence[float] | None:
    """Return a vector as pgvector writes it, None where it is none that can be kept."""
    try:
        return None if written is None else vector(json.loads(written))
    except InvalidInputError:
        return None


def _quoted(name: str) -> str:
    return '"' + validation.key(name, "table").replace('"', '""') + '"'


async def _fetch(source: Source, statement: str, **values: Any) -> Sequence[Any]:
    """Return the rows of a statement; a failure comes without what the driver says."""
    try:
        if isinstance(source, AsyncConnection):
            return (await source.execute(text(statement), values)).all()
        if isinstance(source, AsyncEngine):
            async with source.connect() as connection:
                return (await connection.execute(text(statement), values)).all()
    except (SQLAlchemyError, OSError) as error:
        failure = translate(error)
    else:
        raise InvalidInputError("source", "must be an AsyncEngine or an AsyncConnection")
    raise failure
