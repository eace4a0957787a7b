"""``memory scrub``: remove deleted bytes from the server's files, and look if they are gone."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from memory.cli.bars import bar
from memory.cli.files import lines
from memory.cli.printing import Json, as_json, print_line, table
from memory.cli.running import database_url, finish, run
from memory.errors import InvalidInputError
from memory.maintenance.residue import Residue, find_residue
from memory.maintenance.scrubbing import scrub as scrub_files
from memory.maintenance.scrubbing.report import Scrubbed, ScrubStep

__all__ = ["scrub"]


def scrub(
    exclusive: Annotated[
        bool, typer.Option("--exclusive", help="Write tables anew: shuts everybody out meanwhile.")
    ] = False,
    keep_wal: Annotated[
        bool, typer.Option("--keep-wal", help="Leave the write-ahead log alone.")
    ] = False,
    lock_timeout: Annotated[float, typer.Option(help="Seconds to wait for a lock.")] = 2.0,
    attempts: Annotated[int, typer.Option(help="How often to wait for it.")] = 5,
    verify: Annotated[
        Path | None,
        typer.Option(help="Search the server's files for the lines of this file; - is stdin."),
    ] = None,
    data_directory: Annotated[
        Path | None, typer.Option(help="Where the server's files are, on this machine.")
    ] = None,
    json: Json = False,
) -> None:
    """Remove the bytes of what was deleted from tables, indexes and the write-ahead log.

    As a superuser everything; as the owner what an owner may, and the rest is named.
    """
    options: dict[str, Any] = {
        "exclusive": exclusive,
        "wal": not keep_wal,
        "lock_timeout": lock_timeout,
        "attempts": attempts,
    }
    report, searched = run(_scrub(options, verify, data_directory))
    if json:
        as_json(
            {
                "complete": report.complete,
                "steps": [asdict(step) for step in report.steps],
                "pending": [asdict(item) for item in report.pending],
                "verified": None if searched is None else _verified(*searched),
            }
        )
    else:
        _show(report)
        if searched is not None:
            _show_search(*searched)
    left = searched is not None and bool(searched[1].traces or searched[1].unreadable)
    finish(left or not report.complete)


async def _scrub(
    options: dict[str, Any], verify: Path | None, data_directory: Path | None
) -> tuple[Scrubbed, tuple[Residue, Residue] | None]:
    if (verify is None) is not (data_directory is None):
        raise InvalidInputError("--verify", "must come with --data-directory")
    if verify is None or data_directory is None:
        return await _scrubbed(options), None
    needles = _needles(verify)
    before = await _search(data_directory, needles)
    report = await _scrubbed(options)
    return report, (before, await _search(data_directory, needles))


async def _scrubbed(options: dict[str, Any]) -> Scrubbed:
    done = 0
    with bar() as progress:

        def told(step: ScrubStep) -> None:
            nonlocal done
            done += 1
            progress(f"{step.action} {step.target}", done, 0)

        return await scrub_files(database_url(), **options, progress=told)


async def _search(data_directory: Path, needles: list[str]) -> Residue:
    with bar() as progress:
        return await asyncio.to_thread(
            find_residue,
            data_directory,
            needles,
            progress=lambda _, number, total: progress("files", number, total),
        )


def _needles(file: Path) -> list[str]:
    with lines(file) as opened:
        try:
            return [line for line in b"".join(opened).decode().splitlines() if line.strip()]
        except UnicodeDecodeError:
            pass
    # Raised here, as the decoder's error holds the content.
    raise InvalidInputError("--verify", "must be a file of UTF-8 lines")


def _verified(before: Residue, after: Residue) -> dict[str, Any]:
    return {
        "needles": after.needles,
        "found_before": len(before.found),
        "found_after": len(after.found),
        "traces": [asdict(trace) for trace in after.traces],
        "unreadable": list(after.unreadable),
    }


def _show(report: Scrubbed) -> None:
    table(
        "Scrubbed",
        ("action", "target", "lock", "seconds", "detail"),
        [(s.action, s.target, s.lock, f"{s.seconds:.3f}", s.detail) for s in report.steps],
    )
    print_line("complete" if report.complete else "incomplete:")
    for item in report.pending:
        print_line(f"{item.code}: {item.detail}. {item.remedy}")


def _show_search(before: Residue, after: Residue) -> None:
    print_line(
        f"of {after.needles} lines {len(before.found)} were found before, {len(after.found)} after,"
        f" in {after.files} files"
    )
    if after.traces:
        # By number: a line may be what was to be erased.
        rows = [(trace.needle + 1, trace.encoding, trace.file) for trace in after.traces]
        table("Found", ("line", "encoding", "file"), rows)
    if after.unreadable:
        print_line(f"{len(after.unreadable)} files could not be read")
