"""Erasing, and the evidence of it. The work is done by ``memory.forget`` in the database."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.ports import Order
from memory.repositories.tenancy import SETTING
from memory.types import Anchor, Counts, Receipt, Tombstone

__all__ = ["forget", "tombstones"]

_FORGET: Final = f"""
{SETTING}
select f.* from s
cross join lateral (
    select f.* from memory.forget(
        tenant => s.t,
        person => $2::text,
        person_hash => $3::text,
        erasure => $4::uuid,
        why => $5::text,
        narrowed => $6::text[],
        single => $7::uuid,
        dry_run => $8::boolean,
        expected => $9::text,
        sealed => $10::boolean
    ) as f
    limit 1
) as f
"""


async def forget(
    connection: AsyncConnection, tenant_key: str, order: Order, *, sealed: bool
) -> Receipt:
    """Carry the order out in the current transaction.

    ``sealed`` writes the tombstones at once and returns their anchor: right where the commit
    follows, wrong inside a longer transaction.
    """
    subject = order.subject
    rows = await fetch(
        connection,
        _FORGET,
        tenant_key,
        None if subject is None else subject.key,
        None if subject is None else subject.hash,
        order.erasure_id,
        order.reason,
        None if order.kinds is None else list(order.kinds),
        order.record_id,
        order.dry_run,
        order.expect,
        sealed,
    )
    return _receipt(tenant_key, order, rows[0])


def _receipt(tenant_key: str, order: Order, row: AnyRow) -> Receipt:
    kinds = json.loads(row.kinds) if isinstance(row.kinds, str) else row.kinds
    outstanding = () if order.dry_run else tuple(row.outstanding)
    complete = not (order.dry_run or outstanding or row.held)
    anchored = row.anchor_seq is not None
    return Receipt(
        erasure_id=row.erasure_id,
        tenant_key=tenant_key,
        subject_hashes=tuple(row.subject_hashes),
        reason=order.reason,
        scope=order.scope,
        counts=Counts(
            memories=row.memories,
            derived=row.derived,
            provenance_edges=row.provenance_edges,
            artefacts=row.artefacts,
        ),
        kinds=dict(sorted(kinds.items())),
        cascade_depth=row.cascade_depth,
        bystanders=row.bystanders,
        bystander_keys=tuple(row.bystander_keys or ()),
        held=row.held,
        adapters=tuple(row.adapters),
        outstanding=outstanding,
        complete=complete,
        dry_run=order.dry_run,
        closure=row.closure,
        anchor=Anchor(seq=row.anchor_seq, digest=row.anchor_digest) if anchored else None,
        erased_at=row.erased_at,
        completed_at=max(row.erased_at, datetime.now(UTC)) if complete else None,
    )


_COLUMNS: Final = ", ".join(f"t.{item.name}" for item in fields(Tombstone))

_TOMBSTONES: Final = f"""
{SETTING}
select {_COLUMNS} from s
cross join lateral (
    select t.* from memory.tombstones as t
    where t.tenant_key = s.t order by t.seq desc limit $2
) as t
order by t.seq desc
"""


async def tombstones(connection: AsyncConnection, tenant_key: str, limit: int) -> list[Tombstone]:
    """Return the newest tombstones first."""
    rows = await fetch(connection, _TOMBSTONES, tenant_key, limit)
    return [Tombstone(**row._mapping) for row in rows]
