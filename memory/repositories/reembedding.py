"""Records whose vector is another model's: counting, reading and writing them anew.

Which they are is told by the rows alone, so that work that stopped is taken up where it is.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.repositories.tenancy import SETTING, enter

__all__ = ["Wanted", "count", "first_text", "page", "replace"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The model and length that vectors should have.

    A record without a vector is wanted too with ``missing`` where it has words, and with
    ``wordless`` where it has none. One whose vector names no model is wanted with ``unnamed``: else
    it counts as the model's own where the length is right.
    """

    model: str | None
    dimensions: int
    missing: bool
    unnamed: bool
    wordless: bool

    @property
    def values(self) -> tuple[int, str | None, bool, bool, bool]:
        """The parameters that follow the tenant in each statement."""
        return self.dimensions, self.model, self.missing, self.unnamed, self.wordless


_STALE: Final = """(
    r.embedding_dims <> $2 or r.embedding_model <> $3::text
    or (r.embedding_dims is null and case when r.term_count = 0 then $6::boolean else $4 end)
    or ($5 and r.embedding_dims is not null and r.embedding_model is null and $3 is not null)
)"""

_FIRST: Final = f"""
{SETTING}
select r.text from s
cross join lateral (
    select r.text from memory.records as r
    where r.tenant_key = s.t and (
        r.embedding_dims is not null or case when r.term_count = 0 then $3::boolean else $2 end
    )
    order by r.record_id limit 1
) as r
"""


async def first_text(
    connection: AsyncConnection, tenant_key: str, missing: bool, wordless: bool
) -> str | None:
    """Return the text of one record of the tenant that has a vector, or might get one."""
    rows = await fetch(connection, _FIRST, tenant_key, missing, wordless)
    return rows[0].text if rows else None


_COUNT: Final = f"""
{SETTING}
select n.stale from s
cross join lateral (
    select count(*) as stale from memory.records as r
    where r.tenant_key = s.t and {_STALE} limit 1
) as n
"""


async def count(connection: AsyncConnection, tenant_key: str, wanted: Wanted) -> int:
    """Count the tenant's records that are to be embedded anew."""
    rows = await fetch(connection, _COUNT, tenant_key, *wanted.values)
    return int(rows[0].stale)


_PAGE: Final = f"""
{SETTING}
select r.record_id, r.text, r.created_at from s
cross join lateral (
    select r.record_id, r.text, r.created_at from memory.records as r
    where r.tenant_key = s.t and ($7::uuid is null or r.record_id > $7) and {_STALE}
    order by r.record_id limit $8
) as r
order by r.record_id
"""


async def page(
    connection: AsyncConnection, tenant_key: str, wanted: Wanted, after: UUID | None, limit: int
) -> list[AnyRow]:
    """Return the next records that are to be embedded anew, by id, with their texts."""
    return await fetch(connection, _PAGE, tenant_key, *wanted.values, after, limit)


# In the order of their ids, as whoever erases locks them.
_LOCK: Final = """
select from memory.each($2::uuid[]) as u (id)
cross join lateral (
    select from memory.records as r
    where r.tenant_key = $1 and r.record_id = u.id offset 0 for no key update
) as locked
"""

# By the time of writing too: an id whose record was erased meanwhile may have been given to another
# record, which must not get the vector of the old text.
_REPLACE: Final = f"""
update memory.records as kept
set embedding = ($9::real[])[(found.n - 1) * $2 + 1:found.n * $2], embedding_model = $3
from (
    select u.n::integer as n, r.ctid
    from memory.each($7::uuid[]) with ordinality as u (id, n)
    cross join lateral (
        select r.ctid from memory.records as r
        where r.tenant_key = $1 and r.record_id = u.id
            and r.created_at = ($8::timestamptz[])[u.n] and {_STALE}
        offset 0
    ) as r
) as found
where kept.ctid = found.ctid
returning kept.record_id
"""


async def replace(
    connection: AsyncConnection,
    tenant_key: str,
    wanted: Wanted,
    rows: Sequence[AnyRow],
    vectors: Sequence[Sequence[float]],
) -> int:
    """Write the vectors of those records that are still the ones that were read; say how many.

    Takes a transaction. A record that was erased meanwhile stays erased.
    """
    await enter(connection, tenant_key)
    ids = [row.record_id for row in rows]
    await fetch(connection, _LOCK, tenant_key, ids)
    written = await fetch(
        connection,
        _REPLACE,
        tenant_key,
        *wanted.values,
        ids,
        [row.created_at for row in rows],
        array("f", chain.from_iterable(vectors)),
    )
    return len(written)
