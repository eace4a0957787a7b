"""The tables and indexes of the schema: what is vacuumed, rebuilt and rewritten."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.errors import InstallError
from memory.maintenance.scrubbing.session import Session

__all__ = ["KEPT", "Table", "drop_leftovers", "find_tables", "rebuild", "rewrite", "vacuum"]

KEPT: Final = frozenset(
    {
        "alembic_version",
        "chain_heads",
        "decisions",
        "installation",
        "purge_receipts",
        "tenant_counts",
        "tenants",
        "tombstones",
    }
)
"""Tables from which nothing about a person is ever deleted: evidence, and what names nobody."""

_LEFTOVER: Final = re.compile(r"_cc(?:new|old)\d*$")
_BLOCK: Final = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """``name`` is qualified and quoted, ``erased`` whether erasures delete from it.

    ``pages`` are those of the table's file, ``long_pages`` those of its values kept out of line.
    """

    name: str
    plain: str
    oid: int
    erased: bool
    pages: int
    long_pages: int


async def find_tables(session: Session) -> list[Table]:
    """List the tables of the schema.

    Raises ``InstallError`` if there are none, or none that this role may vacuum: the server would
    only warn, and do nothing.
    """
    rows = await session.fetch(
        "select c.oid::bigint as oid, c.relname::text as plain,"
        " format('%I.%I', n.nspname, c.relname) as name,"
        " pg_has_role(c.relowner, 'usage') as mine, pg_relation_size(c.oid) / 8192 as pages,"
        " coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) / 8192 as long_pages"
        " from pg_class as c join pg_namespace as n on n.oid = c.relnamespace"
        " where n.nspname = 'memory' and c.relkind in ('r', 'm') order by c.relname"
    )
    if not rows:
        raise InstallError("there is no schema memory in this database: run alembic upgrade head")
    if not all(row.mine for row in rows):
        raise InstallError("scrub runs as the owner of the tables or as a superuser")
    return [
        Table(
            name=row.name,
            plain=row.plain,
            oid=row.oid,
            erased=row.plain not in KEPT,
            pages=row.pages,
            long_pages=row.long_pages,
        )
        for row in rows
    ]


async def drop_leftovers(session: Session) -> None:
    """Drop the half-built indexes that a cancelled rebuild leaves."""
    rows = await session.fetch(
        "select format('%I.%I', n.nspname, c.relname) as name, c.relname::text as plain"
        " from pg_index as i join pg_class as c on c.oid = i.indexrelid"
        " join pg_namespace as n on n.oid = c.relnamespace"
        " where n.nspname = 'memory' and not i.indisvalid"
    )
    for row in rows:
        if _LEFTOVER.search(row.plain):
            await session.step(
                "drop",
                row.plain,
                f"drop index concurrently if exists {row.name}",
                lock="SHARE UPDATE EXCLUSIVE",
            )


async def vacuum(session: Session, tables: Sequence[Table], *, sized: bool = False) -> None:
    """Free dead rows and index entries, and cut off empty ends of files; report sizes if wanted.

    Without ``index_cleanup on`` the server leaves the entries of a few dead rows where they are.
    An HNSW index overwrites the vector of an entry that it frees with zeros: no rebuild is needed.
    """
    for table in tables:
        await session.step(
            "vacuum",
            table.plain,
            f"vacuum (index_cleanup on, truncate on) {table.name}",
            lock="SHARE UPDATE EXCLUSIVE",
            size=f"pg_total_relation_size({table.oid}::oid::regclass)" if sized else None,
        )


async def rebuild(session: Session, tables: Sequence[Table]) -> None:
    """Build the indexes anew beside the old ones, whose files then go."""
    rows = await session.fetch(
        "select format('%I.%I', n.nspname, c.relname) as name, c.relname::text as plain,"
        " quote_literal(format('%I.%I', n.nspname, c.relname)) as literal,"
        " a.amname::text as method, pg_relation_size(c.oid) as size"
        " from pg_index as i join pg_class as c on c.oid = i.indexrelid"
        " join pg_namespace as n on n.oid = c.relnamespace join pg_am as a on a.oid = c.relam"
        " where i.indrelid = any($1::bigint[]::oid[]) and i.indisvalid order by c.relname",
        [table.oid for table in tables],
    )
    waiting = False
    for row in rows:
        # A btree of one block has held no key since it was built; HNSW: see vacuum.
        if row.method == "hnsw" or (row.method == "btree" and row.size <= _BLOCK):
            continue
        done = await session.step(
            "reindex",
            row.plain,
            f"reindex index concurrently {row.name}",
            lock="SHARE UPDATE EXCLUSIVE",
            # By name: it is another relation afterwards.
            size=f"pg_relation_size({row.literal}::regclass)",
            # It waits for every older snapshot: one that kept the last index waits for all.
            once=waiting,
        )
        waiting = waiting or not done
    if waiting:
        await drop_leftovers(session)


async def rewrite(session: Session, tables: Sequence[Table]) -> list[Table]:
    """Write tables and all their indexes anew, and return them; nobody uses one meanwhile."""
    return [
        table
        for table in tables
        if await session.step(
            "rewrite",
            table.plain,
            f"vacuum (full) {table.name}",
            lock="ACCESS EXCLUSIVE",
            size=f"pg_total_relation_size({table.oid}::oid::regclass)",
        )
    ]
