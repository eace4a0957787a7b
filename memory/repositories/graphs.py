"""Reading the provenance around an erasure, in two statements however deep it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.graphs import LineageNode
from memory.repositories.tenancy import SETTING

__all__ = ["Around", "around", "nodes"]

_DOWN: Final = """
        select p.derived_id from {name} as r
        cross join lateral (
            select e.derived_id from memory.provenance as e
            where e.tenant_key = s.t and e.source_id = r.record_id offset 0
        ) as p
"""
_UP: Final = """
        select p.source_id from {name} as r
        cross join lateral (
            select e.source_id from memory.provenance as e
            where e.tenant_key = s.t and e.derived_id = r.record_id offset 0
        ) as p
"""

# Every link is a start, inherited ones too: that is what memory.forget reaches from the direct
# ones, and the strays that damage left behind. What is held stays, and all that leads to it. A
# recursive union hands out a level at a time, so that the first rows are the nearest.
_AROUND: Final = f"""
{SETTING}
select w.* from s
cross join lateral (
    with recursive roots (record_id) as materialized (
        select l.record_id from memory.record_subjects as l
        where l.tenant_key = s.t and l.subject_key = $2 and not l.inherited
        union all
        select $3::uuid where $3 is not null
    ),
    down (record_id) as (
        (
            select t.record_id from roots as t
            union all
            select l.record_id from memory.record_subjects as l
            where l.tenant_key = s.t and l.subject_key = $2 and l.inherited
        )
        union
        {_DOWN.format(name="down")}
    ),
    kept (record_id) as (
        select h.record_id from down as d
        cross join lateral (
            select r.record_id from memory.records as r
            where r.tenant_key = s.t and r.record_id = d.record_id and r.held offset 0
        ) as h
        union
        {_UP.format(name="kept")}
    ),
    known (record_id) as (
        select d.record_id from down as d
        union
        {_UP.format(name="known")}
    ),
    gone (record_id) as materialized (
        select d.record_id from down as d
        where d.record_id not in (select k.record_id from kept as k)
    ),
    shown (record_id) as materialized (select k.record_id from known as k limit $4)
    select
        array(select h.record_id from shown as h) as ids,
        array(
            select h.record_id from shown as h
            where h.record_id in (select t.record_id from roots as t)
        ) as roots,
        array(
            select h.record_id from shown as h
            where h.record_id in (select g.record_id from gone as g)
        ) as gone,
        (select count(*) from known) as records,
        (select count(*) from gone) as erased
    limit 1
) as w
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Around:
    """The ids nearest to the roots, which of them are roots and which would go, and the totals."""

    ids: tuple[UUID, ...]
    roots: frozenset[UUID]
    gone: frozenset[UUID]
    records: int
    erased: int


async def around(
    connection: AsyncConnection,
    tenant_key: str,
    subject_key: str | None,
    record_id: UUID | None,
    limit: int,
) -> Around:
    """Return what an erasure of the person or of the record takes, and all it was made from."""
    row = (await fetch(connection, _AROUND, tenant_key, subject_key, record_id, limit))[0]
    return Around(
        ids=tuple(row.ids),
        roots=frozenset(row.roots),
        gone=frozenset(row.gone),
        records=row.records,
        erased=row.erased,
    )


_NODES: Final = f"""
{SETTING}
select r.* from s
cross join lateral (
    select r.record_id, r.origin, r.kind, r.version, r.superseded_at is not null as superseded,
        r.held,
        (
            select count(*) from memory.record_subjects as l
            where l.tenant_key = s.t and l.record_id = r.record_id
        ) as people,
        (
            select count(*) from memory.artefacts as a
            where a.tenant_key = s.t and a.record_id = r.record_id
        ) as artefacts,
        array(
            select p.source_id from memory.provenance as p
            where p.tenant_key = s.t and p.derived_id = r.record_id order by p.source_id
        ) as sources
    from memory.each($2::uuid[]) as u (id)
    cross join lateral (
        select r.* from memory.records as r
        where r.tenant_key = s.t and r.record_id = u.id offset 0
    ) as r
    limit $3
) as r
"""


async def nodes(
    connection: AsyncConnection, tenant_key: str, found: Around
) -> tuple[tuple[LineageNode, ...], tuple[tuple[UUID, UUID], ...]]:
    """Return the records and the edges among them."""
    ids = list(found.ids)
    rows = {
        row.record_id: row for row in await fetch(connection, _NODES, tenant_key, ids, len(ids))
    }
    shown = [rows[item] for item in ids if item in rows]
    made = tuple(
        LineageNode(
            record_id=row.record_id,
            origin=row.origin,
            kind=row.kind,
            version=row.version,
            superseded=row.superseded,
            people=row.people,
            artefacts=row.artefacts,
            held=row.held,
            root=row.record_id in found.roots,
            erased=row.record_id in found.gone,
        )
        for row in shown
    )
    edges = [(source, row.record_id) for row in shown for source in row.sources if source in rows]
    return made, tuple(edges)
