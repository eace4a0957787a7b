"""The redactor itself: normalise, detect, settle overlaps, mask."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from memory.redaction import masks
from memory.redaction.normalise import normalise
from memory.types import Finding

__all__ = ["Candidate", "NoRedactor", "PatternRedactor"]


class Candidate(NamedTuple):
    """A span of the copy that a detector takes for an identifier."""

    start: int
    end: int
    kind: str


_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)
_MOBILE = re.compile(r"(?<![0-9A-Za-z+])(?:\+?91[ -]?|0)?[6-9][0-9]{4}[ -]?[0-9]{5}(?![0-9A-Za-z])")


def _detect(text: str) -> Iterator[Candidate]:
    for kind, pattern in (("email", _EMAIL), ("phone_in", _MOBILE)):
        for match in pattern.finditer(text):
            yield Candidate(*match.span(), kind)


class PatternRedactor:
    """Masks what its patterns recognise."""

    def __init__(
        self, extra_patterns: Sequence[str] = (), *, bare_account_numbers: bool = False
    ) -> None:
        self._masks = masks.recognise()

    def redact(self, text: str) -> tuple[str, tuple[Finding, ...]]:
        """Return the text with identifiers masked, and a finding for each."""
        steps = self.steps(text)
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                result: tuple[str, tuple[Finding, ...]] = finished.value
                return result

    def scan(self, text: str) -> tuple[Finding, ...]:
        """Return what would be masked."""
        return self.redact(text)[1]

    def steps(
        self, text: str, label: str = ""
    ) -> Generator[None, None, tuple[str, tuple[Finding, ...]]]:
        """Redact as :meth:`redact` does, pausing at every ``yield``."""
        copy = normalise(text)
        body = copy.text
        for match in self._masks.finditer(body):
            body = masks.hide(body, *match.span())
        findings: list[Finding] = []
        pieces: list[str] = []
        last = 0
        for candidate in sorted(_detect(body)):
            yield
            start, end = copy.original(candidate.start, candidate.end)
            if start < last:
                continue
            replacement = masks.mask(candidate.kind, body[candidate.start : candidate.end])
            findings.append(
                Finding(kind=candidate.kind, start=start, end=end, replacement=replacement)
            )
            pieces += text[last:start], replacement
            last = end
        return "".join((*pieces, text[last:])), tuple(findings)


class NoRedactor:
    """Masks nothing. It has to be asked for."""

    def redact(self, text: str) -> tuple[str, tuple[Finding, ...]]:
        """Return the text as it is."""
        return text, ()
