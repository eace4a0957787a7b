"""Bring a database to a revision from code: for notebooks and tests.

A deployment runs ``alembic upgrade head`` instead, as a role that owns the schema. The application
has no right to migrate and should not get it.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from memory.errors import InstallError, MemoryServiceError, StoreUnavailableError
from memory.urls import normalize_url

__all__ = ["location", "upgrade"]

# Alembic keeps its current environment in a module, so one process runs one migration at a time.
_alembic_is_global = threading.Lock()
_POLL_SECONDS = 0.05
# SQLSTATE classes: connection exception, insufficient resources, operator intervention
_UNAVAILABLE = frozenset({"08", "53", "57"})


def location() -> Path:
    """Find the migrations: inside the installed package, else beside it in a checkout.

    Raises ``InstallError`` if they are in neither place.

    >>> from memory import migrate
    >>> (migrate.location() / "env.py").is_file()
    True
    """
    package = Path(__file__).parent
    for folder in (package / "migrations", package.parent / "alembic"):
        if (folder / "env.py").is_file():
            return folder
    raise InstallError("the migrations are missing from this installation of erasable-memory")


async def upgrade(engine_or_url: AsyncEngine | URL | str, revision: str = "head") -> None:
    """Migrate the database to ``revision`` as the role of the engine or URL.

    The role must own the schema, or be able to create it. Processes that do this at the same time
    wait for each other. Raises ``InvalidInputError`` for a URL that cannot be used,
    ``StoreUnavailableError`` if the database cannot be reached and ``InstallError`` if it refuses.

    >>> from memory import migrate
    >>> await migrate.upgrade(owner_url)
    """
    if isinstance(engine_or_url, AsyncEngine):
        failure = await _failure(engine_or_url, revision)
    else:
        url = normalize_url(engine_or_url)
        engine = create_async_engine(url, poolclass=NullPool, hide_parameters=True)
        failure = await _failure(engine, revision)
        await engine.dispose()
    # Raised here, so that the driver's error, which quotes the server, is no context.
    if failure is not None:
        raise failure


async def _failure(engine: AsyncEngine, revision: str) -> MemoryServiceError | None:
    """Migrate, and return what went wrong."""
    try:
        await _migrate(engine, revision)
    except OSError:
        return StoreUnavailableError("the database cannot be reached")
    except CommandError as error:
        return InstallError(f"Alembic refuses: {error}")
    except DBAPIError as error:
        sqlstate = getattr(error.orig, "sqlstate", None) or "unknown"
        if sqlstate[:2] in _UNAVAILABLE or error.connection_invalidated:
            return StoreUnavailableError(f"the database ended the migration, SQLSTATE {sqlstate}")
        return InstallError(f"the database refused the migration, SQLSTATE {sqlstate}")
    return None


async def _migrate(engine: AsyncEngine, revision: str) -> None:
    # Polled, as the holder may be on the event loop of another thread.
    while not _alembic_is_global.acquire(blocking=False):  # noqa: ASYNC110 - no event crosses loops
        await asyncio.sleep(_POLL_SECONDS)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_migrate_on, revision)
    finally:
        _alembic_is_global.release()


def _migrate_on(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(location()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
