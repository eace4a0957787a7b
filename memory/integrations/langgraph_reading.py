"""What LangGraph's store interface reads, by the public verbs of a tenant's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from langgraph.store.base import GetOp, Item, ListNamespacesOp, Op, Result, SearchItem, SearchOp

from memory.errors import InvalidInputError
from memory.integrations import langgraph_items as items
from memory.service import TenantMemory
from memory.types import Record, Strategy
from memory.validation import MAX_LIMIT

__all__ = ["Reader"]

_PAGE: Final = MAX_LIMIT

Namespace = tuple[str, ...]


class Reader:
    """Answers gets, searches and listings; what is read lives longer where it asks for that."""

    def __init__(
        self,
        tenant: TenantMemory,
        *,
        kind: str,
        strategy: Strategy | Literal["auto"],
        clock: Callable[[], datetime],
    ) -> None:
        self._tenant = tenant
        self._kind = kind
        self._keys = items.Keys(kind)
        self._strategy = strategy
        self._clock = clock

    async def read(self, ops: Sequence[Op], results: list[Result]) -> None:
        """Put the answers of those operations that read where they belong."""
        gets = {place: op for place, op in enumerate(ops) if isinstance(op, GetOp)}
        found = await self.current(
            self._keys.record_key(op.namespace, op.key) for op in gets.values()
        )
        for place, op in gets.items():
            record = found.get(self._keys.record_key(op.namespace, op.key))
            results[place] = None if record is None else Item(**self._item(record))
        refreshed = [op for op in gets.values() if op.refresh_ttl]
        keys = {self._keys.record_key(op.namespace, op.key) for op in refreshed}
        await self._refresh([record for key, record in found.items() if key in keys])
        for place, other in enumerate(ops):
            if isinstance(other, SearchOp):
                hits = await self._search(other)
                results[place] = [SearchItem(**self._item(r), score=score) for r, score in hits]
                await self._refresh([record for record, _ in hits] if other.refresh_ttl else [])
            elif isinstance(other, ListNamespacesOp):
                results[place] = await self._namespaces(other)

    async def current(self, record_keys: Iterable[str]) -> dict[str, Record]:
        """Return the records that hold these items now, by their keys."""
        wanted = sorted(set(record_keys))
        found: dict[str, Record] = {}
        for start in range(0, len(wanted), _PAGE):
            some = wanted[start : start + _PAGE]
            records = await self._tenant.records(record_keys=some, limit=len(some))
            found |= {record.record_key: record for record in records}
        return found

    async def _search(self, op: SearchOp) -> list[tuple[Record, float | None]]:
        if op.offset < 0:
            raise InvalidInputError("offset", "must not be negative")
        if op.limit <= 0:
            return []
        under: dict[str, Any] = {"where": list(items.where(op.filter or {}, ("value",))) or None}
        if op.namespace_prefix:
            under["key_prefix"] = self._keys.beginning(op.namespace_prefix)
        else:
            # Not by the root of the keys: a search of it all then goes through an index.
            under |= {"kinds": self._kind, "origins": "remembered"}
        last = op.offset + op.limit
        if op.query:
            if last > _PAGE:
                raise InvalidInputError("limit", "must not exceed 1,000 with offset and a query")
            found = await self._tenant.recall(
                text=op.query, limit=last, strategy=self._strategy, **under
            )
            hits = [hit for hit in found.hits if self._keys.split(hit.record.record_key)]
            return [(hit.record, hit.score) for hit in hits[op.offset :]]
        records: list[Record] = []
        after: Record | None = None
        while len(records) < last:
            most = min(_PAGE, last - len(records))
            page = await self._tenant.records(after=after, limit=most, **under)
            records += [record for record in page if self._keys.split(record.record_key)]
            if len(page) < most:
                break
            after = page[-1]
        return [(record, None) for record in records[op.offset :]]

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        starts = [items.literal(c.path) for c in conditions if c.match_type == "prefix"]
        prefix = self._keys.beginning(max(starts, key=len, default=()))
        found: dict[Namespace, None] = {}
        after: str | None = None
        while len(found) < op.offset + op.limit:
            keys = await self._tenant.record_keys(prefix=prefix, after=after, limit=_PAGE)
            for key in keys:
                if after is not None and key <= after:
                    continue
                after = key
                item = self._keys.split(key)
                if item is None:
                    continue
                namespace = item[0]
                cut = namespace if op.max_depth is None else namespace[: op.max_depth]
                matched = all(items.matches(namespace, c.match_type, c.path) for c in conditions)
                if matched:
                    found[cut] = None
                # The rest of it has nothing to add, be it a thousand items or a million.
                deeper = matched and bool(cut) and len(cut) == op.max_depth
                after = self._keys.behind(cut if deeper else namespace, deeper=deeper)
            if len(keys) < _PAGE:
                break
        return list(found)[op.offset : op.offset + op.limit]

    async def _refresh(self, records: Iterable[Record]) -> None:
        """Have items that were read expire as late as if they were put now."""
        lives: dict[float, list[Record]] = {}
        for record in records:
            minutes = record.metadata.get("ttl")
            if isinstance(minutes, int | float) and not isinstance(minutes, bool):
                lives.setdefault(minutes, []).append(record)
        for minutes, some in lives.items():
            try:
                until = items.later(self._clock(), minutes)
            except InvalidInputError:
                continue  # no put of ours wrote it: it fails no reading of the others
            await self._tenant.postpone(record_ids=some, expires_at=until)

    def _item(self, record: Record) -> dict[str, Any]:
        """Return what LangGraph's item of a record has, in the names of its arguments."""
        namespace, key = self._keys.split(record.record_key) or ((), record.record_key)
        value = record.metadata.get("value")
        return {
            "namespace": namespace,
            "key": key,
            "value": dict(value) if isinstance(value, Mapping) else {},
            "created_at": items.created_at(record),
            "updated_at": record.occurred_at,
        }
