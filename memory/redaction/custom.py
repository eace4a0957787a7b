"""A deployment's own patterns, and the proof that they run in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memory.errors import InvalidInputError
from memory.redaction import linear
from memory.redaction.candidate import Candidate
from memory.redaction.view import View

__all__ = ["compile_all", "matches"]

_KIND = re.compile(r"[a-z][a-z0-9_]{0,39}")


def compile_all(
    patterns: Sequence[str | tuple[str, str]],
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the compiled patterns with their kinds, or raise ``InvalidInputError``."""
    compiled = []
    for index, entry in enumerate(patterns):
        field = f"extra_patterns.{index}"
        kind, pattern = ("custom", entry) if isinstance(entry, str) else entry
        if not _KIND.fullmatch(kind):
            raise InvalidInputError(field, "the kind must be a short lower-case name")
        compiled.append((kind, _compiled(field, pattern)))
    return tuple(compiled)


def _compiled(field: str, pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error:
        compiled = None
    if compiled is None:
        raise InvalidInputError(field, "is not a regular expression")
    objection = linear.objection(pattern)
    if objection:
        raise InvalidInputError(field, objection)
    return compiled


def matches(kind: str, pattern: re.Pattern[str], view: View) -> Iterator[Candidate]:
    """Yield what the pattern finds in the copy."""
    for match in pattern.finditer(view.text):
        if match.end() > match.start():
            yield Candidate(*match.span(), kind)
