"""Stores of LangGraph's kind over either store, and what the tests call what is in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from memory.integrations.langgraph import ErasableStore

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DANA = ("users", "dana")
MakeStore = Callable[..., ErasableStore]


def keys(found) -> list[str]:
    return [item.key for item in found]
