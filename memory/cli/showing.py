"""``memory history`` and ``memory export``."""

from __future__ import annotations

import json as encoder
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import fields
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any, Final

import typer

from memory.cli.bars import steps
from memory.cli.files import written
from memory.cli.knowing import require_known
from memory.cli.people import Subject, Tenant, subject_key
from memory.cli.plugs import opened
from memory.cli.printing import Json, as_json, print_line, say, table
from memory.cli.running import database_url, finish, run
from memory.plain import plain
from memory.portability import ExportedDecision
from memory.stores.postgres import PostgresStore
from memory.types import Decision, Tombstone

__all__ = ["export", "history"]


def history(
    context: typer.Context,
    tenant: Tenant,
    subject: Annotated[
        str | None, typer.Option(help="Of this person only; - reads the key from standard input.")
    ] = None,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="Holds, blocks and requests instead.")
    ] = False,
    limit: Annotated[int, typer.Option(help="How many, at most 1,000.")] = 100,
    json: Json = False,
) -> None:
    """List past erasures, newest first: who by hash, how much, never what."""
    name = "decisions" if decisions else "tombstones"
    person, found = run(_history(context, tenant, subject, name, limit))
    for row in found:
        row.pop("tenant_key", None)
    if json:
        as_json({name: found})
        return
    columns = _COLUMNS[name]
    if person is not None:  # whole, as verify --hash takes it
        print_line(f"person {person}")
        columns = tuple(column for column in columns if column != "subject_hash")
    rows = [[_short(column, row.get(column)) for column in columns] for row in found]
    table(name.capitalize(), [_TITLES.get(column, column) for column in columns], rows)


_COLUMNS = {
    "tombstones": ("seq", "erased_at", "subject_hash", "reason", "scope", "memories", "derived"),
    "decisions": ("seq", "at", "subject_hash", "action", "reason", "scope"),
}


_TITLES = {"erased_at": "erased at (UTC)", "at": "at (UTC)", "subject_hash": "person"}
_SECONDS = len("2026-01-05T09:00:00")
_WIDE = 150  # columns that the table takes with whole hashes


def _short(column: str, value: object) -> object:
    """Return what a person needs of it: ``--json`` has the rest."""
    if value is None:
        return ""
    if column in ("erased_at", "at"):
        return str(value)[:_SECONDS].replace("T", " ")
    if column == "subject_hash" and get_terminal_size().columns < _WIDE and sys.stdout.isatty():
        return f"{str(value)[:16]}…"
    return value


async def _history(
    context: typer.Context, tenant: str, subject: str | None, name: str, limit: int
) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the person's hash, if one was asked for, and the rows."""
    fingerprint = None
    store = PostgresStore(database_url())
    found: Sequence[Tombstone | Decision | ExportedDecision]
    async with opened(context, store) as memory:
        await require_known(tenant)
        if subject is not None:
            key = subject_key(subject)
            fingerprint = memory.subject_fingerprint(tenant, subject_key=key)
            read = _decisions if name == "decisions" else _tombstones
            found = (await read(store, tenant, fingerprint))[::-1][:limit]
        elif name == "decisions":
            found = await memory.decisions(tenant, limit=limit)
        else:
            found = await memory.erasure_history(tenant, limit=limit)
    return fingerprint, [
        {item.name: plain(getattr(entry, item.name)) for item in fields(entry)} for entry in found
    ]


async def _tombstones(store: PostgresStore, tenant: str, fingerprint: str) -> list[Tombstone]:
    found: list[Tombstone] = []
    last: Tombstone | None = None
    while page := await store.tombstones_of(tenant, fingerprint, last, _PAGE):
        found += page
        last = page[-1]
    return found


async def _decisions(store: PostgresStore, tenant: str, fingerprint: str) -> list[ExportedDecision]:
    found: list[ExportedDecision] = []
    last = 0
    while page := await store.decisions_of(tenant, fingerprint, last, _PAGE):
        found += page
        last = page[-1].seq
    return found


_PAGE: Final = 1_000


def export(
    context: typer.Context,
    tenant: Tenant,
    subject: Subject,
    output: Annotated[
        Path | None,
        typer.Option(help="Write here, readable by you alone; else to standard output."),
    ] = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="Embeddings, too.")] = False,
) -> None:
    """Write all that is held about a person, as lines of JSON.

    The only command that prints what is remembered: hand it over encrypted, then delete it.
    """
    if not run(_export(context, tenant, subject, output, vectors)):
        say("memory: nothing is known of this person: is the key right?")
        finish(True)


async def _export(
    context: typer.Context, tenant: str, subject: str, output: Path | None, vectors: bool
) -> int:
    """Return how many entries there were."""
    async with opened(context) as memory:
        await require_known(tenant)
        key = subject_key(subject)
        with written(output) as file, steps() as progress:
            entries = memory.export(tenant, subject_key=key, vectors=vectors)
            count = 0
            async with aclosing(entries) as stream:
                async for entry in stream:
                    file.write(encoder.dumps(entry.to_dict()).encode() + b"\n")
                    count += 1
                    progress("entries", count)
    return count
