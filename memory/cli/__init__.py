"""The command line ``memory``: for operators, as the owner of the schema. In the extra ``cli``."""

from __future__ import annotations

import sys

__all__ = ["main"]

_NEEDED = {"rich", "typer"}


def main() -> None:
    """Run the command line; say what to install where the extra is absent."""
    try:
        from memory.cli.app import app  # noqa: PLC0415 - typer may be absent
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        sys.stderr.write("memory: the command line needs: pip install 'erasable-memory[cli]'\n")
        sys.exit(3)
    app()
