"""LangGraph's store on this memory: a ``BaseStore`` that can be erased; extra ``langgraph``.

    store = ErasableStore(memory.for_tenant("shop"))
    graph = builder.compile(store=store)

An item is a line of versions: its namespace and key are the ``record_key``, its value lies in the
metadata and what is indexed of it is the text. What LangGraph puts is about the people whom
``subjects`` names, so that ``memory.forget`` takes their items, every version, whatever was derived
from them, and the vectors.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal

from memory import validation
from memory.errors import ConflictError, InstallError, InvalidInputError
from memory.integrations import langgraph_items as items
from memory.integrations.langgraph_erasing import Eraser
from memory.metadata import metadata
from memory.service import Item, TenantMemory
from memory.service.base import utc_now
from memory.types import Reason, Record, Strategy

try:
    from langchain_core.embeddings import Embeddings
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )

    from memory.integrations.langgraph_reading import Reader
except ImportError:
    raise InstallError("needs: pip install 'erasable-memory[langgraph]'") from None

__all__ = ["ErasableStore", "LangChainEmbedder", "Subjects"]

Namespace = tuple[str, ...]
Subjects = Callable[[Namespace, str, Mapping[str, Any]], str | Sequence[str]]
"""Says whom an item is about, given its namespace, key and value."""

_READERS: Final = 8
_ATTEMPTS: Final = 10


class LangChainEmbedder:
    """Any LangChain ``Embeddings`` as the embedder of a :class:`memory.Memory`.

    ``model`` names the vector space; without one, vectors are told apart by their length.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from memory import Memory
    >>> from memory.integrations.langgraph import LangChainEmbedder
    >>> embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=8), model="fake")
    >>> len((await embedder.embed(["Dana moved"]))[0])
    8
    >>> service = Memory(embedder=embedder)
    """

    def __init__(self, embeddings: Embeddings, *, model: str | None = None) -> None:
        self._embeddings = embeddings
        self.model = model

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text; see :class:`memory.Embedder`."""
        return await self._embeddings.aembed_documents(list(texts))


