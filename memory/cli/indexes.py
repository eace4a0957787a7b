"""``memory indexes``: HNSW indexes over vectors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from memory.cli.bars import bar
from memory.cli.printing import Json, as_json, print_line, table
from memory.cli.running import database_url, finish, run
from memory.maintenance import indexes
from memory.types import VectorIndex

__all__ = ["app"]

app = typer.Typer(
    help="Build, list, maintain and drop the HNSW indexes of recall across a tenant.",
    no_args_is_help=True,
)

Length = Annotated[int, typer.Argument(help="How many values the vectors have.")]
Half = Annotated[bool, typer.Option("--halfvec", help="In half precision: half the size.")]
Work = Annotated[str | None, typer.Option(help="maintenance_work_mem of the build, such as 2GB.")]


@app.command("build")
def build(
    dimensions: Length,
    halfvec: Half = False,
    m: Annotated[int, typer.Option(help="Neighbours of an entry.")] = 16,
    ef_construction: Annotated[int, typer.Option(help="Candidates while building.")] = 64,
    memory: Work = None,
    json: Json = False,
) -> None:
    """Build the index for vectors of one length; called again, goes on after an interruption."""
    with bar() as progress:
        built = run(
            indexes.build_index(
                database_url(),
                dimensions=dimensions,
                halfvec=halfvec,
                m=m,
                ef_construction=ef_construction,
                memory=memory,
                progress=progress,
            )
        )
    _show((built,), json)


@app.command("list")
def list_(json: Json = False) -> None:
    """List the indexes; ends with 1 where an interrupted build has left one that is not valid."""
    found = run(indexes.list_indexes(database_url()))
    _show(found, json)
    finish(not all(index.valid for index in found))


@app.command("maintain")
def maintain(memory: Work = None, json: Json = False) -> None:
    """Rebuild the indexes, then vacuum the records: after many updates or erasures."""
    with bar() as progress:
        done = run(indexes.maintain(database_url(), memory=memory, progress=progress))
    if json:
        as_json(asdict(done))
        return
    print_line(
        f"{len(done.indexes)} rebuilt in {done.reindex_seconds:.1f} s,"
        f" vacuumed in {done.vacuum_seconds:.1f} s"
    )


@app.command("drop")
def drop(dimensions: Length, halfvec: Half = False) -> None:
    """Drop the index for vectors of one length; ends with 1 where there was none."""
    dropped = run(indexes.drop_index(database_url(), dimensions=dimensions, halfvec=halfvec))
    print_line("dropped" if dropped else "there is none")
    finish(not dropped)


def _show(found: tuple[VectorIndex, ...], json: bool) -> None:
    if json:
        as_json({"indexes": [asdict(index) for index in found]})
        return
    table(
        "HNSW indexes",
        ("name", "values", "precision", "m", "ef_construction", "valid", "MB"),
        [
            (
                index.name,
                index.dimensions,
                "half" if index.halfvec else "full",
                index.m,
                index.ef_construction,
                "yes" if index.valid else "no",
                f"{index.bytes / 1e6:.1f}",
            )
            for index in found
        ],
    )
