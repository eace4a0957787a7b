"""The tenant of a transaction, and what the installation knows about itself."""

from __future__ import annotations

from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import fingerprint
from memory.database import fetch

__all__ = ["HEAD", "SETTING", "claim", "enter", "problems", "recorded"]

HEAD: Final = "memory_0013"
"""The revision this version of the library is written for."""

SETTING: Final = "with s as materialized (select set_config('app.current_tenant', $1, true) as t)"
"""Sets the tenant in the statement that reads.

Only what is read by ``from s cross join lateral (... where tenant_key = s.t ... limit n)`` may
follow: a lateral with a limit is never flattened, so the setting is there before the policies look
at it. Other forms returned nothing, or the rows of the previous tenant.
"""


async def enter(connection: AsyncConnection, tenant_key: str) -> None:
    """Set the tenant for the rest of the transaction."""
    await fetch(connection, "select set_config('app.current_tenant', $1, true)", tenant_key)


async def claim(connection: AsyncConnection, pepper_check: str) -> bool:
    """Record the pepper's check value; false when another one is recorded."""
    rows = await fetch(connection, "select memory.claim_installation($1)", pepper_check)
    return bool(rows[0][0])


async def recorded(connection: AsyncConnection, pepper_check: str) -> bool:
    """Say whether this is the check value that the installation recorded."""
    rows = await fetch(connection, "select memory.pepper_matches($1)", pepper_check)
    return bool(rows[0][0])


_PROBLEMS: Final = """
select
    memory.revision(),
    memory.pepper_matches($1),
    memory.pepper_matches($2),
    (
        select r.rolsuper or r.rolbypassrls from pg_catalog.pg_roles as r
        where r.rolname = current_user
    )
"""


async def problems(connection: AsyncConnection, pepper_check: str) -> tuple[str, ...]:
    """Say in words what keeps this process from serving; nothing when it is ready."""
    without = fingerprint.pepper_check(b"")
    found_row = (await fetch(connection, _PROBLEMS, pepper_check, without))[0]
    revision, pepper, first_without, unbound = found_row
    found = []
    if revision != HEAD:
        found.append(f"the schema is not at revision {HEAD}: run alembic upgrade head")
    if pepper is False:
        found.append(fingerprint.pepper_problem(pepper_check, first_without=bool(first_without)))
    if unbound:
        found.append("the role bypasses row level security: connect as an unprivileged one")
    return tuple(found)
