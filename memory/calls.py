"""Awaiting what a host plugged in, so that nothing it does can hide what has been committed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

__all__ = ["CallFailedError", "called", "class_name"]

T = TypeVar("T")

_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_GRACE = 1.0  # seconds


class CallFailedError(Exception):
    """What was called raised, or did not answer in time; ``kind`` is the class and nothing else."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


async def called(make: Callable[[], Awaitable[T]], limit: timedelta) -> T:
    """Await the call in a task of its own and return its answer.

    So a ``CancelledError`` that the callee raises itself is a failure like any other, while one
    that comes from our caller cancels the call and passes on. A call that does not answer in time
    is cancelled; one that even that does not end is left behind. A ``SystemExit`` is its failure
    too: it would end the loop, and with it the caller that waits for what was committed.
    """

    async def run() -> T:
        try:
            return await make()
        except SystemExit:
            pass
        raise CallFailedError("SystemExit")

    task = asyncio.ensure_future(run())
    try:
        await asyncio.wait({task}, timeout=limit.total_seconds())
    except asyncio.CancelledError:
        await _ended(task)
        raise
    if not task.done():
        await _ended(task)
        raise CallFailedError("TimeoutError")
    if task.cancelled():
        raise CallFailedError("CancelledError")
    error = task.exception()
    if error is not None:
        raise CallFailedError(class_name(error))
    return task.result()


def class_name(error: BaseException) -> str:
    """Return the name of the class, as the class itself has it: a metaclass can say anything."""
    if isinstance(error, CallFailedError):
        return error.kind
    kind = type.__dict__["__name__"].__get__(type(error))
    return kind if _CLASS.fullmatch(kind) else "Exception"


async def _ended(task: asyncio.Task[T]) -> None:
    task.cancel()
    # What it raises while it ends is nobody's news; unread, the loop would log it, message and all.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({task}, timeout=_GRACE)
