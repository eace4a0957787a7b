"""Whom a command is about, and whether it was meant."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer

from memory.cli.running import database_url
from memory.errors import InvalidInputError
from memory.maintenance.walking import opened, tenants

__all__ = [
    "AllTenants",
    "MaybeTenant",
    "Subject",
    "Tenant",
    "Yes",
    "confirm",
    "subject_key",
    "walk",
]

Tenant: TypeAlias = Annotated[str, typer.Argument(help="The tenant's key.")]
MaybeTenant: TypeAlias = Annotated[str | None, typer.Argument(help="The tenant's key.")]
AllTenants: TypeAlias = Annotated[
    bool, typer.Option("--all-tenants", help="Every tenant, one after the other: as the owner.")
]
Subject: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="The person's key; - reads it from standard input, and keeps it out of the shell's"
        " history and the list of processes."
    ),
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask: for pipelines.")]


def subject_key(given: str) -> str:
    """Return the key, which may have to be read from standard input."""
    if given != "-":
        return given
    if sys.stdin.isatty():
        with _interruptible():
            return str(typer.prompt("Subject key", err=True))
    line = sys.stdin.buffer.readline().rstrip(b"\r\n")
    # What is no UTF-8 is refused where a key from an argument is.
    return line.decode(errors="surrogateescape")


def confirm(question: str, *, yes: bool) -> None:
    """Ask, on a terminal; elsewhere only --yes will do."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInputError("--yes", "must be given where there is no terminal to ask on")
    with _interruptible():
        typer.confirm(question, abort=True, err=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Control-C end a question; the event loop's own handler waits until it is answered."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def walk(tenant: str | None, every: bool) -> AsyncIterator[str]:
    """Yield the tenant, or every tenant there is."""
    if (tenant is None) != every:
        raise InvalidInputError("TENANT", "or --all-tenants must be given, one of the two")
    if tenant is not None:
        yield tenant
        return
    async with opened(database_url()) as access:
        async for key in tenants(access):
            yield key
