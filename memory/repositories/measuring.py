"""What the server can do for recall, read from its catalogue in one statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.repositories import hnsw
from memory.types import Capabilities, VectorIndex

__all__ = ["Measured", "measure"]

# The first pgvector whose HNSW scans go on until enough rows have passed the filters.
_ITERATIVE: Final = (0, 8)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """``extension`` is the quoted schema of pgvector, None without it.

    ``indexes`` are the HNSW indexes that a search may use, by the length of the vectors; none are
    where its scans are not ``iterative``.
    """

    capabilities: Capabilities
    extension: str | None
    iterative: bool
    indexes: Mapping[int, VectorIndex]


_MEASURE: Final = f"""
select m.*, {hnsw.COLUMNS}
from (
    select
        current_setting('server_version') as server,
        e.extversion as version,
        case when has_schema_privilege(n.oid, 'usage') then quote_ident(n.nspname) end as extension
    from (values ('vector')) as wanted (name)
    left join pg_catalog.pg_extension as e on e.extname = wanted.name
    left join pg_catalog.pg_namespace as n on n.oid = e.extnamespace
) as m
left join ({hnsw.FROM}) on true
"""


async def measure(connection: AsyncConnection) -> Measured:
    """Return what the server can do."""
    rows = await fetch(connection, _MEASURE)
    first = rows[0]
    usable: dict[int, VectorIndex] = {}
    iterative = first.extension is not None and _parsed(first.version) >= _ITERATIVE
    if iterative:
        for index in hnsw.indexes(rows):
            if index.valid:
                # In full precision first, where there are both.
                usable.setdefault(index.dimensions, index)
    capabilities = Capabilities(
        store="postgres",
        vector_search="in-process" if first.extension is None else "pgvector",
        pgvector_version=first.version,
        server_version=first.server,
        hnsw_dimensions=tuple(usable),
    )
    return Measured(
        capabilities=capabilities,
        extension=first.extension,
        iterative=iterative,
        indexes=usable,
    )


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
