"""What a source's rows hold: JSON, times and vectors, or ``ValueError`` for what is none. Pure.

Times come as text, or as seconds since 1970 in text: of a time that Python cannot hold the driver
would make an exception of its own, or an arbitrary one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from memory.errors import InvalidInputError
from memory.vectors import vector

__all__ = ["ending", "expiry", "instant", "json_object", "moment", "record_id", "vector_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)


def json_object(written: str) -> dict[str, Any]:
    """Return a JSON object."""
    try:
        found = json.loads(written)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - a row is refused by one error
    return found


def instant(seconds: str | float | None) -> datetime | None:
    """Return the time so many seconds after 1970; None for None."""
    try:
        return None if seconds is None else _EPOCH + timedelta(microseconds=int(_micros(seconds)))
    except OverflowError:
        raise ValueError("out of Python's range") from None


def _micros(seconds: str | float) -> Decimal:
    return Decimal(str(seconds)) * 1_000_000


def expiry(seconds: str | None) -> datetime | None:
    """Return when something expires; what never does, and what does after the year 9999, never."""
    if seconds is None or seconds == "Infinity":
        return None
    try:
        return instant(seconds)
    except ValueError:
        return _FIRST if seconds.startswith("-") else _LAST


def moment(value: object) -> datetime | None:
    """Return a time as ISO 8601 or in seconds since 1970; without a zone it is in UTC."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return instant(value)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError("not a time")  # noqa: TRY004 - a row is refused by one error
    try:
        return _utc(datetime.fromisoformat(value.strip()))
    except OverflowError:
        raise ValueError("out of Python's range") from None


def ending(value: object) -> datetime | None:
    """Return when a memory of mem0 expires: behind its last day, or at a time of its own."""
    try:
        last = date.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        last = None
    if last is None:
        return moment(value)
    midnight = datetime.combine(last, time(), UTC)
    # 9999-12-31 stands for never; no day follows it.
    return _LAST if last == date.max else midnight + timedelta(days=1)


def record_id(at: datetime | None, line: str) -> UUID:
    """Return a UUIDv7 of the time, the same for the same line: a second run finds the first's."""
    framed = f"{'' if at is None else at.isoformat()} {line}"
    digest = int.from_bytes(hashlib.sha256(framed.encode()).digest()[:10])
    milliseconds = 0 if at is None else max(0, int(at.timestamp() * 1000))
    bits = milliseconds << 80 | 0x7 << 76 | (digest >> 62 & 0xFFF) << 64
    return UUID(int=bits | 0b10 << 62 | digest & (1 << 62) - 1)


def vector_of(written: str | None) -> Sequence[float] | None:
    """Return a vector as pgvector writes it, None where it is none that can be kept."""
    try:
        return None if written is None else vector(json.loads(written))
    except (InvalidInputError, ValueError):
        return None


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
