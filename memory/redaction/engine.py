"""The redactor itself: normalise, detect, settle overlaps, mask.

Detectors run in a fixed order, and where two candidates overlap the earlier one wins:

1. the deployment's own patterns
2. private keys, JWTs, passwords in URLs, API keys, authorization headers
3. assigned and told passwords and secrets; one that covers an earlier candidate takes its place
4. e-mail and UPI addresses
5. GSTIN, IBAN, PAN, IFSC, then voter id, passport and driving licence
6. everything made of digits
7. long secrets beside a cue and, if asked for, IP addresses

What was found is hidden and the rest looked at again until nothing is found, so a second call has
nothing to add.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial

from memory.redaction import (
    addresses,
    assignments,
    codes,
    credentials,
    custom,
    masks,
    network,
    numbers,
)
from memory.redaction.candidate import Candidate
from memory.redaction.normalise import normalise
from memory.types import Finding

__all__ = ["NoRedactor", "PatternRedactor"]

_Result = tuple[str, tuple[Finding, ...]]
_Detector = Callable[[str], Iterator[Candidate]]

_DIGIT = re.compile("[0-9]")
_ROUNDS = 8
_PAUSE = 16  # candidates between two pauses
_COVERING = frozenset({"password", "secret"})


class PatternRedactor:
    """Masks identifiers by their patterns, their checksums and the words around them.

    ``extra_patterns`` are regular expressions of the deployment's own; a pair ``(kind, pattern)``
    names the kind, else it is ``custom``. ``bare_account_numbers`` masks every run of 9 to 18
    digits as an account, ``long_hexadecimal`` every run of 32 and more hexadecimal digits,
    ``ip_addresses`` IPv4 and IPv6. Immutable, and safe to share between threads.

    Raises ``InvalidInputError`` for a pattern that matches the empty string or could take more than
    linear time.
    """

    def __init__(
        self,
        extra_patterns: Sequence[str | tuple[str, str]] = (),
        *,
        bare_account_numbers: bool = False,
        long_hexadecimal: bool = False,
        ip_addresses: bool = False,
    ) -> None:
        self._custom = custom.compile_all(extra_patterns)
        self._masks = masks.recognise(kind for kind, _ in self._custom)
        self._always: tuple[_Detector, ...] = (
            credentials.private_keys,
            credentials.jwts,
            addresses.url_passwords,
            credentials.api_keys,
            credentials.authorization_headers,
            assignments.assigned_secrets,
            assignments.told_passwords,
            addresses.emails_and_handles,
            addresses.spelled_emails,
        )
        self._numeric: tuple[_Detector, ...] = (
            codes.gstins,
            codes.ibans,
            codes.pans,
            codes.ifscs,
            codes.voter_ids,
            codes.passports,
            codes.driving_licences,
            partial(numbers.numbers, bare_accounts=bare_account_numbers),
        )
        self._last: tuple[_Detector, ...] = (
            partial(assignments.long_secrets, always=long_hexadecimal),
            *((network.ip_addresses,) if ip_addresses else ()),
        )

    def redact(self, text: str) -> _Result:
        """Return the text with identifiers masked, and a finding for each, in order."""
        steps = self.steps(text)
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                result: _Result = finished.value
                return result

    def scan(self, text: str) -> tuple[Finding, ...]:
        """Return a finding for each identifier that would be masked, without the values."""
        return self.redact(text)[1]

    def steps(self, text: str, label: str = "") -> Generator[None, None, _Result]:
        """Redact as :meth:`redact` does, pausing at every ``yield``.

        ``label`` is read as words before the text: the key a metadata value stands under.
        """
        copy = normalise(text)
        heading = f"{normalise(label).text}: " if label else ""
        body = heading + copy.text
        if "[" in body:
            body = masks.hide(body, (match.span() for match in self._masks.finditer(body)))
        chosen: list[Candidate] = []
        hidden = body
        for _ in range(_ROUNDS):
            found = yield from self._round(hidden, len(heading))
            if not found:
                break
            chosen += found
            hidden = masks.hide(hidden, ((one.start, one.end) for one in found))
        findings: list[Finding] = []
        pieces: list[str] = []
        last = 0
        for start, end, kind in sorted(chosen):
            first, stop = copy.original(start - len(heading), end - len(heading))
            replacement = masks.mask(kind, body[start:end])
            findings.append(Finding(kind=kind, start=first, end=stop, replacement=replacement))
            pieces += text[last:first], replacement
            last = stop
        return "".join((*pieces, text[last:])), tuple(findings)

    def _round(self, text: str, floor: int) -> Generator[None, None, list[Candidate]]:
        """Run every detector once and settle the overlaps; nothing before ``floor`` counts."""
        chosen = _Chosen()
        since = 0
        for detector in self._detectors(text):
            for candidate in detector(text):
                since += 1
                if since % _PAUSE == 0:
                    yield
                if (
                    candidate.start >= floor
                    and masks.HIDDEN not in text[candidate.start : candidate.end]
                ):
                    chosen.offer(candidate)
            yield
        return chosen.candidates

    def _detectors(self, text: str) -> Iterator[_Detector]:
        for kind, pattern in self._custom:
            yield partial(custom.matches, kind, pattern)
        yield from self._always
        if _DIGIT.search(text):
            yield from self._numeric
        yield from self._last


class _Chosen:
    """Candidates that do not overlap, in order of their start."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []

    def offer(self, candidate: Candidate) -> None:
        """Take the candidate unless an earlier one stands in its way."""
        kept = self.candidates
        first = bisect_left(kept, candidate.start, key=lambda one: one.end - 1)
        last = bisect_left(kept, candidate.end, lo=first, key=lambda one: one.start)
        rivals = kept[first:last]
        if rivals and not (candidate.kind in _COVERING and _covers(candidate, rivals)):
            return
        kept[first:last] = [candidate]


def _covers(candidate: Candidate, rivals: Sequence[Candidate]) -> bool:
    inside = candidate.start <= rivals[0].start and rivals[-1].end <= candidate.end
    return inside and candidate.end - candidate.start > rivals[-1].end - rivals[0].start


class NoRedactor:
    """Masks nothing. It has to be asked for."""

    def redact(self, text: str) -> _Result:
        """Return the text as it is."""
        return text, ()
