"""The debts of external indexes: taken on a lease, settled or given back, one statement each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.repositories.tenancy import SETTING

__all__ = ["give_back", "lease", "owing", "settle"]

_LEASE: Final = f"""
{SETTING}
select p.adapter, p.artefact_id, p.erasure_id from s
cross join lateral (
    select l.adapter, l.artefact_id, l.erasure_id
    from memory.lease_purges(s.t, $2::text[], $3::integer, $4::interval) as l
    limit $3
) as p
"""


async def lease(
    connection: AsyncConnection,
    tenant_key: str,
    adapters: Sequence[str],
    most: int,
    duration: timedelta,
) -> dict[str, dict[str, UUID]]:
    """Take up to ``most`` debts for a time; return each adapter's artefacts and their erasures."""
    rows = await fetch(connection, _LEASE, tenant_key, list(adapters), most, duration)
    taken: dict[str, dict[str, UUID]] = {}
    for adapter, artefact_id, erasure_id in rows:
        taken.setdefault(adapter, {})[artefact_id] = erasure_id
    return taken


_SETTLE: Final = f"""
{SETTING}
select p.settled from s
cross join lateral (
    select memory.settle_purges(s.t, $2::text, $3::text[], $4::uuid[]) as settled limit 1
) as p
"""


async def settle(
    connection: AsyncConnection, tenant_key: str, adapter: str, debts: Mapping[str, UUID]
) -> int:
    """Clear debts that the index has confirmed, leaving a receipt; return how many were open."""
    rows = await fetch(connection, _SETTLE, tenant_key, adapter, list(debts), list(debts.values()))
    return int(rows[0].settled)


_GIVE_BACK: Final = f"""
{SETTING}
select p.* from s
cross join lateral (
    select memory.defer_purges(s.t, $2::text, $3::text[], $4::text, $5::interval) limit 1
) as p
"""


async def give_back(
    connection: AsyncConnection,
    tenant_key: str,
    adapter: str,
    artefact_ids: Sequence[str],
    error: str,
    wait: timedelta,
) -> None:
    """Return debts after a failure, with its class and when to try again."""
    await fetch(connection, _GIVE_BACK, tenant_key, adapter, list(artefact_ids), error, wait)


_OWING: Final = f"""
{SETTING}
select p.adapter from s
cross join lateral (
    select distinct p.adapter from memory.purges as p
    where p.tenant_key = s.t order by p.adapter limit 10000
) as p
"""


async def owing(connection: AsyncConnection, tenant_key: str) -> tuple[str, ...]:
    """Return the adapters that owe a purge."""
    return tuple(row.adapter for row in await fetch(connection, _OWING, tenant_key))
