"""HNSW indexes over vectors, one per length: made, listed, maintained and dropped by an operator.

Recall across a tenant of more than 10,000 candidates uses the index of its vectors' length; without
one it compares every candidate. Recall by person needs none. An index makes each insert of a vector
of that length several times dearer.

Every function takes a URL of the server itself (not of a pooler) or an engine that may open two
connections, as the owner of the schema, and raises ``InstallError`` without pgvector 0.8 or the
privilege and ``StoreUnavailableError`` if the database cannot be reached.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Access, fetch
from memory.errors import ConflictError, InstallError, InvalidInputError
from memory.maintenance.building import running, settled, watched
from memory.maintenance.walking import Portion, Source, opened, unwatched
from memory.repositories import hnsw
from memory.repositories.measuring import measure
from memory.types import VectorIndex

__all__ = ["Maintained", "build_index", "drop_index", "list_indexes", "maintain"]

T = TypeVar("T")

_MOST: Final = {False: 2_000, True: 4_000}
"""Values that pgvector indexes, in full and in half precision."""
_BUILDS: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Maintained:
    """What :func:`maintain` did: the indexes that it rebuilt, and the seconds of both steps.

    >>> from memory import maintenance
    >>> done = await maintenance.indexes.maintain(owner_url)
    >>> done.indexes
    ()
    """

    indexes: tuple[str, ...]
    reindex_seconds: float
    vacuum_seconds: float


async def build_index(
    engine_or_url: Source,
    *,
    dimensions: int,
    halfvec: bool = False,
    m: int = 16,
    ef_construction: int = 64,
    memory: str | None = None,
    progress: Portion = unwatched,
) -> VectorIndex:
    """Build the HNSW index for vectors of one length, without blocking writers, and return it.

    A valid index of that length and precision is kept, whatever its options. What an interrupted
    build has left is dropped and built anew, so calling again resumes. With ``halfvec`` the index
    is half as large and takes up to 4,000 values instead of 2,000; recall ranks what it finds by
    full precision. ``m`` and ``ef_construction`` are pgvector's. ``memory`` is the
    ``maintenance_work_mem`` of the build (``"2GB"``): a graph that does not fit is built much more
    slowly. ``progress`` is called with the server's phase, and tuples done and expected.

    No statistics are kept of the index: they would be vectors in clear. Raises ``ConflictError``
    while another session builds, drops or maintains indexes here.

    >>> from memory import maintenance
    >>> index = await maintenance.indexes.build_index(owner_url, dimensions=8, memory="64MB")
    >>> index.name, index.valid
    ('records_hnsw_8', True)
    """
    _checked(dimensions, halfvec, m, ef_construction)
    async with opened(engine_or_url) as access:
        measured = await access.single(measure)
        if measured.extension is None or not measured.iterative:
            raise InstallError("HNSW indexes need pgvector 0.8 or newer: create extension vector")
        kind = "halfvec" if halfvec else "vector"
        name = f"records_hnsw_{dimensions}{'_half' if halfvec else ''}"
        held = hnsw.indexed("embedding", measured.extension, dimensions, halfvec=halfvec)
        statement = (
            f"create index concurrently {name} on memory.records using hnsw"
            f" (({held}) {measured.extension}.{kind}_cosine_ops)"
            f" with (m = {m}, ef_construction = {ef_construction})"
            f" where embedding_dims = {dimensions}"
        )

        async def build(connection: AsyncConnection) -> VectorIndex:
            for _ in range(_BUILDS):
                await _drop_leftovers(connection)
                index = await _found(connection, dimensions, halfvec)
                if index is None:
                    await watched(access, connection, name, statement, progress)
                    index = await _found(connection, dimensions, halfvec)
                if index is not None and await access.several(settled(index.name)):
                    return index
                # Somebody ran ANALYZE between build and target, on a server that cannot forget.
                await fetch(connection, f"drop index concurrently if exists memory.{name}")
            raise ConflictError("statistics of the index were gathered while it was built")

        return await _alone(access, build, memory)


def _checked(dimensions: int, halfvec: bool, m: int, ef_construction: int) -> None:
    rules = (
        ("dimensions", dimensions, 1, _MOST[halfvec]),
        ("m", m, 2, 100),
        ("ef_construction", ef_construction, max(4, 2 * m if isinstance(m, int) else 4), 1_000),
    )
    for name, value, least, most in rules:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise InvalidInputError(name, f"must be a whole number from {least} to {most:,}")


async def list_indexes(engine_or_url: Source) -> tuple[VectorIndex, ...]:
    """Return the HNSW indexes, also what an interrupted build has left (``valid`` is false).

    >>> from memory import maintenance
    >>> await maintenance.indexes.list_indexes(owner_url)
    ()
    """
    async with opened(engine_or_url) as access:
        return await access.single(hnsw.listed)


async def drop_index(engine_or_url: Source, *, dimensions: int, halfvec: bool = False) -> bool:
    """Drop the index of this length and precision, without blocking writers; false if none is.

    >>> from memory import maintenance
    >>> await maintenance.indexes.drop_index(owner_url, dimensions=8)
    False
    """

    async def drop(connection: AsyncConnection) -> bool:
        index = await _found(connection, dimensions, halfvec)
        if index is not None:
            await fetch(connection, f"drop index concurrently memory.{_quoted(index.name)}")
        return index is not None

    async with opened(engine_or_url) as access:
        return await _alone(access, drop, None)


async def maintain(
    engine_or_url: Source, *, memory: str | None = None, progress: Portion = unwatched
) -> Maintained:
    """Rebuild the indexes without blocking writers, then vacuum the records.

    In this order: vacuum takes an entry out of a graph much more slowly than a rebuild leaves it
    out. For when many records were changed or erased; ``memory`` and ``progress`` are those of
    :func:`build_index`. Raises ``InstallError``, when all is done, for an index with statistics,
    which a server before 18 forgets only with the index: call :func:`build_index`.

    >>> from memory import maintenance
    >>> done = await maintenance.indexes.maintain(owner_url, memory="64MB")
    >>> done.vacuum_seconds > 0
    True
    """
    async with opened(engine_or_url) as access:

        async def work(connection: AsyncConnection) -> Maintained:
            start = time.perf_counter()
            await _drop_leftovers(connection)
            names, copies = [], []
            for index in await hnsw.listed(connection):
                statement = f"reindex index concurrently memory.{_quoted(index.name)}"
                await watched(access, connection, None, statement, progress)
                names.append(index.name)
                if not await access.several(settled(index.name)):
                    copies.append(index.name)
            rebuilt = time.perf_counter()
            progress("vacuuming", 0, 0)
            await fetch(connection, "vacuum memory.records")
            if copies:
                raise InstallError(
                    "statistics of vectors were gathered, and only build_index can remove them"
                    f" from this server: {', '.join(copies)}"
                )
            return Maintained(
                indexes=tuple(names),
                reindex_seconds=rebuilt - start,
                vacuum_seconds=time.perf_counter() - rebuilt,
            )

        return await _alone(access, work, memory)


async def _alone(
    access: Access, work: Callable[[AsyncConnection], Awaitable[T]], memory: str | None
) -> T:
    async def locked(connection: AsyncConnection) -> T:
        async with running(connection, memory):
            return await work(connection)

    return await access.single(locked)


async def _found(connection: AsyncConnection, dimensions: int, halfvec: bool) -> VectorIndex | None:
    for index in await hnsw.listed(connection):
        if index.valid and (index.dimensions, index.halfvec) == (dimensions, halfvec):
            return index
    return None


async def _drop_leftovers(connection: AsyncConnection) -> None:
    """Drop what interrupted builds have left: it serves nobody and costs at each insert."""
    for index in await hnsw.listed(connection):
        if not index.valid:
            await fetch(connection, f"drop index concurrently memory.{_quoted(index.name)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
