"""Planner statistics of content: none are gathered, unless somebody raised a target by hand."""

from __future__ import annotations

import time

from memory.maintenance.scrubbing.report import ScrubStep
from memory.maintenance.scrubbing.session import FORBIDDEN, Session

__all__ = ["clear_statistics"]

# Columns that hold content, and every expression of an index on one of our tables.
_COLUMNS = """
select c.oid::bigint as oid, a.attnum::int as attnum,
    c.relname::text as relation, a.attname::text as column_name, c.relkind::text as kind,
    format('%I.%I', n.nspname, c.relname) as name, coalesce(a.attstattarget, -1) as target
from pg_attribute as a
join pg_class as c on c.oid = a.attrelid
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = 'memory' and not a.attisdropped and a.attnum > 0 and (
    (c.relkind = 'i' and exists (
        select from pg_index as i where i.indexrelid = c.oid and i.indexprs is not null
    ))
    or exists (
        select from memory.manifest() as m
        where m.kind = 'statistics' and m.name = c.relname || '.' || a.attname
    )
)
order by c.relname, a.attnum
"""


async def clear_statistics(session: Session) -> None:
    """Remove samples of content, and set the target that let them be taken back to nought."""
    columns = await session.fetch(_COLUMNS)
    for row in columns:
        if row.target != 0:
            relation = "index" if row.kind == "i" else "table"
            column = row.attnum if row.kind == "i" else f'"{row.column_name}"'
            await session.step(
                "statistics_target",
                f"{row.relation}.{row.column_name}",
                f"alter {relation} {row.name} alter column {column} set statistics 0",
                lock="SHARE UPDATE EXCLUSIVE",
            )
    started = time.monotonic()
    cleared = await _cleared(session, [(row.oid, row.attnum) for row in columns])
    if cleared is not None:
        detail = f"{cleared} samples removed"
    elif await session.value("select current_setting('server_version_num')::int >= 180000"):
        await session.fetch(
            "select pg_clear_attribute_stats(schemaname => 'memory', relname => s.relname,"
            " attname => s.attname, inherited => false)"
            " from unnest($1::text[], $2::text[]) as s (relname, attname)",
            [row.relation for row in columns],
            [row.column_name for row in columns],
        )
        detail = "cleared without reading"
    else:
        detail = "this role may not read or clear samples"
        session.pend(
            "statistics",
            "whether samples of content were ever taken cannot be read by this role",
            "run the scrub as a superuser; from PostgreSQL 18 on, as the owner",
        )
    session.report(
        ScrubStep(
            action="clear_statistics",
            target="pg_statistic",
            lock="ROW EXCLUSIVE",
            seconds=time.monotonic() - started,
            detail=detail,
        )
    )


async def _cleared(session: Session, columns: list[tuple[int, int]]) -> int | None:
    """Delete the samples as a superuser; None for any other role."""
    if not await session.value("select rolsuper from pg_roles where rolname = current_user"):
        return None
    rows = await session.fetch(
        "delete from pg_statistic as s using unnest($1::bigint[], $2::int[]) as u (oid, number)"
        " where s.starelid = u.oid::oid and s.staattnum = u.number::int2 returning 1",
        [oid for oid, _ in columns],
        [number for _, number in columns],
    )
    if rows:
        # The rows are copies of content themselves; the table is small.
        state = await session.attempt("vacuum (full) pg_catalog.pg_statistic")
        if state not in {None, FORBIDDEN}:
            session.pend("locked", "rewrite pg_statistic", "run it again")
    return len(rows)
