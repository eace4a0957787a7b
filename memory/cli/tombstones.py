"""``memory tombstones``: the stream kept beside the backups."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import fields
from pathlib import Path
from typing import IO, Annotated

import typer

from memory import tombstones
from memory.cli.bars import steps
from memory.cli.files import anchor_of, lines, read_anchors, written
from memory.cli.printing import Json, as_json, print_line, say, table
from memory.cli.running import database_url, finish, run
from memory.errors import InvalidInputError
from memory.maintenance.replaying import Replayed
from memory.maintenance.replaying import replay as replay_stream
from memory.maintenance.tombstones import export_tombstones
from memory.maintenance.walking import Progress
from memory.plain import plain
from memory.proofs import Proof, prove
from memory.types import Anchor

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


@app.command("export")
def export(
    output: Annotated[
        Path | None, typer.Option(help="Write here, and only whole; else to standard output.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="This tenant only.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also a file that the new stream does not continue.")
    ] = False,
) -> None:
    """Write every tombstone as a line of JSON.

    A file that is there is replaced only by a stream that goes on from where it ends: after a
    restore it alone holds what the database has lost.
    """
    run(_export(output, tenant, replace))


async def _export(output: Path | None, tenant: str | None, replace: bool) -> None:
    ends = {} if output is None or replace else _ends(output)
    with written(output) as file, steps() as progress:
        exported = export_tombstones(database_url(), tenant_key=tenant)
        async with aclosing(exported) as stream:
            count = 0
            async for line in stream:
                file.write(line.encode() + b"\n")
                count += 1
                progress("lines", count)
        if ends:
            _require_to_continue(file, ends)


def _ends(output: Path) -> Mapping[str, Anchor]:
    """Return where the chains end in the stream that is there, if one is."""
    if not output.exists():
        return {}
    try:
        with lines(output) as stream:
            return tombstones.verify(stream).anchors
    except InvalidInputError:
        rule = "must not be a file that is no whole stream: give another name, or --replace"
    raise InvalidInputError("--output", rule)


def _require_to_continue(file: IO[bytes], ends: Mapping[str, Anchor]) -> None:
    file.seek(0)
    try:
        tombstones.verify(file, ends)
    except InvalidInputError:
        say(
            "memory: the stream that is there was kept: the database does not hold all of it, or"
            " does not hold together. Was a backup restored? Ask memory check --tombstones with"
            " that stream; export to another name, or with --replace"
        )
        finish(True)


@app.command("verify")
@app.command("import", hidden=True)
def verify(
    file: File,
    anchors: Anchors = None,
    anchor: Annotated[
        str | None,
        typer.Option(help="SEQ:DIGEST kept elsewhere: show what it vouches for; takes parts."),
    ] = None,
    subject_hash: Annotated[
        str | None, typer.Option("--hash", help="With --anchor: of this person only, by the hash.")
    ] = None,
    erasure: Annotated[
        str | None, typer.Option(help="With --anchor: of this erasure only, by its id.")
    ] = None,
    json: Json = False,
) -> None:
    """Verify a stream, which is all that importing it takes: digests, chains, end and anchors.

    With --anchor, verify a chain or a part of it, up to there, and list the tombstones asked for.
    """
    if anchor is None:
        run(_verify(file, anchors, json))
        return
    proof = run(_prove(file, anchor, subject_hash, erasure))
    if json:
        found = [stone.to_dict() for stone in proof.tombstones]
        as_json({"tombstones": found, "whole": proof.whole, "beyond": proof.beyond})
    else:
        _show(proof)
    finish(not proof.tombstones)


async def _prove(file: Path, anchor: str, subject_hash: str | None, erasure: str | None) -> Proof:
    with lines(file) as stream:
        return prove(
            stream, anchor=anchor_of(anchor), subject_hash=subject_hash, erasure_id=erasure
        )


def _show(proof: Proof) -> None:
    counts = ("seq", "erased_at", "scope", "reason", "memories", "derived", "erasure_id")
    rows = [[plain(getattr(stone, name)) for name in counts] for stone in proof.tombstones]
    table("Vouched for by the anchor", counts, rows)
    if not proof.whole:
        say("memory: the chain is given in part: what came before it is not shown")
    if proof.beyond:
        say(f"memory: {proof.beyond} came after the anchor, which does not vouch for them")


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
    with steps() as progress:
        done = run(_replay(file, anchors, known, progress))
    if json:
        values = {item.name: plain(getattr(done, item.name)) for item in fields(done)}
        as_json({**values, "complete": done.complete})
    else:
        print_line(
            f"{done.people} people and {done.records} records erased again;"
            f" {done.known} of {done.tombstones} tombstones were known"
        )
        _say_what_is_left(done)
    finish(not done.complete)


def _say_what_is_left(done: Replayed) -> None:
    for scope, count in sorted(done.narrow.items()):
        again = "; memory expire does it again, with each rule by age" * (scope == "retention")
        say(f"{count} erasures of scope {scope} do not say which records they took{again}")
    if done.to_review:
        say(
            f"{done.to_review} people of them have records from before, which may be those:"
            " memory check --tombstones shows some, and docs/evidence.md says how to go on"
        )
    if done.outstanding:
        say("external indexes owe purges now: see memory purge --help")
    if done.held:
        say(f"{done.held} records stay under a legal hold")


async def _replay(file: Path, anchors: Path | None, known: bool, progress: Progress) -> Replayed:
    with lines(file) as stream:
        return await replay_stream(
            database_url(),
            stream,
            anchors=read_anchors(anchors),
            known=known,
            progress=progress,
        )
