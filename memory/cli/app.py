"""The commands. A new one is a function in a module of its subject, registered here."""

from __future__ import annotations

import typer

from memory.cli import checking, counts, indexes, tombstones

__all__ = ["app"]

_EPILOG = (
    "MEMORY_DATABASE_URL names the database, as the owner of the schema; MEMORY_SUBJECT_PEPPER"
    " holds the pepper, where check is to compare hashes. Exit codes: 0 nothing found, 1 something"
    " found or left, 2 wrong usage or input, 3 the database cannot be reached or refuses."
)

# Typer's own tracebacks may show values.
app = typer.Typer(
    name="memory",
    help="Operate a memory that can be erased.",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("check")(checking.check)
app.command("verify")(checking.verify)
app.command("fold")(counts.fold)
app.add_typer(indexes.app, name="indexes")
app.add_typer(tombstones.app, name="tombstones")
