"""From the arguments of a recall or a listing to the filters of a store, masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memory import validation
from memory.comparisons import comparisons, nested, unnested
from memory.metadata import metadata as checked_metadata
from memory.ports import Filters
from memory.service.base import Base
from memory.types import Operator

__all__ = ["Filtering", "Where"]

Where = Sequence[tuple[str | Sequence[str], Operator, Any]]
"""Comparisons of values in the metadata: path, operator and value of each."""


class Filtering(Base):
    """What is asked for in the metadata is masked as what is stored was."""

    def _filters(
        self,
        subjects: tuple[object, object],
        kinds: object,
        origins: object,
        period: tuple[object, object],
        metadata: tuple[object, object],
        keys: tuple[object, object],
        superseded: object,
    ) -> Filters:
        subject_keys, match = subjects
        start, end = validation.period(*period)
        contained, where = metadata
        record_keys, prefix = keys
        return Filters(
            subject_keys=() if subject_keys is None else validation.subject_keys(subject_keys),
            every_subject=validation.subject_match(match) == "all",
            kinds=() if kinds is None else validation.kinds(kinds),
            origins=() if origins is None else validation.origins(origins),
            since=start,
            until=end,
            metadata=None if contained is None else checked_metadata(contained),
            where=comparisons(where),
            record_keys=() if record_keys is None else validation.record_keys(record_keys),
            key_prefix=None if prefix is None else validation.key(prefix, "key_prefix"),
            superseded=validation.flag(superseded, "include_superseded"),
            now=self._now(),
        )

    async def _masked(self, filters: Filters) -> tuple[Filters, bool]:
        """Mask the metadata, and say whether anything had to be."""
        contained = filters.metadata or {}
        if not contained and not filters.where:
            return filters, False
        asked = [contained, *map(nested, filters.where)]
        first, *others = await self._redacted([("", item) for item in asked])
        masked = replace(
            filters,
            metadata=checked_metadata(first.metadata) if contained else filters.metadata,
            where=tuple(
                unnested(condition, content.metadata)
                for condition, content in zip(filters.where, others, strict=True)
            ),
        )
        return masked, any(content.paths for content in (first, *others))
