"""What every benchmark's command line needs: its common options, a server, and the report."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

from memory import embedded

__all__ = ["options", "show", "superuser"]


def options(description: str) -> argparse.ArgumentParser:
    """Return a parser that knows ``--database``, ``--quick`` and ``--json``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--database", help="a superuser's URL; default: an embedded server")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    return parser


@contextlib.asynccontextmanager
async def superuser(
    given: str | None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """Yield the superuser's URL that was given, or that of an embedded server with ``settings``."""
    if given is not None:
        yield given
        return
    async with embedded.serve(settings=settings) as server:
        yield server.superuser_url


def show(found: Mapping[str, Any], table: Iterable[str], file: Path | None) -> None:
    """Print the table, then the figures as one line of JSON; write them to ``file`` as well."""
    lines = [*table, json.dumps(found)]
    sys.stdout.write("\n".join(lines) + "\n")
    if file is not None:
        file.write_text(json.dumps(found, indent=2) + "\n")
