"""The commands. A new one is a function in a module of its subject, registered here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from memory.cli import (
    certifying,
    checking,
    counts,
    deciding,
    erasing,
    indexes,
    installing,
    purging,
    reembedding,
    scrubbing,
    showing,
    tombstones,
)
from memory.cli.codes import FOUND, INTERNAL, USAGE
from memory.cli.plugs import Plugs
from memory.cli.printing import print_line, say
from memory.ports import DerivedIndex, Embedder

__all__ = ["app", "start"]

_EPILOG = (
    "MEMORY_DATABASE_URL names the database, as the role that the command needs;"
    " MEMORY_SUBJECT_PEPPER holds the pepper, empty where there is none. Exit codes: 0 done,"
    " 1 something found or left, 2 wrong usage or input, 3 the database cannot be reached or"
    " refuses, 4 changed meanwhile."
)

# Typer's own tracebacks may show values.
app = typer.Typer(
    name="memory",
    help="Operate a memory that can be erased.",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    suggest_commands=False,
)

_OWNER, _APPLICATION, _ANY = "As the owner", "As the application", "Without a database"

app.command("upgrade", rich_help_panel=_OWNER)(installing.upgrade)
app.command("verify", rich_help_panel=_OWNER)(checking.verify)
app.command("check", rich_help_panel=_OWNER)(checking.check)
app.command("scrub", rich_help_panel=_OWNER)(scrubbing.scrub)
app.command("fold", rich_help_panel=_OWNER)(counts.fold)
app.command("reembed", rich_help_panel=_OWNER)(reembedding.reembed)
app.add_typer(indexes.app, name="indexes", rich_help_panel=_OWNER)
app.add_typer(indexes.app, name="index", hidden=True)
app.add_typer(tombstones.app, name="tombstones", rich_help_panel=_OWNER)
app.command("forget", rich_help_panel=_APPLICATION)(erasing.forget)
app.command("expire", rich_help_panel=_APPLICATION)(erasing.expire)
app.command("purge", rich_help_panel=_APPLICATION)(purging.purge)
app.command("hold", rich_help_panel=_APPLICATION)(deciding.hold)
app.command("release", rich_help_panel=_APPLICATION)(deciding.release)
app.command("readmit", rich_help_panel=_APPLICATION)(deciding.readmit)
app.command("history", rich_help_panel=_APPLICATION)(showing.history)
app.command("export", rich_help_panel=_APPLICATION)(showing.export)
app.command("certificate", rich_help_panel=_APPLICATION)(certifying.certificate)
app.command("serve", rich_help_panel=_ANY)(installing.serve)


def _say_version(wanted: bool) -> None:
    if wanted:
        print_line(f"erasable-memory {version('erasable-memory')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Operate a memory that can be erased."""


def start(given: Sequence[DerivedIndex], embedder: Embedder | None) -> int:
    """Run the command of the arguments; return the exit code."""
    try:
        code = app(standalone_mode=False, obj=Plugs(indexes=tuple(given), embedder=embedder))
    except typer.Abort:
        say("memory: nothing was confirmed, nothing was done")
        return FOUND
    except TyperException as error:
        return _misused(error)
    except Exception as error:  # a message may quote
        say(f"memory: unforeseen: {type(error).__name__}")
        return INTERNAL
    return code if isinstance(code, int) else 0


# What quotes an argument is not repeated: it may be a person's key.
_RULES = {
    "BadParameter": "a value is not of the kind that is wanted",
    "NoSuchOption": "no such option",
    "UsageError": "too many arguments",
}


def _misused(error: TyperException) -> int:
    """Say what was wrong with the arguments, without their values."""
    kind = type(error).__name__
    if kind == "NoArgsIsHelpError":
        return USAGE
    context = getattr(error, "ctx", None)
    command = "memory" if context is None else context.command_path
    parameter = getattr(error, "param", None)
    rule = _RULES.get(kind)
    if kind == "UsageError" and isinstance(getattr(context, "command", None), TyperGroup):
        rule = "no such command"
    if rule is None:
        rule = error.format_message().rstrip(".")
    elif parameter is not None:
        rule = f"{parameter.name}: {rule}"
    say(f"memory: {rule}; see: {command} --help")
    return USAGE
