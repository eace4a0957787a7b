"""Files that commands read and write; ``-`` is the standard input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from memory.entries import MAX_LINE, is_hash
from memory.errors import InvalidInputError
from memory.types import Anchor

__all__ = ["anchor_of", "lines", "read_anchors", "written"]


@contextmanager
def lines(file: Path) -> Iterator[Iterator[bytes]]:
    """Open a stream of JSON lines; ``-`` is the standard input."""
    if str(file) == "-":
        yield _short(sys.stdin.buffer)
        return
    with file.open("rb") as opened:
        yield _short(opened)


def _short(file: IO[bytes]) -> Iterator[bytes]:
    # A line that is longer than any may be is cut, and refused for its length.
    return iter(partial(file.readline, MAX_LINE + 1), b"")


@contextmanager
def written(output: Path | None) -> Iterator[IO[bytes]]:
    """Open the output; a file is its owner's alone, and gets its name when all is in it.

    What is written to a file can be read from it again before.
    """
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    partial = output.with_name(f"{output.name}.partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
        try:
            yield file
            file.flush()
            # A crash leaves what was there before, or all of this.
            os.fsync(file.fileno())
        except BaseException:
            # It may hold what an erasure is about to remove.
            partial.unlink(missing_ok=True)
            raise
    partial.replace(output)


def anchor_of(given: str) -> Anchor:
    """Return the anchor that an argument names: the position, a colon, the digest."""
    seq, _, digest = given.partition(":")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 20 and is_hash(digest)):
        raise InvalidInputError("--anchor", "must be SEQ:DIGEST, as a receipt's anchor has them")
    return Anchor(seq=int(seq), digest=digest)


def read_anchors(file: Path | None) -> dict[str, Anchor]:
    """Read anchors: JSON lines with ``tenant_key``, ``seq`` and ``digest``, as ``head`` lines.

    What ``memory forget --json`` printed is such a line, too.
    """
    found: dict[str, Anchor] = {}
    if file is None:
        return found
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        found.update([_anchor(line, number)])
    return found


def _anchor(line: bytes, number: int) -> tuple[str, Anchor]:
    try:
        values = json.loads(line)
        values = values["receipt"]["anchor"] if "receipt" in values else values
        key, seq, digest = (values[name] for name in ("tenant_key", "seq", "digest"))
    except (ValueError, KeyError, TypeError, RecursionError):
        key = seq = digest = None
    if isinstance(key, str) and isinstance(seq, int) and isinstance(digest, str):
        return key, Anchor(seq=seq, digest=digest)
    raise InvalidInputError(f"anchors.{number}", "must have tenant_key, seq and digest")
