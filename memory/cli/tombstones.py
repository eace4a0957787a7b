"""``memory tombstones``: the stream kept beside the backups."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import IO, Annotated

import typer

from memory import tombstones
from memory.cli.running import (
    as_json,
    database_url,
    finish,
    lines,
    print_line,
    read_anchors,
    run,
    say,
)
from memory.maintenance.replaying import Replayed
from memory.maintenance.replaying import replay as replay_stream
from memory.maintenance.tombstones import export_tombstones
from memory.plain import plain

__all__ = ["app"]

app = typer.Typer(
    help="Export tombstones beside the backups; replay them after a restore.",
    no_args_is_help=True,
)

File = Annotated[Path, typer.Argument(help="The stream; - is the standard input.")]
Anchors = Annotated[
    Path | None,
    typer.Option(help="Positions kept elsewhere, as JSON lines: tenant_key, seq, digest."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("export")
def export(
    output: Annotated[
        Path | None, typer.Option(help="Write here, and only whole; else to standard output.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="This tenant only.")] = None,
) -> None:
    """Write every tombstone as a line of JSON."""
    run(_export(output, tenant))


async def _export(output: Path | None, tenant: str | None) -> None:
    with _written(output) as file:
        async with aclosing(export_tombstones(database_url(), tenant_key=tenant)) as stream:
            async for line in stream:
                file.write(line.encode() + b"\n")


@contextmanager
def _written(output: Path | None) -> Iterator[IO[bytes]]:
    """Open the output; a file gets its name when all is in it."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    partial = output.with_name(f"{output.name}.partial")
    with partial.open("wb") as file:
        yield file
    partial.replace(output)


@app.command("verify")
@app.command("import", hidden=True)
def verify(file: File, anchors: Anchors = None, json: Json = False) -> None:
    """Verify a stream, which is all that importing it takes: digests, chains, end and anchors."""
    run(_verify(file, anchors, json))


async def _verify(file: Path, anchors: Path | None, json: bool) -> None:
    with lines(file) as stream:
        found = tombstones.verify(stream, read_anchors(anchors))
    if json:
        as_json({"tombstones": found.tombstones, "tenants": len(found.anchors)})
    else:
        print_line(f"{found.tombstones} tombstones of {len(found.anchors)} tenants hold together")


@app.command("replay")
def replay(
    file: File,
    anchors: Anchors = None,
    known: Annotated[
        bool,
        typer.Option(
            help="Repeat also what the database's chain holds: for rows restored into a living one."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Erase again whom the stream says was erased and a restored backup brought back."""
    done = run(_replay(file, anchors, known))
    if json:
        values = {item.name: plain(getattr(done, item.name)) for item in fields(done)}
        as_json({**values, "complete": done.complete})
    else:
        print_line(
            f"{done.people} people and {done.records} records erased again;"
            f" {done.known} of {done.tombstones} tombstones were known"
        )
        for scope, count in sorted(done.narrow.items()):
            say(f"{count} erasures of scope {scope} do not say which records they took")
        if done.outstanding:
            say("external indexes owe purges now: call purge_outstanding")
        if done.held:
            say(f"{done.held} records stay under a legal hold")
    finish(not done.complete)


async def _replay(file: Path, anchors: Path | None, known: bool) -> Replayed:
    with lines(file) as stream:
        return await replay_stream(
            database_url(), stream, anchors=read_anchors(anchors), known=known
        )
