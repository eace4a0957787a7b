"""What the tests of the pages and the examples share."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memory import Memory, PostgresStore
from samples import load
from servers import Database, Postgres
from webhost import Host, hosted

load("fastapi_app")  # the pages import it by its name


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).parents[2]


@pytest.fixture
async def host(database: Database) -> AsyncIterator[Host]:
    """The service as the application's role."""
    store = PostgresStore(database.app_url)
    async with hosted(Memory(store, subject_pepper="pepper")) as host:
        yield host


@pytest.fixture(scope="module")
def place(server: Postgres) -> Iterator[Database]:
    """A database for requests that change nothing."""
    with server.migrated() as database:
        yield database


@pytest.fixture
async def door(place: Database) -> AsyncIterator[Host]:
    """The service over that database."""
    store = PostgresStore(place.app_url)
    async with hosted(Memory(store, subject_pepper="pepper")) as host:
        yield host


@pytest.fixture
def everything(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """All that is logged, from DEBUG up."""
    caplog.set_level(logging.DEBUG)
    return caplog
