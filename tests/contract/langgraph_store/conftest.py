"""A store of LangGraph's kind over each store."""

from __future__ import annotations

from typing import Any

import pytest

from langgraphed import MakeStore
from memory import Memory
from memory.integrations.langgraph import ErasableStore


@pytest.fixture
def make(memory_factory) -> MakeStore:
    def made(memory: Memory | None = None, **options: Any) -> ErasableStore:
        tenant = (memory or memory_factory()).for_tenant(options.pop("tenant_key", "acme"))
        return ErasableStore(tenant, **{"subjects": 1, **options})

    return made


@pytest.fixture
def store(make: MakeStore) -> ErasableStore:
    return make()
