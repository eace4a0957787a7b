"""Blocks and legal holds, decided by functions in the database, and the record of decisions."""

from __future__ import annotations

import json
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.ports import Subject
from memory.repositories import erasures
from memory.repositories.tenancy import SETTING
from memory.types import Action, Decision, Receipt, Release

__all__ = ["hold", "newest", "readmit", "release"]


def _deciding(function: str, more: str = "") -> str:
    return f"""
{SETTING}
select d.* from s
cross join lateral (
    select d.* from memory.{function}(
        tenant => s.t, person => $2::text, person_hash => $3::text{more}
    ) as d
    limit 1
) as d
"""


_HOLD: Final = _deciding("hold")
_READMIT: Final = _deciding("readmit")
_RELEASE: Final = _deciding("release", ", sealed => $4::boolean")


async def hold(connection: AsyncConnection, tenant_key: str, subject: Subject) -> Decision:
    """Put everything about the person, now and later, under legal hold."""
    rows = await fetch(connection, _HOLD, tenant_key, subject.key, subject.hash)
    return _decided(rows[0], "hold")


async def readmit(connection: AsyncConnection, tenant_key: str, subject: Subject) -> Decision:
    """Lift the block."""
    rows = await fetch(connection, _READMIT, tenant_key, subject.key, subject.hash)
    return _decided(rows[0], "readmit")


async def release(
    connection: AsyncConnection, tenant_key: str, subject: Subject, *, sealed: bool
) -> Release:
    """Lift the hold and carry out the erasures that waited for it.

    ``sealed`` is that of :func:`memory.repositories.erasures.forget`.
    """
    rows = await fetch(connection, _RELEASE, tenant_key, subject.key, subject.hash, sealed)
    completed = rows[0].receipts
    if isinstance(completed, str):
        completed = json.loads(completed)
    return Release(
        decision=_decided(rows[0], "release"),
        receipts=tuple(_receipt(tenant_key, item) for item in completed),
    )


def _decided(row: AnyRow, action: Action) -> Decision:
    return Decision(seq=row.seq, subject_hash=row.subject_hash, action=action, at=row.at)


def _receipt(tenant_key: str, item: dict[str, Any]) -> Receipt:
    row: Any = SimpleNamespace(**item)
    row.erasure_id = UUID(item["erasure_id"])
    row.erased_at = datetime.fromisoformat(item["erased_at"])
    return erasures.receipt(tenant_key, row, row.reason, row.scope)


def _reading(more: str = "") -> str:
    return f"""
{SETTING}
select d.* from s
cross join lateral (
    select
        d.seq, d.subject_hash, d.action, d.at, d.erasure_id, d.reason, d.scope, d.kinds,
        d.record_id
    from memory.decisions as d
    where d.tenant_key = s.t and d.seq < $2{more} order by d.seq desc limit $3
) as d
order by d.seq desc
"""


_NEWEST: Final = _reading()
_NEWEST_OF: Final = _reading(" and d.subject_hash = $4")


async def newest(
    connection: AsyncConnection,
    tenant_key: str,
    subject_hash: str | None,
    before: int,
    limit: int,
) -> list[Decision]:
    """Return decisions from below ``before``, the newest first; of one person where named."""
    if subject_hash is None:
        found = await fetch(connection, _NEWEST, tenant_key, before, limit)
    else:
        found = await fetch(connection, _NEWEST_OF, tenant_key, before, limit, subject_hash)
    rows = [dict(row._mapping) for row in found]
    return [Decision(**row | {"kinds": tuple((row["kinds"] or "").split())}) for row in rows]
