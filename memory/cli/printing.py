"""Two ways to print: tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.table import Table

from memory.pages import visible

__all__ = ["Json", "as_json", "print_line", "say", "table"]

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Print a line beside the output."""
    _stderr.print(visible(message), markup=False)


def print_line(message: str) -> None:
    """Print a line of the output."""
    sys.stdout.write(f"{message}\n")


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table for people."""
    shown = Table(*header, title=title, title_justify="left")
    for row in rows:
        # A cell may have lines; what it quotes, a key or a name, commands no terminal.
        shown.add_row(*(visible(str(cell), kept="\n") for cell in row))
    # Not cut to a terminal that is not there.
    width = None if sys.stdout.isatty() else 160
    Console(highlight=False, markup=False, width=width).print(shown)


def as_json(values: Mapping[str, Any]) -> None:
    """Print one JSON object for programs."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()
