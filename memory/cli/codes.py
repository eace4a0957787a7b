"""The exit codes, which docs/cli.md explains."""

from __future__ import annotations

from typing import Final

__all__ = ["CHANGED", "FOUND", "INTERNAL", "INTERRUPTED", "OK", "UNAVAILABLE", "USAGE"]

OK: Final = 0
FOUND: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
CHANGED: Final = 4
INTERNAL: Final = 70
INTERRUPTED: Final = 130
