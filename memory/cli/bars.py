"""Progress bars for what takes long: what the functions of maintenance take as ``progress``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Drawn

from memory.maintenance.walking import Portion, Progress

__all__ = ["bar", "steps"]


@contextmanager
def bar(console: Console | None = None) -> Iterator[Portion]:
    """Draw on standard error, or on the console given, and only for a person.

    ``with bar() as progress: await memory.reembed(url, embedder, progress=progress)``
    """
    console = console or Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Drawn(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task("waiting", total=None)

        def told(step: str, done: int, total: int) -> None:
            shown.update(task, description=step, completed=done, total=total or None)

        yield told


@contextmanager
def steps() -> Iterator[Progress]:
    """Draw as :func:`bar` does what does not know its end."""
    with bar() as progress:
        yield lambda step, done: progress(step, done, 0)
