"""A progress bar for what takes long: the ``progress`` of ``reembed`` and of the indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from memory.maintenance.walking import Portion

__all__ = ["bar"]


@contextmanager
def bar(console: Console | None = None) -> Iterator[Portion]:
    """Draw on standard error, or on the console given, and only for a person.

    ``with bar() as progress: await memory.reembed(url, embedder, progress=progress)``
    """
    console = console or Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task("waiting", total=None)

        def told(step: str, done: int, total: int) -> None:
            shown.update(task, description=step, completed=done, total=total or None)

        yield told
