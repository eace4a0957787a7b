"""A store in this process: the default, for trying things and for tests."""

from __future__ import annotations

from memory.stores.in_memory.store import InMemoryStore

__all__ = ["InMemoryStore"]
