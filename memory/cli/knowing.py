"""Whether anything is known of a tenant or a person: what is misspelt names somebody, too."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import validation
from memory.cli.running import database_url
from memory.database import fetch
from memory.errors import InvalidInputError
from memory.maintenance.walking import opened
from memory.repositories import tenancy
from memory.service import Memory
from memory.types import Receipt, Tombstone

__all__ = ["is_known", "require_known", "tombstones_of", "took"]

_KNOWN: Final = """
select exists (select from memory.records as r where r.tenant_key = $1)
    or exists (select from memory.tombstones as t where t.tenant_key = $1)
    or exists (select from memory.decisions as d where d.tenant_key = $1) as known
"""


async def require_known(tenant_key: str) -> None:
    """Raise ``InvalidInputError`` for a tenant without a record, an erasure or a decision."""
    async with opened(database_url()) as access:
        known = await access.several(partial(_tenant, tenant_key=validation.tenant(tenant_key)))
    if not known:
        raise InvalidInputError("TENANT", "must be one that has a record, an erasure or a decision")


async def _tenant(connection: AsyncConnection, tenant_key: str) -> bool:
    await tenancy.enter(connection, tenant_key)
    return bool((await fetch(connection, _KNOWN, tenant_key))[0].known)


async def is_known(memory: Memory, plan: Receipt, subject_key: str) -> bool:
    """Say whether the plan, or anything else of the person, shows that there is such a person."""
    tenant = plan.tenant_key
    if plan.scope != "subject":  # of some kinds, of which there may be none
        plan = await memory.forget(tenant, subject_key=subject_key, dry_run=True)
    if plan.counts.records or plan.held or plan.deferred:
        return True
    if await memory.decisions(tenant, subject_key=subject_key, limit=1):
        return True
    return any(map(took, await tombstones_of(memory, tenant, subject_key)))


def took(stone: Tombstone) -> bool:
    """Say whether an erasure removed anything."""
    return bool(stone.memories or stone.derived)


async def tombstones_of(memory: Memory, tenant: str, subject_key: str) -> list[Tombstone]:
    """Return all of a person's tombstones, newest first."""
    found: list[Tombstone] = []
    before: int | None = None
    while page := await memory.erasure_history(
        tenant, subject_key=subject_key, before=before, limit=1000
    ):
        found += page
        before = page[-1].seq
    return found
