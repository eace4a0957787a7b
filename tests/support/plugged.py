"""Indexes as a host might plug them in: they raise, lie, hang and cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

__all__ = ["FAULTS", "Index", "Odd", "Verified", "told"]


class Odd(BaseException):
    """What no ``except Exception`` catches."""


class Index:
    """Answers as it is told to, and well once ``fault`` is None."""

    def __init__(self, name="odd", fault=None):
        self.name, self.fault, self.asked, self.ended = name, fault, [], 0
        self.called = asyncio.Event()

    async def purge(self, artefact_ids):
        self.asked.append(list(artefact_ids))
        self.called.set()
        match self.fault:
            case BaseException():
                raise self.fault
            case "hangs":
                try:
                    await asyncio.sleep(60)
                finally:
                    self.ended += 1
            case "hangs on":
                for _ in range(30):
                    try:
                        await asyncio.sleep(0.1)
                    except asyncio.CancelledError:
                        self.ended += 1
        return len(artefact_ids)


class Verified(Index):
    """Has ``present``, which gives the answer that is its fault."""

    async def purge(self, artefact_ids):
        self.asked.append(list(artefact_ids))
        return len(artefact_ids)

    async def present(self, artefact_ids):
        if isinstance(self.fault, BaseException):
            raise self.fault
        if self.fault == "hangs":
            await asyncio.sleep(60)
        return [] if self.fault is None else self.fault(artefact_ids)


class Unasked(Verified):
    """Raises when it is asked for ``present`` itself; plugging it in asks a few times too."""

    looks = 0

    @property
    def present(self):
        self.looks += 1
        if self.fault is not None and self.looks > 2:
            raise self.fault
        return self.answer

    async def answer(self, artefact_ids):
        return []


class Unreadable(Collection):
    """An answer that raises when it is read."""

    def __init__(self, asked):
        self.asked = asked

    def __contains__(self, item):
        return True

    def __len__(self):
        return 1

    def __iter__(self):
        raise LookupError(*self.asked)


class Unhashable(str):
    def __hash__(self):
        raise LookupError(self)


class Nameless(type):
    """A metaclass that has no name for its class."""

    @property
    def __name__(cls):
        raise LookupError("of Ann")


class UnnamedError(OSError, metaclass=Nameless):
    pass


FAULTS = {
    "an exception": (Index, ConnectionError("of Ann"), "ConnectionError"),
    "not found": (Index, KeyError("of Ann"), "KeyError"),
    "an exit": (Index, Odd("of Ann"), "Odd"),
    "a cancellation of its own": (Index, asyncio.CancelledError("of Ann"), "CancelledError"),
    "a class without a name": (Index, type("A nn", (OSError,), {})("of Ann"), "Exception"),
    "a class whose name raises": (Index, UnnamedError("of Ann"), "UnnamedError"),
    "an end of the process": (Index, SystemExit("of Ann"), "SystemExit"),
    "no answer": (Index, "hangs", "TimeoutError"),
    "no answer and no end": (Index, "hangs on", "TimeoutError"),
    "present raises": (Verified, OSError("of Ann"), "OSError"),
    "present does not answer": (Verified, "hangs", "TimeoutError"),
    "present finds it": (Verified, list, "NotConfirmed"),
    "present answers nothing": (Verified, lambda ids: None, "TypeError"),
    "present answers a string": (Verified, lambda ids: "none", "TypeError"),
    "present answers false": (Verified, lambda ids: False, "TypeError"),
    "present answers numbers": (Verified, lambda ids: [1], "TypeError"),
    "present answers something else": (Verified, lambda ids: ["of Zoe"], "ValueError"),
    "present is not to be had": (Unasked, OSError("of Ann"), "OSError"),
    "present answers what raises": (Verified, Unreadable, "LookupError"),
    "present answers no real string": (Verified, lambda ids: [Unhashable(ids[0])], "LookupError"),
}


async def told(tenant, *people, **artefacts):
    """Remember something with an artefact in each of the indexes."""
    record = (await tenant.remember(text="called", subject_keys=people)).record
    for adapter, artefact_id in artefacts.items():
        await tenant.register_artefact(adapter=adapter, artefact_id=artefact_id, sources=record)
    return record
