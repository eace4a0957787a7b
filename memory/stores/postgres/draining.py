"""How the PostgreSQL store has external indexes pay what they owe: lease, ask, settle."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from memory import purging
from memory.database import Access
from memory.ports import DerivedIndex
from memory.repositories import purges

__all__ = ["drain"]

_LEASE: Final = timedelta(minutes=1)
_LEASED_AT_MOST: Final = 10_000
_NOT_CONFIRMED: Final = "NotConfirmed"


async def drain(access: Access, tenant_key: str, indexes: Mapping[str, DerivedIndex]) -> int:
    """Have each index purge what it owes the tenant; return how many debts were settled.

    Each for itself, so that one that fails does not keep the others waiting; and all are awaited,
    whatever one of them meets: a purge left running would settle later.
    """
    ends = await asyncio.gather(
        *(_drained(access, tenant_key, name, index) for name, index in indexes.items()),
        return_exceptions=True,
    )
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    return sum(end for end in ends if isinstance(end, int))


async def _drained(access: Access, tenant_key: str, name: str, index: DerivedIndex) -> int:
    """Purge lease by lease until nothing is owed, or something was not confirmed."""
    settled = 0
    while True:
        leased = await access.single(
            lambda c: purges.lease(c, tenant_key, [name], _LEASED_AT_MOST, _LEASE)
        )
        debts = leased.get(name, {})
        gone = await _asked(access, tenant_key, name, index, list(debts)) if debts else set()
        paid = {artefact_id: debts[artefact_id] for artefact_id in sorted(gone)}
        settled += await _paid(access, tenant_key, name, paid)
        kept = [artefact_id for artefact_id in debts if artefact_id not in gone]
        await _kept(access, tenant_key, name, kept)
        if kept or not debts:
            return settled


async def _asked(
    access: Access, tenant_key: str, name: str, index: DerivedIndex, artefact_ids: list[str]
) -> set[str]:
    """Ask the index; a call that is cancelled meanwhile gives its lease back at once."""
    try:
        return await purging.confirmed(index, artefact_ids)
    except BaseException:
        await asyncio.shield(_kept(access, tenant_key, name, artefact_ids))
        raise


async def _paid(access: Access, tenant_key: str, name: str, debts: Mapping[str, UUID]) -> int:
    if not debts:
        return 0
    return await access.single(lambda c: purges.settle(c, tenant_key, name, debts))


async def _kept(access: Access, tenant_key: str, name: str, artefact_ids: list[str]) -> None:
    if artefact_ids:
        await access.single(
            lambda c: purges.give_back(
                c, tenant_key, name, artefact_ids, _NOT_CONFIRMED, timedelta()
            )
        )
