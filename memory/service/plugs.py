"""Whether what a host plugged in has the methods it needs: asked once, when it is plugged in."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

from memory import validation
from memory.errors import InvalidInputError
from memory.ports import DerivedIndex, Store

__all__ = ["by_name", "check", "check_store"]

_STORE = tuple(name for name, _ in inspect.getmembers(Store, inspect.isfunction) if name[0] != "_")


def check_store(value: object) -> None:
    """Refuse what is no store: a URL or an engine, most often."""
    if not all(_has(value, method) for method in _STORE):
        raise InvalidInputError("store", "must be a store; PostgresStore(url) makes one")


def check(value: object, field: str, method: str) -> None:
    """Refuse what lacks the one method its port asks for."""
    if not _has(value, method):
        raise InvalidInputError(field, f"must have a method {method}")


def by_name(indexes: Any) -> dict[str, DerivedIndex]:
    """Return the indexes by their names, which differ."""
    if not isinstance(indexes, Collection) or isinstance(indexes, str | bytes):
        raise InvalidInputError("indexes", "must be a sequence")
    named: dict[str, DerivedIndex] = {}
    for position, index in enumerate(indexes):
        check(index, f"indexes.{position}", "purge")
        if getattr(index, "present", None) is not None:
            check(index, f"indexes.{position}", "present")
        name = validation.key(
            getattr(index, "name", None), f"indexes.{position}.name", validation.MAX_NAME
        )
        named[name] = index
    if len(named) != len(indexes):
        raise InvalidInputError("indexes", "must have different names")
    return named


def _has(value: object, method: str) -> bool:
    return callable(getattr(value, method, None))
