"""The host's environment: its tables, and memory's revisions beside its own.

The host's env.py runs here, not ours, so two deployments at once are the host's to prevent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import MutableMapping
from typing import Any

import sqlalchemy as sa
from alembic import context
from sqlalchemy.ext.asyncio import create_async_engine

from memory.schema import records
from memory.urls import normalize_url

target_metadata = sa.MetaData()
tickets = sa.Table(
    "tickets",
    target_metadata,
    sa.Column("ticket_id", sa.BigInteger(), sa.Identity(), primary_key=True),
    sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
    sa.Column("record_id", sa.UUID()),
    sa.Column("status", sa.Text(), server_default="open", nullable=False),
    # The ticket outlives its memory: an erasure leaves it without one.
    sa.ForeignKeyConstraint(
        ["tenant_key", "record_id"],
        [records.c.tenant_key, records.c.record_id],
        name="ticket_memory",
        ondelete="SET NULL (record_id)",
    ),
)


def include_name(
    name: str | None, kind: str, parent_names: MutableMapping[Any, str | None]
) -> bool:
    """Leave schema memory to its own revisions when autogenerating."""
    return not (kind == "schema" and name == "memory")


def migrate(connection: sa.Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=target_metadata,
        include_schemas=True,
        include_name=include_name,
    )
    with context.begin_transaction():
        context.run_migrations()


async def run() -> None:
    engine = create_async_engine(normalize_url(os.environ["DATABASE_URL"]))
    async with engine.connect() as connection:
        await connection.run_sync(migrate)
    await engine.dispose()


asyncio.run(run())
