"""The makers of identifiers as fixtures, and a way to show figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from identifiers import Maker


@pytest.fixture(scope="session")
def maker() -> Callable[[int], Maker]:
    """Return a function that makes a maker from a seed."""
    return Maker


@pytest.fixture
def report() -> Callable[[str], None]:
    """Return what shows a line of figures; pytest prints it with ``-s``."""
    return lambda line: print(line)  # noqa: T201 - figures are for people
