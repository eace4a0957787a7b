"""Values as plain JSON types. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

__all__ = ["exact", "plain"]


def plain(value: Any) -> Any:
    """Return the value with times in ISO 8601 (UTC), ids as strings and sequences as lists."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def exact(value: str) -> str:
    """Return the characters as a string that is no more than that.

    A subclass may be a member of an ``Enum``, whose ``str`` is its name, or say of itself what is
    not so: what is checked has to be what is stored.
    """
    return str.__str__(value)
