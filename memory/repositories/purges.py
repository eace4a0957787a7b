"""The debts of external indexes: taken on a lease, settled or given back, one statement each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.ports import Demand
from memory.purging import BATCH, Debt, Lease
from memory.repositories.tenancy import SETTING

__all__ = ["give_back", "lease", "owing", "settle"]

_LEASE: Final = f"""
{SETTING}
select p.artefact_id, p.erasure_id, p.retained, p.attempts, p.leased_at from s
cross join lateral (
    select l.artefact_id, l.erasure_id, l.retained, l.attempts, l.leased_at
    from memory.lease_purges(
        s.t, $2::text, $3::integer, $4::interval, $5::uuid, $6::boolean, $7::boolean, $8::text[],
        $9::timestamptz
    ) as l
    limit $3
) as p
"""


async def lease(
    connection: AsyncConnection,
    tenant_key: str,
    adapter: str,
    demand: Demand,
    duration: timedelta,
    since: datetime | None,
    *,
    lasting: bool,
) -> Lease | None:
    """Take debts of the adapter for a time; None when there is nothing to take.

    ``lasting``: the connection stays open as long as this process, so the lease may end with it.
    """
    token = uuid4()
    people = None if demand.people is None else list(demand.people)
    rows = await fetch(
        connection,
        _LEASE,
        tenant_key,
        adapter,
        BATCH,
        duration,
        token,
        lasting,
        demand.due_only,
        people,
        since,
    )
    if not rows:
        return None
    return Lease(
        token=token,
        debts=tuple(
            Debt(artefact_id=row.artefact_id, erasure_id=row.erasure_id, retained=row.retained)
            for row in rows
        ),
        attempts=rows[0].attempts,
        taken_at=rows[0].leased_at,
    )


_SETTLE: Final = f"""
{SETTING}
select p.settled from s
cross join lateral (
    select memory.settle_purges(s.t, $2::text, $3::text[], $4::uuid[]) as settled limit 1
) as p
"""


async def settle(
    connection: AsyncConnection, tenant_key: str, adapter: str, debts: Sequence[Debt]
) -> int:
    """Clear debts that the index has confirmed, leaving a receipt; return how many were open."""
    ids = [debt.artefact_id for debt in debts]
    erasures = [debt.erasure_id for debt in debts]
    rows = await fetch(connection, _SETTLE, tenant_key, adapter, ids, erasures)
    return int(rows[0].settled)


_GIVE_BACK: Final = f"""
{SETTING}
select p.* from s
cross join lateral (
    select memory.defer_purges(s.t, $2::text, $3::text[], $4::uuid, $5::text, $6::interval) limit 1
) as p
"""


async def give_back(
    connection: AsyncConnection,
    tenant_key: str,
    adapter: str,
    token: UUID,
    artefact_ids: Sequence[str],
    error: str | None,
    wait: timedelta,
) -> None:
    """Return debts after a failure, with its class and when to try again."""
    values = (list(artefact_ids), token, error, wait)
    await fetch(connection, _GIVE_BACK, tenant_key, adapter, *values)


# In no order: for one, the debts would be read by adapter, each from a page of its own. An index on
# subject_hashes would not serve: under row level security no operator of arrays is its condition.
_OWING: Final = f"""
{SETTING}
select p.adapter from s
cross join lateral (
    select distinct p.adapter from memory.purges as p
    where p.tenant_key = s.t and ($2::text[] is null or p.subject_hashes && $2)
    limit 10000
) as p
"""


async def owing(
    connection: AsyncConnection, tenant_key: str, people: Collection[str] | None
) -> tuple[str, ...]:
    """Return the adapters that owe a purge, about anybody or about these people."""
    hashes = None if people is None else list(people)
    rows = await fetch(connection, _OWING, tenant_key, hashes)
    return tuple(sorted(row.adapter for row in rows))
