"""Erasing, and the evidence of it. The work is done by ``memory.forget`` in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.ports import Order, Sweep
from memory.repositories.tenancy import SETTING
from memory.types import Anchor, Counts, Reason, Receipt, Scope, Tombstone

__all__ = ["Swept", "forget", "receipt", "sweep", "tombstones"]

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
        block => $10::boolean,
        sealed => $11::boolean
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
        order.block,
        sealed,
    )
    return receipt(tenant_key, rows[0], order.reason, order.scope, dry_run=order.dry_run)


def receipt(
    tenant_key: str, row: AnyRow, reason: Reason, scope: Scope, *, dry_run: bool = False
) -> Receipt:
    """Return the receipt of a row that ``memory.forget`` returned."""
    outstanding = () if dry_run else tuple(row.outstanding)
    complete = not (dry_run or outstanding or row.held or row.deferred)
    return Receipt(
        erasure_id=row.erasure_id,
        tenant_key=tenant_key,
        subject_hashes=tuple(row.subject_hashes),
        reason=reason,
        scope=scope,
        counts=_counts(row),
        kinds=dict(sorted(_kinds(row).items())),
        cascade_depth=row.cascade_depth,
        bystanders=row.bystanders,
        bystander_keys=tuple(row.bystander_keys or ()),
        held=row.held,
        deferred=row.deferred,
        adapters=tuple(row.adapters),
        outstanding=outstanding,
        complete=complete,
        dry_run=dry_run,
        closure=row.closure,
        anchor=_anchor(row),
        erased_at=row.erased_at,
        completed_at=max(row.erased_at, datetime.now(UTC)) if complete else None,
    )


def _counts(row: AnyRow) -> Counts:
    return Counts(
        memories=row.memories,
        derived=row.derived,
        provenance_edges=row.provenance_edges,
        artefacts=row.artefacts,
    )


def _kinds(row: AnyRow) -> dict[str, int]:
    found: dict[str, int] = json.loads(row.kinds) if isinstance(row.kinds, str) else row.kinds
    return found


def _anchor(row: AnyRow) -> Anchor | None:
    return None if row.anchor_seq is None else Anchor(seq=row.anchor_seq, digest=row.anchor_digest)


_SWEEP: Final = f"""
{SETTING}
select b.* from s
cross join lateral (
    select b.* from memory.sweep(
        tenant => s.t,
        reach => $2::text,
        confirm => $1,
        due => $3::timestamptz,
        narrowed => $4::text[],
        before => $5::timestamptz,
        erasure => $6::uuid,
        why => $7::text,
        most => $8::integer,
        after => $9::text,
        sealed => $10::boolean
    ) as b
    limit 1
) as b
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Swept:
    """What one batch of a sweep erased, and where the next one goes on; None at the end."""

    next: str | None
    counts: Counts
    kinds: Mapping[str, int]
    cascade_depth: int
    held: int
    adapters: tuple[str, ...]
    anchor: Anchor | None


async def sweep(
    connection: AsyncConnection,
    tenant_key: str,
    order: Sweep,
    before: datetime | None,
    after: str | None,
    *,
    sealed: bool,
) -> Swept:
    """Erase the batch behind ``after`` in the current transaction; ``sealed`` as in `forget`."""
    rows = await fetch(
        connection,
        _SWEEP,
        tenant_key,
        order.scope,
        order.now,
        None if order.kinds is None else list(order.kinds),
        before,
        order.erasure_id,
        order.reason,
        order.batch,
        after,
        sealed,
    )
    row = rows[0]
    return Swept(
        next=row.next,
        counts=_counts(row),
        kinds=_kinds(row),
        cascade_depth=row.cascade_depth,
        held=row.held,
        adapters=tuple(row.adapters or ()),
        anchor=_anchor(row),
    )


_COLUMNS: Final = ", ".join(f"t.{item.name}" for item in fields(Tombstone))

_TOMBSTONES: Final = f"""
{SETTING}
select {_COLUMNS} from s
cross join lateral (
    select t.* from memory.tombstones as t
    where t.tenant_key = s.t and t.seq < $2 order by t.seq desc limit $3
) as t
order by t.seq desc
"""

# Sorted behind a fence: for the order, the planner would read the tenant's whole chain.
_TOMBSTONES_OF: Final = f"""
{SETTING}
select {_COLUMNS} from s
cross join lateral (
    select t.* from (
        select t.* from memory.tombstones as t
        where t.tenant_key = s.t and t.subject_hash = $4 offset 0
    ) as t
    where t.seq < $2 order by t.seq desc limit $3
) as t
order by t.seq desc
"""


async def tombstones(
    connection: AsyncConnection,
    tenant_key: str,
    subject_hash: str | None,
    before: int,
    limit: int,
) -> list[Tombstone]:
    """Return tombstones from below ``before``, the newest first; of one person where named."""
    if subject_hash is None:
        rows = await fetch(connection, _TOMBSTONES, tenant_key, before, limit)
    else:
        rows = await fetch(connection, _TOMBSTONES_OF, tenant_key, before, limit, subject_hash)
    return [Tombstone(**row._mapping) for row in rows]
