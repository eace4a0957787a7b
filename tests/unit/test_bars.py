"""The progress bar draws what it is told for a person, and nothing for a file."""

from __future__ import annotations

import io

from rich.console import Console

from memory.cli.bars import bar


def drawn(*, terminal: bool) -> str:
    written = io.StringIO()
    with bar(Console(file=written, force_terminal=terminal, width=80)) as progress:
        progress("building index: loading tuples", 3, 0)
        progress("records", 40, 50)
    return written.getvalue()


def test_it_shows_the_step_and_how_far_it_is() -> None:
    shown = drawn(terminal=True)
    assert "records" in shown
    assert "40/50" in shown


def test_nothing_is_written_where_nobody_looks() -> None:
    assert drawn(terminal=False) == ""
