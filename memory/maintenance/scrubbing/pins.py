"""What still holds old bytes after everything was done, as far as this role may see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg

from memory.maintenance.scrubbing.relations import Table
from memory.maintenance.scrubbing.session import Session

__all__ = ["find_pins"]

_DEAD: Final = """
select c.relname::text as name, sum(pg_stat_get_dead_tuples(r.oid))::bigint as rows
from pg_class as c
cross join lateral unnest(array[c.oid, c.reltoastrelid]) as r (oid)
where c.oid = any($1::bigint[]::oid[]) and r.oid <> 0
group by c.relname having sum(pg_stat_get_dead_tuples(r.oid)) > 0 order by c.relname
"""
_LOGS_CONTENT: Final = """
select string_agg(s.name, ', ' order by s.name) from (
    values ('log_statement', current_setting('log_statement') in ('mod', 'all')),
    ('log_min_duration_statement', current_setting('log_min_duration_statement') <> '-1'),
    ('log_min_duration_sample', current_setting('log_min_duration_sample') <> '-1'),
    ('log_parameter_max_length_on_error',
        current_setting('log_parameter_max_length_on_error') <> '0'),
    ('auto_explain', current_setting('auto_explain.log_min_duration', true) <> '-1')
) as s (name, logs) where s.logs
"""


async def find_pins(session: Session, tables: Sequence[Table]) -> None:
    """Add what holds old bytes to what is pending."""
    await _find_dead_rows(session, tables)
    await _find_prepared(session)
    await _find_slots(session)
    await _find_copies(session)
    await _find_temporary_files(session)


async def _find_dead_rows(session: Session, tables: Sequence[Table]) -> None:
    """Dead rows that VACUUM had to leave: somebody might still see them."""
    rows = await session.fetch(_DEAD, [table.oid for table in tables])
    if not rows:
        return
    names = ", ".join(f"{row.name} ({row.rows})" for row in rows)
    session.pend(
        "dead_rows",
        f"dead rows that could not be removed: {names}",
        "end what keeps an old snapshot (below, if this role may see it); then run it again",
    )
    sessions = await session.fetch(
        "select a.pid,"
        " coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::int as age"
        " from pg_stat_activity as a where a.pid <> pg_backend_pid()"
        " and (a.backend_xmin is not null or a.backend_xid is not null)"
        " and a.backend_type <> 'walsender' order by a.xact_start"
    )
    if sessions:
        listed = ", ".join(f"{row.pid} ({row.age} s)" for row in sessions[:20])
        session.pend(
            "old_snapshot",
            f"transactions are open in processes {listed}",
            "let them end, or call pg_terminate_backend; then run it again",
        )
    if await session.value(
        "select count(*) from pg_stat_replication where backend_xmin is not null"
    ):
        session.pend(
            "hot_standby_feedback",
            "a standby reports a snapshot of its own",
            "end the standby's long queries, or turn hot_standby_feedback off; run it again",
        )


async def _find_prepared(session: Session) -> None:
    count = await session.value("select count(*) from pg_prepared_xacts")
    if count:
        session.pend(
            "prepared_transaction",
            f"{count} prepared transactions keep their snapshot and their log",
            "COMMIT PREPARED or ROLLBACK PREPARED; then run it again",
        )


async def _find_slots(session: Session) -> None:
    rows = await session.fetch(
        "select slot_name::text as name from pg_replication_slots order by 1"
    )
    if rows:
        session.pend(
            "replication_slot",
            f"slots keep log and row versions: {', '.join(row.name for row in rows)}",
            "let their consumers catch up, or drop them; then run it again",
        )


async def _find_copies(session: Session) -> None:
    if await session.value("select current_setting('archive_mode') <> 'off'"):
        session.pend(
            "archive",
            "archived segments of the log hold what was written before",
            "expire the archive and the base backups that need it",
        )
    if await session.value("select count(*) from pg_stat_replication"):
        session.pend(
            "standby",
            "a standby or a receiver of the log has files of its own",
            "they replay what was done here; their own log and its archive need the same care",
        )
    logs = await session.value(_LOGS_CONTENT)
    if logs:
        session.pend(
            "server_log",
            f"the server's log may quote statements and values: {logs}",
            "turn these off, set log_parameter_max_length to 0, remove the old log files",
        )


async def _find_temporary_files(session: Session) -> None:
    try:
        count = await session.value("select count(*) from pg_ls_tmpdir()")
    except asyncpg.InsufficientPrivilegeError:
        return
    if count:
        session.pend(
            "temporary_files",
            f"{count} temporary files of running or crashed queries",
            "let the queries end; files of a crash go when the server restarts",
        )
