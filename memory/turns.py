"""Giving the event loop its turn during long work."""

from __future__ import annotations

import asyncio
import time

__all__ = ["Turns"]

_SLICE = 0.002  # seconds


class Turns:
    """Lets other tasks run every two milliseconds, so that a batch does not hold up the host."""

    def __init__(self) -> None:
        self._due = time.perf_counter() + _SLICE

    async def give(self) -> None:
        """Yield to the loop if a slice has passed."""
        if time.perf_counter() >= self._due:
            await asyncio.sleep(0)
            self._due = time.perf_counter() + _SLICE
