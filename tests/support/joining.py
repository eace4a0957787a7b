"""A host's transaction, and a row of its own in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from memory import Memory
from rawsql import Connection

Joined = Callable[[AsyncConnection], Memory]


async def order(connection: AsyncConnection, tenant: str) -> None:
    await connection.execute(
        text("insert into public.orders values (:tenant, 'paid')"), {"tenant": tenant}
    )


async def orders(superuser: Connection, tenant: str) -> int:
    count: int = await superuser.fetchval(
        "select count(*) from public.orders where tenant = $1", tenant
    )
    return count


class Index:
    """An external index that remembers what it was asked."""

    name = "index"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        self.asked += artefact_ids
        return len(artefact_ids)
