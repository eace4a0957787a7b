"""What every command needs: settings from the environment, exit codes, and two ways to print.

Nothing here prints a value: errors are the library's own, which hold none, and of anything
unforeseen only the class is shown.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from memory.errors import InvalidInputError, MemoryServiceError
from memory.types import Anchor

__all__ = [
    "as_json",
    "database_url",
    "finish",
    "lines",
    "pepper",
    "print_line",
    "read_anchors",
    "run",
    "say",
    "table",
]

T = TypeVar("T")

OK: Final = 0
FOUND: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
INTERNAL: Final = 70
INTERRUPTED: Final = 130

_stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def database_url() -> str:
    """Return the URL from the environment: in an argument, every process list would show it."""
    url = os.environ.get("MEMORY_DATABASE_URL")
    if not url:
        raise InvalidInputError("MEMORY_DATABASE_URL", "must hold the URL of the schema's owner")
    return url


def pepper() -> str | None:
    """Return the subject pepper, if the environment has one."""
    return os.environ.get("MEMORY_SUBJECT_PEPPER") or None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, or end the process with the exit code of what went wrong."""
    try:
        return asyncio.run(work)
    except InvalidInputError as error:
        code, message = USAGE, str(error)
    except MemoryServiceError as error:
        code, message = UNAVAILABLE, str(error)
    except BrokenPipeError:
        # Who reads has gone; so that Python does not flush into the pipe again at its end:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code, message = FOUND, "the output was closed before its end"
    except OSError as error:
        code, message = USAGE, f"a file cannot be used: {error.strerror or type(error).__name__}"
    except KeyboardInterrupt:
        code, message = INTERRUPTED, "interrupted: what was done is done, call it again"
    except Exception as error:
        code, message = INTERNAL, f"unforeseen: {type(error).__name__}"
    say(f"memory: {message}")
    raise typer.Exit(code)


def say(message: str) -> None:
    """Print a line beside the output."""
    _stderr.print(message, markup=False)


def print_line(message: str) -> None:
    """Print a line of the output."""
    sys.stdout.write(f"{message}\n")


def finish(found: bool) -> None:
    """End with 1 where something was found, else with 0."""
    raise typer.Exit(FOUND if found else OK)


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table for people."""
    shown = Table(*header, title=title, title_justify="left")
    for row in rows:
        shown.add_row(*(str(cell) for cell in row))
    # Not cut to a terminal that is not there.
    width = None if sys.stdout.isatty() else 160
    Console(highlight=False, markup=False, width=width).print(shown)


def as_json(values: Mapping[str, Any]) -> None:
    """Print one JSON object for programs."""
    sys.stdout.write(json.dumps(values) + "\n")


@contextmanager
def lines(file: Path) -> Iterator[IO[bytes]]:
    """Open a stream of JSON lines; ``-`` is the standard input."""
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    with file.open("rb") as opened:
        yield opened


def read_anchors(file: Path | None) -> dict[str, Anchor]:
    """Read anchors: JSON lines with ``tenant_key``, ``seq`` and ``digest``, as ``head`` lines."""
    found: dict[str, Anchor] = {}
    if file is None:
        return found
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        found.update([_anchor(line, number)])
    return found


def _anchor(line: bytes, number: int) -> tuple[str, Anchor]:
    try:
        values = json.loads(line)
        key, seq, digest = (values[name] for name in ("tenant_key", "seq", "digest"))
    except (ValueError, KeyError, TypeError, RecursionError):
        key = seq = digest = None
    if isinstance(key, str) and isinstance(seq, int) and isinstance(digest, str):
        return key, Anchor(seq=seq, digest=digest)
    raise InvalidInputError(f"anchors.{number}", "must have tenant_key, seq and digest")
