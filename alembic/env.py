"""Run the migrations, online or offline, as one deployer at a time.

The database is ``config.attributes["connection"]`` (a Connection, an Engine or an AsyncEngine), or
the URL in ``sqlalchemy.url``, ``MEMORY_DATABASE_URL`` or ``DATABASE_URL``. It must be the server
itself or a session pooler: the lock belongs to the session.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.schema import SchemaItem

from memory.schema import metadata
from memory.urls import normalize_url

SCHEMA = "memory"
# Made by an operator command, one per vector size, so no model knows them.
OPERATOR_INDEXES = "records_hnsw_"

# "create schema if not exists" wants the privilege to create even where the schema exists.
CREATE_SCHEMA = """
do $$
begin
    if to_regnamespace('memory') is null then
        create schema memory;
    end if;
end
$$
"""

LOCK_KEY = 0x6D656D6F7279  # "memory" in ASCII
LOCK_POLL_SECONDS = 0.2
LOCK_TRIES = 3000  # ten minutes


def include_name(
    name: str | None, kind: str, parent_names: MutableMapping[Any, str | None]
) -> bool:
    """Keep autogenerate to our schema: the rest of the database is the host's."""
    return name == SCHEMA if kind == "schema" else True


def include_object(
    item: SchemaItem, name: str | None, kind: str, reflected: bool, compare_to: SchemaItem | None
) -> bool:
    """Let ``alembic check`` overlook the indexes that operators make."""
    unknown = reflected and compare_to is None
    return not (unknown and kind == "index" and (name or "").startswith(OPERATOR_INDEXES))


def run_migrations(**options: Any) -> None:
    """Configure the context and run it, with the schema in place for the version table."""
    context.configure(
        target_metadata=metadata,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=include_name,
        include_object=include_object,
        **options,
    )
    with context.begin_transaction():
        if not reads_only():
            context.execute(CREATE_SCHEMA)
        context.run_migrations()


def reads_only() -> bool:
    """Tell ``alembic current``, a readiness check, from what may change the database."""
    return bool(context.get_context().opts.get("dont_mutate"))


def migrate(connection: Connection) -> None:
    """Run the migrations on a connection, holding the deployment lock."""
    with deployment_lock(connection):
        run_migrations(connection=connection)


@contextmanager
def deployment_lock(connection: Connection) -> Iterator[None]:
    """Wait for other deployers; Alembic has no lock of its own.

    Polled, because a session that waits inside ``pg_advisory_lock`` holds a snapshot, for which
    ``create index concurrently`` in the session that has the lock waits in turn.
    """
    joined = connection.in_transaction()
    # In the caller's transaction the lock must last until the caller commits.
    function = "pg_try_advisory_xact_lock" if joined else "pg_try_advisory_lock"
    acquire = text(f"select {function}({LOCK_KEY})")
    for _ in range(LOCK_TRIES):
        if connection.scalar(acquire):
            break
        end_poll(connection, joined)
        connection.execute(text(f"select pg_sleep({LOCK_POLL_SECONDS})"))
        end_poll(connection, joined)
    else:
        raise CommandError("another deployment has held the migration lock for ten minutes")
    end_poll(connection, joined)
    try:
        yield
    finally:
        if not joined and not connection.invalidated:
            connection.rollback()
            connection.execute(text(f"select pg_advisory_unlock({LOCK_KEY})"))
            connection.commit()


def end_poll(connection: Connection, joined: bool) -> None:
    """Drop the snapshot, unless the transaction is the caller's."""
    if not joined:
        connection.rollback()


async def migrate_async(engine: AsyncEngine) -> None:
    """Run the migrations through an async driver."""
    try:
        async with engine.connect() as connection:
            await connection.run_sync(migrate)
    finally:
        await engine.dispose()


def run_online() -> None:
    """Find the database and run the migrations on it."""
    given = context.config.attributes.get("connection")
    connectable = engine_from_url() if given is None else given
    if isinstance(connectable, Connection):
        migrate(connectable)
    elif isinstance(connectable, Engine):
        with connectable.connect() as connection:
            migrate(connection)
    elif isinstance(connectable, AsyncEngine):
        run_async_engine(connectable, own=given is None)
    else:
        raise CommandError("attributes['connection'] must be a Connection, Engine or AsyncEngine")


def run_async_engine(engine: AsyncEngine, *, own: bool) -> None:
    """Run on an event loop of our own, in a thread where one is running already."""
    if not in_event_loop():
        asyncio.run(migrate_async(engine))
    elif own:
        with ThreadPoolExecutor(max_workers=1) as pool:
            pool.submit(asyncio.run, migrate_async(engine)).result()
    else:
        raise CommandError(
            "inside an event loop pass a Connection: await connection.run_sync(...), "
            "or await memory.migrate.upgrade(engine)"
        )


def in_event_loop() -> bool:
    """Tell whether ``asyncio.run`` would be refused here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def engine_from_url() -> Engine | AsyncEngine:
    """Make an engine for the configured URL."""
    found = (
        context.config.get_main_option("sqlalchemy.url")
        or os.environ.get("MEMORY_DATABASE_URL")
        or os.environ.get("DATABASE_URL")
    )
    if not found:
        raise CommandError("set MEMORY_DATABASE_URL, DATABASE_URL or sqlalchemy.url")
    url = normalize_url(found)
    if url.drivername == "postgresql+asyncpg":
        return create_async_engine(url, poolclass=NullPool, hide_parameters=True)
    return create_engine(url, poolclass=NullPool, hide_parameters=True)


if context.is_offline_mode():
    # "named" keeps "%" single in the script; no database is needed.
    run_migrations(
        dialect_name="postgresql", literal_binds=True, dialect_opts={"paramstyle": "named"}
    )
else:
    run_online()
