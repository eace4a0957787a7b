"""Reading everything held about a person, page by page, as the application's role."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.portability import ExportedDecision, ExportedRecord
from memory.repositories.rows import COLUMNS, LINKS, NAMED, record
from memory.repositories.tenancy import SETTING
from memory.timelines import Purging
from memory.types import Tombstone

__all__ = ["concerning", "decisions", "purges", "records", "tombstones"]

# From every link, inherited ones too: that is what memory.forget reaches from the direct ones, and
# the strays that damage left behind.
_CONCERNING: Final = f"""
{SETTING}
select c.ids from s
cross join lateral (
    with recursive reach (record_id) as (
        select l.record_id from memory.record_subjects as l
        where l.tenant_key = s.t and l.subject_key = $2
        union
        select p.derived_id from reach as r
        cross join lateral (
            select e.derived_id from memory.provenance as e
            where e.tenant_key = s.t and e.source_id = r.record_id offset 0
        ) as p
    )
    select string_agg(uuid_send(r.record_id), '' order by r.record_id) as ids from reach as r
    limit 1
) as c
"""


async def concerning(connection: AsyncConnection, tenant_key: str, subject_key: str) -> bytes:
    """Return the ids of all records that an erasure of the person takes, end to end."""
    rows = await fetch(connection, _CONCERNING, tenant_key, subject_key)
    return bytes(rows[0].ids or b"")


# Reached by the record alone, and not sorted here: by the person, or for the order, the planner
# would take an index in which it then reads all that is the person's, or the tenant's.
_MORE: Final = """
    coalesce((
        select bool_or(not l.inherited) filter (where l.subject_key = $4)
        from memory.record_subjects as l
        where l.tenant_key = s.t and l.record_id = r.record_id
    ), false) as directly,
    array(
        select p.derived_id from memory.provenance as p
        where p.tenant_key = s.t and p.source_id = r.record_id
    ) as derived,
    (
        select jsonb_agg(jsonb_build_array(a.adapter, a.artefact_id)) from memory.artefacts as a
        where a.tenant_key = s.t and a.record_id = r.record_id
    ) as artefacts
"""

_RECORDS: Final = f"""
{SETTING}
select {COLUMNS}, {LINKS}, r.held, case when $5::boolean then r.embedding end as embedding, {_MORE}
from s {NAMED}"""


async def records(
    connection: AsyncConnection,
    tenant_key: str,
    subject_key: str,
    record_ids: Sequence[UUID],
    *,
    vectors: bool,
) -> list[ExportedRecord]:
    """Return the records that are still there, ascending, as the person's."""
    rows = await fetch(
        connection,
        _RECORDS,
        tenant_key,
        list(record_ids),
        len(record_ids),
        subject_key,
        vectors,
    )
    found = [_exported(tenant_key, subject_key, row) for row in rows]
    return sorted(found, key=lambda item: item.record_id)


def _exported(tenant_key: str, subject_key: str, row: AnyRow) -> ExportedRecord:
    return ExportedRecord.of(
        record(tenant_key, row),
        subject_key,
        directly=row.directly,
        embedding=None if row.embedding is None else tuple(row.embedding),
        held=row.held,
        derived=tuple(sorted(row.derived)),
        artefacts=tuple(sorted((name, item) for name, item in _parsed(row.artefacts))),
    )


def _parsed(artefacts: Any) -> Any:
    return json.loads(artefacts) if isinstance(artefacts, str) else artefacts or ()


_STONES: Final = ", ".join(f"t.{item.name}" for item in fields(Tombstone))

_TOMBSTONES: Final = f"""
{SETTING}
select {_STONES} from s
cross join lateral (
    select t.* from memory.tombstones as t
    where t.tenant_key = s.t and t.subject_hash = $2
        and ($3::uuid is null or (t.erasure_id, t.seq) > ($3, $4))
    order by t.erasure_id, t.seq limit $5
) as t
order by t.erasure_id, t.seq
"""


async def tombstones(
    connection: AsyncConnection,
    tenant_key: str,
    subject_hash: str,
    after: Tombstone | None,
    limit: int,
) -> list[Tombstone]:
    """Return the person's tombstones by erasure, from behind ``after``."""
    place = (None, None) if after is None else (after.erasure_id, after.seq)
    rows = await fetch(connection, _TOMBSTONES, tenant_key, subject_hash, *place, limit)
    return [Tombstone(**row._mapping) for row in rows]


_DECISIONS: Final = f"""
{SETTING}
select d.seq, d.subject_hash, d.action, d.at from s
cross join lateral (
    select d.* from memory.decisions as d
    where d.tenant_key = s.t and d.subject_hash = $2 and d.seq > $3
    order by d.seq limit $4
) as d
order by d.seq
"""


async def decisions(
    connection: AsyncConnection, tenant_key: str, subject_hash: str, after: int, limit: int
) -> list[ExportedDecision]:
    """Return the decisions about the person, oldest first, from behind ``after``."""
    rows = await fetch(connection, _DECISIONS, tenant_key, subject_hash, after, limit)
    return [ExportedDecision(**row._mapping) for row in rows]


_PURGES: Final = f"""
{SETTING}
select p.* from s
cross join lateral (
    select e.erasure_id, x.adapter, x.artefacts, x.at, x.settled, x.attempts
    from memory.each($2::uuid[]) as e (erasure_id)
    cross join lateral (
        select
            r.adapter, sum(r.artefacts)::bigint as artefacts, max(r.purged_at) as at,
            true as settled, 0 as attempts
        from memory.purge_receipts as r
        where r.tenant_key = s.t and r.erasure_id = e.erasure_id
        group by r.adapter
        union all
        select d.adapter, count(*), min(d.requested_at), false, max(d.attempts)
        from memory.purges as d
        where d.tenant_key = s.t and d.erasure_id = e.erasure_id
        group by d.adapter offset 0
    ) as x
    limit 1000000
) as p
"""


async def purges(
    connection: AsyncConnection, tenant_key: str, erasure_ids: Sequence[UUID]
) -> list[Purging]:
    """Return what indexes purged and owe of these erasures."""
    rows = await fetch(connection, _PURGES, tenant_key, list(erasure_ids))
    found = [Purging(**row._mapping) for row in rows]
    return sorted(found, key=lambda one: (one.erasure_id, one.adapter, one.settled))


# Reads all that the tenant's indexes owe, page by page, as memory.owing does for each erasure.
_DEBTS: Final = f"""
{SETTING}
select p.* from s
cross join lateral (
    select
        d.erasure_id, d.adapter, count(*) as artefacts, min(d.requested_at) as at,
        false as settled, max(d.attempts) as attempts
    from memory.purges as d
    where d.tenant_key = s.t and d.subject_hashes @> array[$2] and d.erasure_id <> all($3::uuid[])
    group by d.erasure_id, d.adapter
    limit 1000000
) as p
"""


async def debts(
    connection: AsyncConnection, tenant_key: str, subject_hash: str, erasure_ids: Sequence[UUID]
) -> list[Purging]:
    """Return what indexes owe about a person that erasures other than these left."""
    rows = await fetch(connection, _DEBTS, tenant_key, subject_hash, list(erasure_ids))
    return [Purging(**row._mapping) for row in rows]