class ErasableStore(BaseStore):
    """LangGraph's store interface over a tenant's memory: pass it to ``compile(store=...)``.

    ``subjects`` says whom an item is about: a function of namespace, key and value, or the position
    of the label that names the person (1 for ``("users", "123")``). By default every label with a
    colon does, as in ``("memories", "customer:dana")``, and a namespace without one is refused with
    ``InvalidInputError``: what is about nobody could not be erased with anybody.

    *put* is a new version: at once nothing finds the old value, its vector or its words. Old
    versions stay for ``memory.history`` and go with the item, with the people they were about, or
    by retention. *delete* erases every version by ``memory.forget_record``, with what was derived
    from it, and leaves tombstones with ``reason``; like any erasure it may raise
    ``LegalHoldError`` and ``PartialErasureError``.

    Values are masked before they are written, unless the Memory was made with ``redactor=None``: a
    value comes back with ``[PHONE:****2345]`` where a number stood, in keys too, and a number that
    identifies somebody is a string then. Filters are masked likewise. Namespaces and keys are not:
    use opaque ids in them. A value is JSON of at most 64 KiB, in 30 levels.

    *search* with a query ranks by ``strategy`` (see ``memory.recall``): by meaning where the Memory
    has an embedder, else by words; what does not match is not in the answer. An item has one
    vector, of the texts at ``fields`` (LangGraph's paths; default all of the value) joined by
    lines, and none with ``index=False``. Without a query the newest come first, as in LangGraph's
    own PostgreSQL store. With a query ``offset`` and ``limit`` may not exceed 1,000 together;
    without one everything before ``offset`` is read. Of a filter's operators ``$eq`` and ``$ne``
    compare JSON values, the others numbers with numbers and strings with strings.

    *TTL*: what has expired is hidden at once, as with ``omit_expired``, and erased, every version,
    by :meth:`sweep_ttl`. ``memory.expire`` erases the versions that were put with a TTL only.

    Stores of one tenant share their items if they have the same ``kind``, and none otherwise.

    The synchronous methods are for other threads: in the event loop's own they raise
    ``asyncio.InvalidStateError``. Each call is on its own: one that fails fails no other.

    >>> from langgraph.store.base import GetOp
    >>> from memory import Memory
    >>> from memory.integrations.langgraph import ErasableStore
    >>> shop = Memory(subject_pepper="from a secret manager").for_tenant("shop")
    >>> store = ErasableStore(shop, subjects=1)
    >>> await store.aput(("users", "dana"), "prefs", {"tel": "98450 12345", "lang": "en"})
    >>> (await store.aget(("users", "dana"), "prefs")).value
    {'tel': '[PHONE:****2345]', 'lang': 'en'}
    >>> [item.key for item in await store.asearch(("users",), filter={"lang": "en"})]
    ['prefs']
    >>> (await store.arecord(("users", "dana"), "prefs")).subject_keys
    ('dana',)
    >>> (await shop.forget(subject_key="dana")).counts.memories
    1
    >>> await store.abatch([GetOp(("users", "dana"), "prefs")])
    [None]
    >>> await store.sweep_ttl()
    0
    """

    supports_ttl = True

    def __init__(
        self,
        memory: TenantMemory,
        *,
        subjects: Subjects | int | None = None,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
        kind: str = items.KIND,
        strategy: Strategy | Literal["auto"] = "auto",
        reason: Reason = "operator",
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.tenant = memory
        self._subjects = _subjects(subjects)
        self._fields = tuple(fields)
        self.ttl_config = ttl
        self._kind = validation.kind(kind)
        self._keys = items.Keys(self._kind)
        self._eraser = Eraser(self.tenant, self._keys)
        self._reader = Reader(
            self.tenant,
            kind=self._kind,
            strategy=validation.strategy(strategy) or "auto",
            clock=clock,
        )
        self._reason = validation.reason(reason)
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = asyncio.Semaphore(_READERS)
        # One after the other, in the order they were asked for: of two puts the later one holds.
        self._writing = asyncio.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations from another thread than the event loop's."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if self._loop is None or running is self._loop:
            raise asyncio.InvalidStateError(
                "synchronous calls are for other threads than that of the event loop, once it has"
                " used this store: await the asynchronous methods (aget, aput, ...)"
            )
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads see what was there before, of two puts of a key the last counts.

        Puts are one transaction. Each delete is one of its own, before them, also of a key that is
        put again after it.
        """
        self._loop = asyncio.get_running_loop()
        given = list(ops)
        for op in given:
            if not isinstance(op, GetOp | SearchOp | ListNamespacesOp | PutOp):
                raise ValueError(f"Unknown operation type: {type(op)}")  # noqa: TRY004 - LangGraph's own stores raise it
            validate_op_namespace(op)
        results: list[Result] = [None] * len(given)
        writes = [op for op in given if isinstance(op, PutOp)]
        puts = {(op.namespace, op.key): op for op in writes}
        # Whatever is put after it: what was there before a delete is to be erased.
        deletes = {(op.namespace, op.key): None for op in writes if op.value is None}
        kept = [op for op in puts.values() if op.value is not None]
        drafts = [self.draft(op.namespace, op.key, op.value or {}, op.index) for op in kept]
        if len(writes) < len(given):
            async with self._reading:
                await self._reader.read(given, results)
        if puts:
            async with self._writing:
                lines = [self._keys.record_key(*place) for place in deletes]
                await self._eraser.delete(lines, self._reason)
                await self._put(drafts, [op.ttl for op in kept])
        return results

    async def arecord(self, namespace: Namespace, key: str) -> Record | None:
        """Return the record that holds an item: to derive from it, or to see whom it is about."""
        validate_op_namespace(GetOp(namespace, key))
        wanted = self._keys.record_key(namespace, key)
        return (await self._reader.current([wanted])).get(wanted)

    async def sweep_ttl(self) -> int:
        """Erase what has expired, as ``memory.expire`` does, the tenant's other records included.

        And every old version of an item that is no more: it has expired, or ``memory.expire`` or
        an erasure took its newest version. What a hold keeps is passed by. Reads the versions of
        all items. Returns how many records went, what was derived from them counted; raises
        ``PartialErasureError`` at the end.
        """
        return await self._eraser.sweep()

    async def _put(self, drafts: Sequence[Item], ttls: Sequence[float | None]) -> None:
        if not drafts:
            return
        for attempt in range(1, _ATTEMPTS + 1):
            dated = await self._dated(drafts, ttls)
            try:
                await self.tenant.remember_many(items=dated)
            except ConflictError:  # another process put one of them meanwhile
                if attempt == _ATTEMPTS:
                    raise
            else:
                return

    async def _dated(self, drafts: Sequence[Item], ttls: Sequence[float | None]) -> list[Item]:
        """Return the drafts with the time their items were first put, and when they expire."""
        current = await self._reader.current([draft.record_key or "" for draft in drafts])
        now = self._clock()
        found = []
        for draft, minutes in zip(drafts, ttls, strict=True):
            old = current.get(draft.record_key or "")
            created = now if old is None else items.created_at(old)
            kept = {**(draft.metadata or {}), "created_at": created.isoformat()}
            if minutes is not None:
                kept["ttl"] = minutes
            found.append(
                replace(
                    draft,
                    metadata=kept,
                    occurred_at=now,
                    expires_at=None if minutes is None else items.later(now, minutes),
                )
            )
        return found

    def draft(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
    ) -> Item:
        """Return what a put remembers, for ``remember_many``; times are the caller's to add.

        >>> from memory import Memory
        >>> from memory.integrations.langgraph import ErasableStore
        >>> store = ErasableStore(Memory().for_tenant("shop"), subjects=1)
        >>> store.draft(("users", "dana"), "prefs", {"lang": "en"}).subject_keys
        'dana'
        """
        validate_op_namespace(GetOp(namespace, key))
        checked = metadata(value, "value")
        fields = self._fields if index is None else index or ()
        text = "\n".join(text for path in fields for text in get_text_at_path(checked, path))
        searchable = bool(text.strip())
        if not searchable:
            text = json.dumps(checked, sort_keys=True, ensure_ascii=False)
        return Item(
            text=text,
            subject_keys=self._subjects(namespace, key, checked),
            kind=self._kind,
            metadata={"value": checked},
            record_key=validation.key(self._keys.record_key(namespace, key), "key"),
            searchable=searchable,
        )


def _subjects(given: Subjects | int | None) -> Subjects:
    """Return the function that says whom an item is about."""
    if given is None:
        return _by_colon
    if callable(given):
        return given
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidInputError("subjects", "must be a function, a position or None")

    def by_position(namespace: Namespace, key: str, value: Mapping[str, Any]) -> str:
        if not -len(namespace) <= given < len(namespace):
            raise InvalidInputError("namespace", "must have the label that says whom it is about")
        return namespace[given]

    return by_position


def _by_colon(namespace: Namespace, key: str, value: Mapping[str, Any]) -> list[str]:
    found = [label for label in namespace if ":" in label]
    if not found:
        rule = "must say whom it is about, as in customer:dana, or the store needs subjects="
        raise InvalidInputError("namespace", rule)
    return found
