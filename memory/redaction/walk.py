"""Redaction of a whole record: its text, and every string, number and key of its metadata."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from memory.errors import InvalidInputError, MemoryServiceError
from memory.plain import exact
from memory.ports import Redactor
from memory.redaction.engine import PatternRedactor
from memory.types import Finding

__all__ = ["MAX_DEPTH", "MAX_SIZE", "Redacted", "redact_fields", "redact_many"]

MAX_DEPTH = 32
MAX_SIZE = 64 * 1024
MAX_PATHS = 16 * MAX_SIZE
_SLICE = 0.002  # seconds between two looks at the event loop
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

_Masked = tuple[str, Sequence[Finding]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Redacted:
    """A record's text and metadata with identifiers masked, and what was masked where.

    ``findings`` carry the path they stood at; ``paths`` are the distinct ones, sorted.

    >>> from memory.redaction import default_redactor, redact_fields
    >>> masked = redact_fields(default_redactor, "See below", {"phone": "98450 12345"})
    >>> masked.metadata, masked.paths
    ({'phone': '[PHONE:****2345]'}, ('metadata.phone',))
    """

    text: str = field(repr=False)
    metadata: dict[str, Any] = field(repr=False)
    findings: tuple[Finding, ...] = ()
    paths: tuple[str, ...] = field(default=(), repr=False)


def redact_fields(redactor: Redactor, text: str, metadata: Mapping[str, Any]) -> Redacted:
    """Return text and metadata with every identifier masked; the arguments are left as they are.

    The metadata is copied into plain dicts and lists. A number is masked as the digits it is
    written in. The key above a value counts as the words before it. Keys that would become equal
    are told apart by a number.

    Raises ``InvalidInputError`` for what JSON or the database cannot hold (bytes, sets, NaN, NUL,
    lone surrogates, keys that are no strings), for metadata over 64 KiB or nested deeper than 32,
    and ``MemoryServiceError`` when a redactor of the host's fails.

    >>> from memory.redaction import default_redactor, redact_fields
    >>> redact_fields(default_redactor, "Call 98450 12345", {"order": 7}).text
    'Call [PHONE:****2345]'
    """
    steps = _Walk(redactor).record(text, metadata)
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: Redacted = finished.value
            return result


async def redact_many(
    redactor: Redactor, items: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[Redacted]:
    """Redact many records, giving the event loop its turn every two milliseconds.

    :class:`~memory.redaction.PatternRedactor` is interrupted between candidates, so that one long
    text does not hold the loop either; another redactor only between its calls.

    >>> from memory.redaction import default_redactor, redact_many
    >>> [masked] = await redact_many(default_redactor, [("Call 98450 12345", {})])
    >>> masked.text
    'Call [PHONE:****2345]'
    """
    results = []
    due = time.perf_counter() + _SLICE
    for text, metadata in items:
        steps = _Walk(redactor).record(text, metadata)
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                results.append(finished.value)
                break
            if time.perf_counter() >= due:
                await asyncio.sleep(0)
                due = time.perf_counter() + _SLICE
    return results


class _Walk:
    """One record on its way through a redactor. Every ``yield`` is a place to pause."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._findings: list[Finding] = []
        self._paths: set[str] = set()
        self._size = 0
        self._noted = 0
        self._open: set[int] = set()

    def record(self, text: str, metadata: Mapping[str, Any]) -> Generator[None, None, Redacted]:
        masked_text = yield from self._string(text, "text")
        masked = yield from self._mapping(metadata, "metadata", 1)
        return Redacted(
            text=masked_text,
            metadata=masked,
            findings=tuple(self._findings),
            paths=tuple(sorted(self._paths)),
        )

    def _masked(self, text: str, label: str = "") -> Generator[None, None, _Masked]:
        yield
        text = exact(text)
        if isinstance(self._redactor, PatternRedactor):
            return (yield from self._redactor.steps(text, label))
        return _call(self._redactor, text)

    def _string(self, text: str, path: str, label: str = "") -> Generator[None, None, str]:
        masked, findings = yield from self._masked(text, label)
        if masked != text or findings:
            self._note(findings, path)
        return masked

    def _note(self, findings: Sequence[Finding], path: str) -> None:
        if path not in self._paths:
            # Every path repeats the keys above it: one long key over many values multiplies.
            self._paths.add(path)
            self._noted += len(path)
            if self._noted > MAX_PATHS:
                raise InvalidInputError("metadata", "must have shorter keys above what is masked")
        if path == "text":
            self._findings.extend(findings)
            return
        self._findings.extend(
            Finding(
                kind=found.kind,
                start=found.start,
                end=found.end,
                replacement=found.replacement,
                path=path,
            )
            for found in findings
        )

    def _mapping(
        self, items: Mapping[Any, Any], path: str, depth: int
    ) -> Generator[None, None, dict[str, Any]]:
        self._enter(items, path, depth)
        if not items:
            self._open.discard(id(items))
            return {}
        keys = yield from self._keys(items, path)
        result = {}
        for (key, value), masked_key in zip(items.items(), keys, strict=True):
            label = key if masked_key == key else ""
            result[masked_key] = yield from self._value(value, f"{path}.{masked_key}", depth, label)
        self._open.discard(id(items))
        return result

    def _keys(self, items: Mapping[Any, Any], path: str) -> Generator[None, None, list[str]]:
        """Mask the keys. Unmasked ones keep their names; the others take the next free one."""
        masked = []
        for key in items:
            if not isinstance(key, str):
                raise InvalidInputError(path, "keys must be strings")
            self._count(key, path)
            masked.append((yield from self._masked(key)))
        taken = {key for key, (name, _) in zip(items, masked, strict=True) if name == key}
        names = []
        for key, (name, findings) in zip(items, masked, strict=True):
            free = name
            if name != key:
                free = _next_free(name, taken)
                taken.add(free)
                self._note(findings, f"{path}.{free}")
            names.append(free)
        return names

    def _value(self, value: Any, path: str, depth: int, label: str) -> Generator[None, None, Any]:
        if value is None or isinstance(value, bool):
            self._count("", path)
            return value
        if isinstance(value, str):
            self._count(value, path)
            return (yield from self._string(value, path, label))
        if isinstance(value, int | float):
            return (yield from self._number(value, path, label))
        if isinstance(value, Mapping):
            return (yield from self._mapping(value, path, depth + 1))
        if isinstance(value, list | tuple):
            return (yield from self._sequence(value, path, depth + 1, label))
        raise InvalidInputError(path, "must be a JSON value")

    def _number(self, value: float, path: str, label: str) -> Generator[None, None, Any]:
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInputError(path, "must be a finite number")
        if isinstance(value, int) and value.bit_length() > 1024:
            raise InvalidInputError(path, "must be an integer of at most 1,024 bits")
        whole = isinstance(value, int) or value.is_integer()
        written = str(int(value)) if whole else repr(value)
        self._count(written, path)
        masked = yield from self._string(written, path, label)
        return value if masked == written else masked

    def _sequence(
        self, values: Sequence[Any], path: str, depth: int, label: str
    ) -> Generator[None, None, list[Any]]:
        self._enter(values, path, depth)
        result = []
        for index, value in enumerate(values):
            result.append((yield from self._value(value, f"{path}.{index}", depth, label)))
        self._open.discard(id(values))
        return result

    def _enter(self, container: object, path: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise InvalidInputError(path, f"must not be nested deeper than {MAX_DEPTH}")
        if id(container) in self._open:
            raise InvalidInputError(path, "must not contain itself")
        self._open.add(id(container))
        self._count("", path)

    def _count(self, text: str, path: str) -> None:
        """Refuse what cannot be stored, and stop before a nested repetition unfolds for ever."""
        if _UNSTORABLE.search(text) is not None:
            raise InvalidInputError(path, "must not hold NUL or a lone surrogate")
        self._size += len(text) + 2
        if self._size > MAX_SIZE:
            raise InvalidInputError("metadata", f"must be at most {MAX_SIZE // 1024} KiB")


def _next_free(name: str, taken: set[str]) -> str:
    """Return the name, numbered if another key already has it: nothing may be overwritten."""
    number = 2
    free = name
    while free in taken:
        free = f"{name} ({number})"
        number += 1
    return free


def _call(redactor: Redactor, text: str) -> tuple[str, Sequence[Finding]]:
    """Call a redactor of the host's and check what it returns."""
    try:
        result: Any = redactor.redact(text)
    except Exception as error:
        result, failure = None, type(error).__name__
    else:
        failure = ""
    if failure:
        # Raised out here: as __context__ the error would carry the text into a log.
        raise MemoryServiceError(f"the redactor raised {failure}; nothing was stored")
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], str):
        _refuse()
    masked, findings = result
    if not isinstance(findings, list | tuple):
        _refuse()
    if not all(isinstance(found, Finding) for found in findings):
        _refuse()
    return exact(masked), findings


def _refuse() -> NoReturn:
    raise MemoryServiceError("the redactor must return the masked text and a sequence of Finding")
