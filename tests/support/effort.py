"""How often what depends on chance is tried.

The suite tries a part; ``MEMORY_TEST_EFFORT=1 pytest`` tries all of it, as before a release.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = ["tries"]

_EFFORT: Final = float(os.environ.get("MEMORY_TEST_EFFORT", "0.3"))


def tries(full: int) -> int:
    """Return how many of ``full`` tries to make: at least one, and always the same first ones."""
    return max(1, round(full * _EFFORT))
