"""What tests of the PostgreSQL store look for in the database, past the store and its policies."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from typing import Any

import asyncpg
from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from memory import MemoryServiceError
from rawsql import TABLES, Connection

# Each query lists what must not be, in the tenants whose key begins with $1.
_RULES = {
    "derived without a source": """
        select r.tenant_key, r.record_id::text from memory.records as r
        where r.origin = 'derived' and not exists (
            select from memory.provenance as p
            where p.tenant_key = r.tenant_key and p.derived_id = r.record_id)
    """,
    "about nobody": """
        select r.tenant_key, r.record_id::text from memory.records as r
        where not exists (
            select from memory.record_subjects as l
            where l.tenant_key = r.tenant_key and l.record_id = r.record_id)
    """,
    "subject not inherited": """
        select p.tenant_key, p.derived_id::text from memory.provenance as p
        join memory.record_subjects as l
            on l.tenant_key = p.tenant_key and l.record_id = p.source_id
        where not exists (
            select from memory.record_subjects as k
            where k.tenant_key = p.tenant_key and k.record_id = p.derived_id
                and k.subject_key = l.subject_key)
    """,
    "edge to nothing": """
        select p.tenant_key, p.derived_id::text from memory.provenance as p
        where not exists (
            select from memory.records as r
            where r.tenant_key = p.tenant_key and r.record_id = p.source_id)
            or not exists (
            select from memory.records as r
            where r.tenant_key = p.tenant_key and r.record_id = p.derived_id)
    """,
    "link, posting or artefact of nothing": """
        select x.tenant_key, x.record_id::text from (
            select tenant_key, record_id from memory.record_subjects
            union all select tenant_key, record_id from memory.postings
            union all select tenant_key, record_id from memory.artefacts
        ) as x
        where not exists (
            select from memory.records as r
            where r.tenant_key = x.tenant_key and r.record_id = x.record_id)
    """,
    "two current versions": """
        select r.tenant_key, r.record_key from memory.records as r
        where r.superseded_at is null and r.record_key is not null
        group by r.tenant_key, r.record_key having count(*) > 1
    """,
    "registration without its claim": """
        select a.tenant_key, a.record_id::text from memory.artefacts as a where not exists (
            select from memory.artefact_claims as c
            where c.artefact_hash = memory.framed_hash(a.adapter, a.artefact_id)
            and c.claim_hash = memory.framed_hash(
                a.tenant_key, a.adapter, a.artefact_id, a.record_id::text))
    """,
    "owed and registered": """
        select p.tenant_key, a.record_id::text from memory.purges as p
        join memory.artefacts as a using (tenant_key, adapter, artefact_id)
    """,
    "evidence that was not sealed": """
        select e.tenant_key, e.subject_hash from memory.pending_evidence as e
    """,
    "broken chain": """
        select t.tenant_key, t.seq::text from (
            select s.*, lag(s.digest, 1, '') over (
                partition by s.tenant_key order by s.seq) as before
            from memory.tombstones as s
        ) as t where t.previous <> t.before
    """,
}


async def broken_rules(inspector: Connection, tenants: str = "") -> dict[str, list[str]]:
    """Every rule of the schema that the tenants with this prefix break, and where."""
    found = {}
    for rule, query in _RULES.items():
        rows = await inspector.fetch(
            f"select x.* from ({query}) as x where starts_with(x.tenant_key, $1)", tenants
        )
        if rows:
            found[rule] = [str(tuple(row)) for row in rows]
    return found


async def mentions(inspector: Connection, *needles: str) -> dict[str, int]:
    """The tables in which one of the words stands in any column, with the number of rows."""
    found = {}
    for table in TABLES:
        count = await inspector.fetchval(
            f"select count(*) from memory.{table} as t where exists ("
            " select from unnest($1::text[]) as n where position(n in t::text) > 0)",
            list(needles),
        )
        if count:
            found[table] = count
    return found


async def rows_of(inspector: Connection, tenants: str) -> dict[str, int]:
    """The tables that hold rows of tenants with this prefix, with their number."""
    found = {}
    for table in TABLES:
        if table in ("artefact_claims", "installation"):
            continue
        count = await inspector.fetchval(
            f"select count(*) from memory.{table} where starts_with(tenant_key, $1)", tenants
        )
        if count:
            found[table] = count
    return found


async def image(inspector: Connection, tenant: str) -> dict[str, list[str]]:
    """Every row of a tenant, as text: equal before and after what must not touch it."""
    found = {}
    for table in TABLES:
        if table in ("artefact_claims", "installation"):
            continue
        rows = await inspector.fetch(
            f"select t::text as row from memory.{table} as t where tenant_key = $1 order by 1",
            tenant,
        )
        found[table] = [row["row"] for row in rows]
    return found


def record_statements(engine: AsyncEngine) -> list[tuple[str, Sequence[Any]]]:
    """A list that grows with every statement the engine sends and its values, but BEGIN and such.

    Call it before the engine connects.
    """
    sent: list[tuple[str, Sequence[Any]]] = []

    # What SQLAlchemy's cursor prepares asyncpg does not log, and the other way round.
    @event.listens_for(engine.sync_engine, "before_cursor_execute")
    def by_cursor(conn: Any, cursor: Any, statement: str, values: Any, *rest: Any) -> None:
        sent.append((statement, values))

    def by_driver(query: Any) -> None:
        if not query.query.startswith(("begin", "commit", "rollback")):
            sent.append((query.query, query.args))

    @event.listens_for(engine.sync_engine, "connect")
    def connected(dbapi_connection: Any, *rest: Any) -> None:
        dbapi_connection.driver_connection.add_query_logger(by_driver)

    return sent


def leaks(error: BaseException, secrets: Iterable[str]) -> list[str]:
    """What an error that reached a caller shows of the driver or of what was sent."""
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(error)
    found = [secret for secret in secrets if secret in shown]
    for part in _chain(error):
        if not isinstance(part, MemoryServiceError):
            found.append(f"{type(part).__module__}.{type(part).__name__} in the chain")
    if isinstance(error, SQLAlchemyError | asyncpg.PostgresError | asyncpg.InterfaceError):
        found.append("an error of the driver")
    if error.__cause__ is not None or error.__context__ is not None:
        found.append("a cause or a context")
    return found


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    queue: list[Any] = [error]
    while queue:
        part = queue.pop()
        if part is not None and part not in chain:
            chain.append(part)
            queue += [part.__cause__, part.__context__]
    return chain
