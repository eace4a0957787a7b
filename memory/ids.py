"""UUID version 7 (RFC 9562, section 5.7): time-ordered record ids, made in Python.

Servers before PostgreSQL 18 have no ``uuidv7()``, and an id made here lets a retried write name
its record before anything is sent.
"""

from __future__ import annotations

import secrets
import threading
import time
from uuid import UUID

__all__ = ["uuid7"]

_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    """Return a new UUIDv7, greater than every one this process has made before.

    Layout: 48 bits of Unix milliseconds, version, 12 bits of the millisecond's fraction (RFC 9562,
    section 6.2, method 3), variant, 62 random bits. Time and fraction together are a 60-bit clock
    that never stands still: a tie or a step backwards counts up from the last value.
    """
    global _last  # noqa: PLW0603 - ids must grow through the whole process
    nanoseconds = time.time_ns()
    clock = (nanoseconds // 1_000_000 << 12) | (nanoseconds % 1_000_000 * 4096 // 1_000_000)
    with _lock:
        _last = clock = max(clock, _last + 1)
    milliseconds, fraction = clock >> 12, clock & 0xFFF
    return UUID(
        int=milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62)
    )
