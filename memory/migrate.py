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
from sqlalchemy import URL, Connection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from memory.errors import InstallError
from memory.urls import normalize_url

__all__ = ["location", "upgrade"]

# Alembic keeps its current environment in a module, so one process runs one migration at a time.
_alembic_is_global = threading.Lock()
_POLL_SECONDS = 0.05


def location() -> Path:
    """Find the migrations: inside the installed package, else beside it in a checkout.

    Raises ``InstallError`` if they are in neither place.
    """
    package = Path(__file__).parent
    for folder in (package / "migrations", package.parent / "alembic"):
        if (folder / "env.py").is_file():
            return folder
    raise InstallError("the migrations are missing from this installation of erasable-memory")


async def upgrade(engine_or_url: AsyncEngine | URL | str, revision: str = "head") -> None:
    """Migrate the database to ``revision`` as the role of the engine or URL.

    The role must own the schema, or be able to create it. Processes that do this at the same time
    wait for each other. Raises ``InvalidInputError`` for a URL that cannot be used.
    """
    if isinstance(engine_or_url, AsyncEngine):
        await _upgrade(engine_or_url, revision)
        return
    engine = create_async_engine(
        normalize_url(engine_or_url), poolclass=NullPool, hide_parameters=True
    )
    try:
        await _upgrade(engine, revision)
    finally:
        await engine.dispose()


async def _upgrade(engine: AsyncEngine, revision: str) -> None:
    # Polled, as the holder may be on the event loop of another thread.
    while not _alembic_is_global.acquire(blocking=False):  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_upgrade_on, revision)
    finally:
        _alembic_is_global.release()


def _upgrade_on(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(location()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
