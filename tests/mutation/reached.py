"""Which tests reach which functions of the library: no other test can kill a function's mutant."""

from __future__ import annotations

import functools
import gc
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from servers import ROOT

# A file and what it calls a function; what is nested in one counts as the function.
Place = tuple[str, str]
_LIBRARY = str(ROOT / "memory")


def place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname.partition(".<locals>")[0]


def _is_ours(cached: Any) -> bool:
    return str(cached.__module__).partition(".")[0] == "memory"


class Watch:
    """Notes which functions of the library each test calls, and which are called before any."""

    def __init__(self) -> None:
        self._now: set[Place] = set()
        self._called = {"": self._now}

    def begin(self, test: str) -> None:
        """Note what is called from now on as this test's, what others had answered included."""
        for item in gc.get_objects():
            if type(item) is functools._lru_cache_wrapper and _is_ours(item):
                item.cache_clear()
        self._now = self._called.setdefault(test, set())

    def over(self, run: Callable[[], bool], file: Path) -> Callable[[], bool]:
        """``run``, watched; what was called is left in ``file``, for the parent."""

        def watched() -> bool:
            # Of a profile, calls of C would be told too; of a trace that returns nothing, no lines.
            threading.settrace(self._call)
            sys.settrace(self._call)
            try:
                return run()
            finally:
                sys.settrace(None)
                file.write_bytes(pickle.dumps(self._called))

        return watched

    def _call(self, frame: FrameType, _event: str, _: Any) -> None:
        if frame.f_code.co_filename.startswith(_LIBRARY):
            self._now.add(place(frame.f_code))


@dataclass(frozen=True)
class Reached:
    """What two watched runs have called: one that only collects the tests, one that runs them."""

    early: frozenset[Place]
    tests: dict[str, set[Place]]

    @classmethod
    def read(cls, collecting: Path, running: Path) -> Reached:
        early, tests = (pickle.loads(file.read_bytes()) for file in (collecting, running))  # noqa: S301 - our own
        return cls(frozenset(early[""]), tests)

    def by(self, places: set[Place]) -> set[str]:
        """Return the tests that call one of these functions."""
        return {test for test, called in self.tests.items() if called & places}

    def computed(self, places: set[Place]) -> bool:
        """Whether one is called on import, so that what it returned outlives it; or none given."""
        return not places or not places.isdisjoint(self.early)
