"""Stores of the telemetry's tests, and what is observed of them."""

from __future__ import annotations

import pytest

from memory import InMemoryStore, PostgresStore
from observing import observing


@pytest.fixture(params=["in_memory", "postgres"])
def open_store(request):
    """What is observed is above the stores: neither an old server nor a pooler changes it."""
    if request.param == "in_memory":
        store = InMemoryStore()
        return lambda role="app": store
    database = request.getfixturevalue("database")
    return lambda role="app": PostgresStore(database.url(role))


@pytest.fixture
def observed(monkeypatch):
    with observing(monkeypatch) as found:
        yield found
