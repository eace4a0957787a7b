"""What is left of erased content in the files of a server; read only, on the server's machine."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memory import rendering
from memory.errors import InvalidInputError
from memory.maintenance.compressed import unpack_all
from memory.maintenance.needles import Needle, Pattern, fold, patterns

__all__ = ["Residue", "Trace", "find_residue"]

_BLOCK = 8 << 20
_WORD = 8
_SHORTEST = 4
_APART = bytes(64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """A file, relative to the data directory, in which a needle was found.

    ``needle`` is the needle's position among those given. ``encoding`` is ``text``, ``bytes``,
    ``json``, ``hex``, ``base64``, ``float32`` or ``float16``; ``compressed`` where the value was.

    >>> from memory import maintenance
    >>> (data_directory / "log").write_bytes(b"Dana moved to Pune")
    18
    >>> maintenance.find_residue(data_directory, ["Dana moved to Pune"]).traces
    (Trace(needle=0, encoding='text', compressed=False, file='log'),)
    """

    needle: int
    encoding: str
    compressed: bool
    file: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Residue:
    """What a search of the files found; it holds no needle.

    ``unreadable`` names files that this process may not read: what they hold is not known.

    >>> from memory import maintenance
    >>> found = maintenance.find_residue(data_directory, ["Dana moved to Pune"])
    >>> found.files, found.share, found.traces
    (1, 0.0, ())
    """

    needles: int
    files: int
    bytes: int
    traces: tuple[Trace, ...]
    unreadable: tuple[str, ...]

    @property
    def found(self) -> frozenset[int]:
        """Positions of the needles that were found."""
        return frozenset(trace.needle for trace in self.traces)

    @property
    def share(self) -> float:
        """The share of the needles that were found, from 0 to 1."""
        return len(self.found) / self.needles

    def _repr_html_(self) -> str:
        rows = [(t.needle, t.encoding, t.compressed, t.file) for t in self.traces]
        caption = f"{len(self.found)} of {self.needles} found in {self.files} files"
        return rendering.table(("needle", "encoding", "compressed", "file"), rows, caption=caption)


def find_residue(
    data_directory: str | Path,
    needles: Iterable[Needle],
    *,
    fragment: int | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Residue:
    """Search every file below a data directory for texts, keys and vectors; it blocks.

    Each text is searched as it is, case-folded, as base64, as hex and as JSON writes it; a vector
    as float32 and float16; all of them also in values that PostgreSQL compressed (pglz, lz4), of
    which the first two kilobytes are unpacked. ``fragment`` (bytes, 8 or more)
    finds remnants too: pieces of that length stand for what is longer. Run a CHECKPOINT first: the
    files are what counts, not the server's buffers. ``progress`` is called with a file's name, its
    number and their count.

    Not searched: compressed page images in the write-ahead log (``wal_compression``), and whatever
    lies outside the directory, tablespaces excepted.

    Raises ``InvalidInputError`` for a needle too short to mean anything, for none, and for a
    directory that is not of PostgreSQL.

    >>> from memory import maintenance
    >>> maintenance.find_residue(data_directory, ["Dana moved to Pune"]).share
    0.0
    """
    root = Path(data_directory)
    if not (root / "PG_VERSION").is_file():
        raise InvalidInputError("data_directory", "must be a PostgreSQL data directory")
    wanted = list(needles)
    if not wanted:
        raise InvalidInputError("needles", "must name something to search for")
    search = _Search(patterns(wanted, fragment))
    files = list(_files(root))
    traces: set[tuple[int, str, bool, str]] = set()
    unreadable = []
    size = 0
    for number, path in enumerate(files, 1):
        name = str(path.relative_to(root))
        if progress is not None:
            progress(name, number, len(files))
        try:
            with path.open("rb") as file:
                traces |= {(*found, name) for found in search.run(file)}
                size += file.tell()
        except FileNotFoundError:
            continue  # a server at work removes files
        except OSError:
            unreadable.append(name)
    return Residue(
        needles=len(wanted),
        files=len(files),
        bytes=size,
        traces=tuple(
            Trace(needle=needle, encoding=encoding, compressed=compressed, file=name)
            for needle, encoding, compressed, name in sorted(traces)
        ),
        unreadable=tuple(unreadable),
    )


def _files(root: Path) -> Iterator[Path]:
    """List regular files, those of tablespaces and of a log elsewhere too."""
    links = [root / "pg_wal", *(root / "pg_tblspc").glob("*")]
    folders = [root, *(link for link in links if link.is_symlink())]
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield path


class _Search:
    """Looks for many patterns at once, at a cost that hardly depends on how many.

    The content is read as numbers of eight bytes, each of which is looked up among those that a
    pattern may begin with, whatever its place between two numbers is.
    """

    def __init__(self, wanted: list[Pattern]) -> None:
        self._short = [pattern for pattern in wanted if len(pattern.value) < 2 * _WORD - 1]
        self._long = [pattern for pattern in wanted if len(pattern.value) >= 2 * _WORD - 1]
        # Numbers, not lists, but where two begin alike: there are millions of words.
        self._first: dict[int, int] = {}
        self._others: dict[int, list[int]] = {}
        for number, pattern in enumerate(self._long):
            for word in _first_words(fold(pattern.value)):
                if self._first.setdefault(word, number) != number:
                    self._others.setdefault(word, []).append(number)
        self._words = frozenset(self._first)
        self._longest = max(len(pattern.value) for pattern in wanted)
        # Databases begin as copies of each other: the same content is searched once.
        self._alike: dict[bytes, set[tuple[int, str, bool]]] = {}
        self._zeros = re.compile(rb"\x00{%d,}" % (2 * self._longest + 64))

    def run(self, file: BinaryIO) -> set[tuple[int, str, bool]]:
        """Return needle and encoding of what is in the file, and whether it was compressed."""
        first = file.read(_BLOCK)
        if len(first) == _BLOCK:
            return self._run(file, first)
        digest = hashlib.sha256(first).digest()
        if digest not in self._alike:
            self._alike[digest] = self._run(file, first)
        return self._alike[digest]

    def _run(self, file: BinaryIO, block: bytes) -> set[tuple[int, str, bool]]:
        found: set[tuple[int, str, bool]] = set()
        kept = b""
        while block:
            content = kept + block
            kept = content[-max(self._longest, 4096) :]
            for piece in self._without_zeros(content):
                self._look(piece, False, found)
                for values in _joined(unpack_all(piece)):
                    self._look(values, True, found)
            block = file.read(_BLOCK)
        return found

    def _without_zeros(self, content: bytes) -> Iterator[bytes]:
        """Leave out long runs of zeros, but what a pattern may begin or end with."""
        start = 0
        for run in self._zeros.finditer(content):
            yield content[start : run.start() + self._longest]
            start = run.end() - self._longest
        yield content[start:]

    def _look(self, content: bytes, compressed: bool, found: set[tuple[int, str, bool]]) -> None:
        folded = fold(content)
        view = memoryview(folded)
        words = view[: len(view) // _WORD * _WORD].cast("Q")
        candidates = [
            self._long[number]
            for word in self._words.intersection(words)
            for number in (self._first[word], *self._others.get(word, ()))
        ]
        for pattern in (*self._short, *candidates):
            trace = (pattern.needle, pattern.encoding, compressed)
            if trace not in found and (
                pattern.value in content if pattern.exact else fold(pattern.value) in folded
            ):
                found.add(trace)


def _joined(values: Iterable[bytes]) -> Iterator[bytes]:
    """Put many small values together, apart from each other: looking at each costs more."""
    held = bytearray()
    for value in values:
        if len(value) >= _SHORTEST:
            held += value
            held += _APART
        if len(held) >= _BLOCK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _first_words(value: bytes) -> list[int]:
    number = int.from_bytes(value[: 2 * _WORD - 1], sys.byteorder)
    return [number >> 8 * at & 0xFFFF_FFFF_FFFF_FFFF for at in range(_WORD)]
