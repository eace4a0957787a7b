"""Moving in from LangGraph's PostgreSQL store and from mem0's table in pgvector.

Both are read page by page, with their times and, where there is one to a text, their vectors, and
written by ``remember_many``: masked, with postings, about somebody. The id of a record is made from
what it came from, and a key that is here already with something as new is left as it is, so that a
run that stopped is run again. What was erased here since then comes back with a second run: erase
the source first. A row that cannot be kept is counted and stops nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory import validation
from memory.errors import InstallError, InvalidInputError
from memory.failures import translate
from memory.integrations import importing_rows as rows
from memory.integrations.importing_writes import write
from memory.service import Item, TenantMemory
from memory.service.base import utc_now

if TYPE_CHECKING:
    from memory.integrations.langgraph import ErasableStore

__all__ = ["Imported", "from_langgraph", "from_mem0"]

Source = AsyncEngine | AsyncConnection

_PAGE: Final = 500
# asyncpg's own come unwrapped while it connects.
_DRIVER_ERRORS: Final = (
    SQLAlchemyError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    OverflowError,
)
_OWN: Final = frozenset({"data", "hash", "text_lemmatized", "user_id", "expiration_date"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What an import did: rows ``read``, records ``imported``, ``vectors`` that came with them.

    ``existing`` counts what was here already, the same or newer. ``skipped`` counts the others by
    reason: ``expired``; ``nobody``, about whom it would be; ``barred``, since somebody is not to be
    remembered; ``changed``, where something else stands here with the same time, and stays;
    ``refused``, for what breaks a limit (a text of over 64 KiB, say) or cannot be read (a date of
    expiry that is none, say).

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
    a source that cannot be read. A row is refused where ``subjects`` raises ``ValueError``;
    anything else that it raises passes through.

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
        select s.prefix, s.key, s.value::text as value, s.ttl_minutes,
            extract(epoch from s.created_at)::text as created_at,
            extract(epoch from s.updated_at)::text as updated_at,
            extract(epoch from s.expires_at)::text as expires_at,
            {one if there[0].found and vectors else "null"} as embedding
        from {place}.store as s
        where (s.prefix, s.key) > (:prefix, :key)
        order by s.prefix, s.key limit {_PAGE}
    """
    counts: Counter[str] = Counter()
    after = {"prefix": "", "key": ""}
    while page := await _fetch(source, statement, **after):
        after = {"prefix": page[-1].prefix, "key": page[-1].key}
        await write(store.tenant, [_item(store, row) for row in page], counts)
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
    while page := await _fetch(source, statement, after=after):
        after = page[-1].id
        await write(memory, [_memory(row, about, kind) for row in page], counts)
    return _imported(counts)


def _item(store: ErasableStore, row: Any) -> Item | str:
    """Return an item as LangGraph would have put it at its time, or why it is skipped."""
    try:
        expires_at = rows.expiry(row.expires_at)
        if expires_at is not None and expires_at <= utc_now():
            return "expired"
        created_at = rows.instant(row.created_at)
        moment = rows.instant(row.updated_at) or created_at
        namespace = tuple(row.prefix.split(".")) if row.prefix else ()
        # The one way from an item to a record, so that both find the same.
        draft = store.draft(namespace, row.key, rows.json_object(row.value))
    except InvalidInputError as error:
        return "nobody" if error.field == "namespace" else "refused"
    except ValueError:
        return "refused"
    kept = dict(draft.metadata or {})
    if created_at is not None:
        kept["created_at"] = created_at.isoformat()
    if row.ttl_minutes is not None:
        kept["ttl"] = row.ttl_minutes
    return replace(
        draft,
        metadata=kept,
        record_id=rows.record_id(moment, draft.record_key or ""),
        occurred_at=moment,
        expires_at=expires_at,
        embedding=rows.vector_of(row.embedding) if draft.searchable else None,
    )


def _memory(
    row: Any, about: Callable[[Mapping[str, Any]], str | Sequence[str] | None], kind: str
) -> Item | str:
    """Return one of mem0's memories as an item, or the reason for which it is skipped."""
    try:
        payload = rows.json_object("{}" if row.payload is None else row.payload)
        expires_at = rows.ending(payload.get("expiration_date"))
        if expires_at is not None and expires_at <= utc_now():
            return "expired"
        moment = rows.moment(payload.get("updated_at")) or rows.moment(payload.get("created_at"))
        subject_keys = about(payload)
    except ValueError:
        return "refused"
    if not subject_keys:
        return "nobody"
    line = f"mem0:{row.id}"
    return Item(
        text=payload.get("data") or "",
        subject_keys=subject_keys,
        kind=kind,
        metadata={key: value for key, value in payload.items() if key not in _OWN},
        record_key=line,
        record_id=rows.record_id(moment, line),
        occurred_at=moment,
        expires_at=expires_at,
        embedding=rows.vector_of(row.vector),
    )


def _user(payload: Mapping[str, Any]) -> str | None:
    found = payload.get("user_id")
    return found if isinstance(found, str) else None


def _imported(counts: Counter[str]) -> Imported:
    own = {name: counts.pop(name, 0) for name in ("read", "imported", "existing", "vectors")}
    return Imported(**own, skipped=dict(sorted(counts.items())))


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
    except _DRIVER_ERRORS as error:
        failure = translate(error)
        if isinstance(failure, InstallError):  # it is not our schema that lacks something
            rule = "must have the tables, with their columns, and its role the right to read them"
            failure = InvalidInputError("source", rule)
    else:
        raise InvalidInputError("source", "must be an AsyncEngine or an AsyncConnection")
    raise failure
