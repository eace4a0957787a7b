"""Changing the embedding model: vectors of another one are replaced, batch by batch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import validation
from memory.database import Access, AnyRow
from memory.embedding import ask, model_of
from memory.errors import InvalidInputError
from memory.maintenance.walking import Portion, Source, opened, tenants, unwatched
from memory.ports import Embedder
from memory.repositories import reembedding
from memory.repositories.reembedding import Wanted

__all__ = ["Reembedded", "reembed"]

_MOST: Final = 1_000
_IDLE: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Reembedded:
    """What :func:`reembed` did: ``records`` got a new vector in ``tenants`` tenants.

    >>> import memory
    >>> await memory.reembed(owner_url, memory.HashingEmbedder())
    Reembedded(records=0, tenants=0)
    """

    records: int
    tenants: int


async def reembed(
    engine_or_url: Source,
    embedder: Embedder,
    *,
    tenant_key: str | None = None,
    missing: bool = False,
    unnamed: bool = False,
    wordless: bool = False,
    batch: int = 256,
    progress: Portion = unwatched,
) -> Reembedded:
    """Embed anew, as the owner of the schema, what another model or length embedded.

    Every version of a record is taken, superseded ones too, of one tenant or of all. ``missing``
    takes records without a vector as well, if they have words: one that was written as not
    ``searchable`` has none and stays as it is. So does what a ``Memory(postings=False)`` wrote,
    and a text without any letter or digit, unless ``wordless`` takes all that have neither.
    ``unnamed`` takes those whose vector names no model and has the right length, which else count
    as the embedder's own. The embedder sees stored text, which
    was redacted, ``batch`` texts (1 to 1,000) at a time and outside any transaction; where it has
    no ``dimensions``, it is asked for one vector first, to learn them. ``progress`` is called with
    ``"records"``, how many are done and how many there were; ``memory.cli.bars.bar`` draws it.

    The store may be in use. A record that is erased while its vector is made stays erased. Each
    batch is a transaction: what was interrupted is called again, and goes on from there. Until it
    is done, recall compares only what the embedder of the asking process embedded, and says how
    many it skipped; let the writers use the new embedder first. Afterwards, no record has its old
    vector; its bytes lie in the free space of the table until :func:`maintain` and new rows have
    used it. Vectors of another length want an HNSW index of their own.

    Raises ``InvalidInputError`` for a wrong answer of the embedder, and what the embedder raises;
    nothing of that batch is stored then. ``InstallError`` for a role that is not the owner's.

    >>> import memory
    >>> done = await memory.reembed(owner_url, memory.HashingEmbedder(), missing=True)
    >>> done.records
    0
    """
    if not isinstance(batch, int) or isinstance(batch, bool) or not 1 <= batch <= _MOST:
        raise InvalidInputError("batch", f"must be a whole number from 1 to {_MOST:,}")
    one = None if tenant_key is None else validation.tenant(tenant_key)
    async with opened(engine_or_url) as access:
        model = model_of(embedder)
        dimensions = await _dimensions(access, embedder, one, missing, wordless)
        if dimensions is None:
            return Reembedded(records=0, tenants=0)
        wanted = Wanted(
            model=model,
            dimensions=dimensions,
            missing=missing,
            unnamed=unnamed,
            wordless=wordless,
        )
        work = _Work(access=access, embedder=embedder, wanted=wanted, batch=batch)
        counted = partial(reembedding.count, wanted=wanted)
        async for key in _tenants(access, one):
            work.total += await access.single(partial(counted, tenant_key=key))
        async for key in _tenants(access, one):
            await work.tenant(key, progress)
    return Reembedded(records=work.done, tenants=work.tenants)


async def _tenants(access: Access, one: str | None) -> AsyncIterator[str]:
    if one is not None:
        yield one
        return
    async for tenant_key in tenants(access):
        yield tenant_key


async def _dimensions(
    access: Access, embedder: Embedder, one: str | None, missing: bool, wordless: bool
) -> int | None:
    """Return the length of the embedder's vectors; None where there is no text to embed."""
    said = getattr(embedder, "dimensions", None)
    first = partial(reembedding.first_text, missing=missing, wordless=wordless)
    async for key in _tenants(access, one):
        text = await access.single(partial(first, tenant_key=key))
        if text is not None:
            if isinstance(said, int):
                return said
            (vector,), _ = await ask(embedder, [text])
            return len(vector)
    return None


@dataclass(kw_only=True)
class _Work:
    """The records of one tenant after the other, and how many are done."""

    access: Access
    embedder: Embedder
    wanted: Wanted
    batch: int
    total: int = 0
    done: int = 0
    tenants: int = 0

    async def tenant(self, tenant_key: str, progress: Portion) -> None:
        before, idle = self.done, 0
        # Again, for what was written meanwhile under a smaller id; but not for ever, where a
        # record is changed each time.
        while idle < _IDLE:
            start = self.done
            if not await self._all(tenant_key, progress):
                break
            idle = 0 if self.done > start else idle + 1
        self.tenants += self.done > before

    async def _all(self, tenant_key: str, progress: Portion) -> bool:
        """Go through the tenant once; say whether there was anything to embed."""
        after: UUID | None = None
        while True:
            rows = await self.access.single(partial(self._page, tenant_key=tenant_key, after=after))
            if not rows:
                return after is not None
            after = rows[-1].record_id
            self.done += await self._batch(tenant_key, rows)
            progress("records", self.done, max(self.done, self.total))

    async def _page(
        self, connection: AsyncConnection, tenant_key: str, after: UUID | None
    ) -> list[AnyRow]:
        return await reembedding.page(connection, tenant_key, self.wanted, after, self.batch)

    async def _batch(self, tenant_key: str, rows: list[AnyRow]) -> int:
        vectors, model = await ask(self.embedder, [row.text for row in rows])
        if len(vectors[0]) != self.wanted.dimensions or model != self.wanted.model:
            raise InvalidInputError("embedder", "must keep its model and length")
        return await self.access.several(
            lambda c: reembedding.replace(c, tenant_key, self.wanted, rows, vectors)
        )
