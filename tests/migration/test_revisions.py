"""The four checks of pytest-alembic, with the driver of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from pytest_alembic.tests import (
    test_model_definitions_match_ddl,
    test_single_head_revision,
    test_up_down_consistency,
    test_upgrade,
)
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from memory.repositories import tenancy
from servers import Database

__all__ = [
    "test_model_definitions_match_ddl",
    "test_single_head_revision",
    "test_up_down_consistency",
    "test_upgrade",
]


@pytest.fixture
def alembic_config(root: Path) -> dict[str, str]:
    return {"file": str(root / "alembic.ini")}


@pytest.fixture(params=["asyncpg", "psycopg"])
def alembic_engine(
    request: pytest.FixtureRequest, empty: Database
) -> Iterator[Engine | AsyncEngine]:
    url = empty.owner_url.replace("postgresql://", f"postgresql+{request.param}://", 1)
    if request.param == "asyncpg":
        yield create_async_engine(url, poolclass=NullPool)
    else:
        yield create_engine(url, poolclass=NullPool)


def test_the_library_and_the_database_name_the_newest_revision(
    root: Path, database: Database
) -> None:
    newest = ScriptDirectory(str(root / "alembic")).get_current_head()
    engine = create_engine(database.owner_url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.connect() as connection:
        installed = connection.exec_driver_sql("select memory.revision()").scalar_one()
    engine.dispose()
    assert newest == tenancy.HEAD == installed
