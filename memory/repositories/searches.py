"""Finding records by time, in one statement, exact over what is there.

The person comes first: with subjects only their records are read, through the link table. What a
generic plan does with ``= any (subjects)`` and an ``order by distance`` is left no choice: the
candidates are materialised and everything else is probed by its full key. ``memory.each`` stands
for ``unnest``, whose estimate of a parameter makes every generic plan look dear, so that the
server would plan each call anew, which takes longer than running it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.ports import Query
from memory.repositories.conditions import Shape, candidates, values
from memory.repositories.rows import answer, hits
from memory.repositories.tenancy import SETTING
from memory.types import Hit

__all__ = ["by_time", "holds_any"]


@lru_cache
def _by_time(shape: Shape) -> str:
    return answer(f"""
    select
        r.record_id,
        0::float8 as score,
        0 as skipped
    from {candidates(shape, first=4)}
    order by r.occurred_at desc, r.record_id desc
    limit $3""")


async def by_time(connection: AsyncConnection, tenant_key: str, query: Query) -> list[Hit]:
    """Return the newest records by the time they occurred."""
    rows = await fetch(
        connection,
        _by_time(Shape.of(query.filters)),
        tenant_key,
        query.filters.now,
        query.limit,
        *values(query.filters),
    )
    found = hits(tenant_key, rows)
    return sorted(found, key=lambda hit: hit.record.occurred_at, reverse=True)


_HOLDS_ANY: Final = f"""
{SETTING}
select r.record_id from s
cross join lateral (
    select r.record_id from memory.records as r where r.tenant_key = s.t limit 1
) as r
"""


async def holds_any(connection: AsyncConnection, tenant_key: str) -> bool:
    """Say whether the tenant holds any record at all."""
    return bool(await fetch(connection, _HOLDS_ANY, tenant_key))
