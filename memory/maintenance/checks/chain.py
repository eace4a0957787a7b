"""The chain of tombstones: every digest, every link, its head, and an anchor kept outside."""

from __future__ import annotations

from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Access, fetch
from memory.fingerprint import tombstone_digest
from memory.maintenance.checks.faults import Collector
from memory.maintenance.due import WHOLE, Due, latest
from memory.maintenance.tombstones import chain
from memory.repositories import tenancy
from memory.types import Anchor

__all__ = ["check_chain"]

# In one statement, so that an erasure that commits meanwhile is in all of it or in none.
_HEAD: Final = """
select h.seq, h.digest, t.digest as newest, (
    select y.seq from memory.tombstones as y where y.tenant_key = $1 order by y.seq desc limit 1
) as highest
from (select $1::text as tenant_key) as x
left join memory.chain_heads as h on h.tenant_key = x.tenant_key
left join memory.tombstones as t on t.tenant_key = x.tenant_key and t.seq = h.seq
"""


async def check_chain(
    access: Access, tenant_key: str, anchor: Anchor | None, found: Collector
) -> dict[str, Due]:
    """Follow a tenant's chain; return the newest whole erasure of each person in it."""
    due: dict[str, Due] = {}
    seq, digest = 0, ""
    passed = anchor is None
    async for stone in chain(access, tenant_key):
        found.rows += 1
        if stone.seq != seq + 1:
            found.add("chain_gap", tenant_key, stone.seq - seq - 1, seq + 1)
        elif stone.previous != digest:
            found.add("chain_broken", tenant_key, 1, stone.seq)
        if stone.digest != tombstone_digest(stone):
            found.add("chain_digest", tenant_key, 1, stone.seq)
        if anchor is not None and anchor.seq == stone.seq:
            passed = anchor.digest == stone.digest
        if stone.scope in WHOLE:
            latest(due, stone)
        seq, digest = stone.seq, stone.digest
    found.add("chain_head", tenant_key, int(not await _headed(access, tenant_key)), seq)
    found.add("chain_anchor", tenant_key, int(not passed), anchor.seq if anchor else 0)
    return due


async def _headed(access: Access, tenant_key: str) -> bool:
    async def work(connection: AsyncConnection) -> bool:
        await tenancy.enter(connection, tenant_key)
        row = (await fetch(connection, _HEAD, tenant_key))[0]
        return bool(row.seq == row.highest and row.digest == row.newest)

    return await access.several(work)
