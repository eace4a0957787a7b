"""Holds, releases, blocks and readmissions as somebody types them into psql."""

from __future__ import annotations

from rawsql import Connection, acting, hash_of

__all__ = ["actions", "decide", "decided", "held"]


async def decide(connection: Connection, verb: str, tenant: str, person: str) -> dict[str, object]:
    """Call memory.hold, release or readmit in the caller's transaction."""
    row = await connection.fetchrow(
        f"select * from memory.{verb}(tenant => $1, person => $2, person_hash => $3)",
        tenant,
        person,
        hash_of(tenant, person),
    )
    assert row is not None
    return dict(row)


async def decided(connection: Connection, verb: str, tenant: str, person: str) -> dict[str, object]:
    """The same in a transaction of its own."""
    async with acting(connection, tenant):
        return await decide(connection, verb, tenant, person)


async def held(inspector: Connection, tenant: str) -> set[object]:
    rows = await inspector.fetch(
        "select record_id from memory.records where tenant_key = $1 and held", tenant
    )
    return {row["record_id"] for row in rows}


async def actions(inspector: Connection, tenant: str) -> list[str]:
    rows = await inspector.fetch(
        "select action from memory.decisions where tenant_key = $1 order by seq", tenant
    )
    return [row["action"] for row in rows]
