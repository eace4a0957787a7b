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
from bisect import bisect_left, bisect_right
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
from memory.redaction.candidate import CLEARED, Candidate
from memory.redaction.normalise import Copy, normalise
from memory.redaction.view import Gate, View
from memory.types import Finding

__all__ = ["NoRedactor", "PatternRedactor"]

_Result = tuple[str, tuple[Finding, ...]]
_Detector = Callable[[View], Iterator[Candidate]]
_Entry = tuple[int, _Detector]
_Detectors = tuple[_Entry, ...]

_ROUNDS = 8
_KEPT = 1_000  # combinations of gates
_PAUSE = 16  # candidates between two pauses
_SHORT = 512  # characters of a text that one detector reads in no time
_JOINED_BEFORE = re.compile(r"[A-Za-z0-9_](?:[._+/%@-]{1,2}|::)?$")
_JOINED_AFTER = re.compile(r"[._+/%@:-]{0,2}[A-Za-z0-9_]")
_ALONE = frozenset(["", *" \n\t()[]\"',;"])
_COVERING = frozenset({"password", "secret"})

# The gate of the view behind which each stands, in the order in which overlaps are settled.
_FIRST: _Detectors = (
    (Gate.PRIVATE_KEY, credentials.private_keys),
    (Gate.JWT, credentials.jwts),
    (Gate.URL, addresses.url_passwords),
    (Gate.LONG, credentials.api_keys),
    (Gate.HEADER, credentials.authorization_headers),
    (Gate.SECRET, assignments.assigned_secrets),
    (Gate.LOGIN, assignments.told_passwords),
    (Gate.AT, addresses.emails_and_handles),
    (Gate.SPELLED_AT, addresses.spelled_emails),
    (Gate.GSTIN, codes.gstins),
    (Gate.IBAN, codes.ibans),
    (Gate.PAN, codes.pans),
    (Gate.IFSC, codes.ifscs),
    (Gate.VOTER, codes.voter_ids),
    (Gate.PASSPORT, codes.passports),
    (Gate.LICENCE, codes.driving_licences),
)


class PatternRedactor:
    """Masks identifiers by their patterns, their checksums and the words around them.

    ``extra_patterns`` are regular expressions of the deployment's own; a pair ``(kind, pattern)``
    names the kind, else it is ``custom``. ``bare_account_numbers`` masks every run of 9 to 18
    digits as an account, ``long_hexadecimal`` every run of 32 and more hexadecimal digits,
    ``ip_addresses`` IPv4 and IPv6. Safe to share between threads; keeps nothing of a text.

    Raises ``InvalidInputError`` for a pattern that matches the empty string or could take more than
    linear time.

    >>> from memory.redaction import PatternRedactor
    >>> redactor = PatternRedactor([("order", r"ORD-[0-9]{6}")])
    >>> redactor.redact("Order ORD-123456, call 98450 12345")[0]
    'Order [ORDER], call [PHONE:****2345]'
    >>> [found.kind for found in redactor.scan("ORD-123456")]
    ['order']
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
        numeric = partial(numbers.numbers, bare_accounts=bare_account_numbers)
        secrets = partial(assignments.long_secrets, always=long_hexadecimal)
        self._detectors: _Detectors = (
            *((Gate.ALWAYS, partial(custom.matches, *entry)) for entry in self._custom),
            *_FIRST,
            (Gate.DIGITS, numeric),
            (Gate.LONG, secrets),
            *(((Gate.ALWAYS, network.ip_addresses),) if ip_addresses else ()),
        )
        self._always = Gate.ALWAYS if self._custom or ip_addresses else 0
        self._behind: dict[int, _Detectors] = {}

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
        view = View(body)
        gates = view.gates() | self._always
        if not gates:
            return text, ()
        open_ = self._behind.get(gates) or self._choose(gates)
        detectors = open_
        chosen: list[Candidate] = []
        for _ in range(_ROUNDS):
            found, again = yield from _round(view, len(heading), detectors)
            chosen += found
            if not found:
                break
            if len(body) > _SHORT:
                yield
            detectors = open_ if _touching(view.text, found) else again
            if not detectors:
                break
            view = View(masks.hide(view.text, ((one.start, one.end) for one in found)))
        return _cut(text, copy, body, len(heading), chosen)

    def _choose(self, gates: int) -> _Detectors:
        """Return the detectors behind the gates; few combinations come up, and those are kept."""
        chosen = tuple([entry for entry in self._detectors if entry[0] & gates])
        if len(self._behind) < _KEPT:
            self._behind[gates] = chosen
        return chosen


def _round(
    view: View, floor: int, detectors: _Detectors
) -> Generator[None, None, tuple[list[Candidate], _Detectors]]:
    """Run the detectors and settle the overlaps; nothing before ``floor`` counts.

    Return what was found, and which detectors may find more once it is hidden: those that let
    something go because of what stands around it.
    """
    text = view.text
    fresh = masks.HIDDEN not in text
    chosen = _Chosen()
    passed: list[tuple[_Entry, list[Candidate]]] = []
    since = 0
    for entry in detectors:
        unsure = []
        for candidate in entry[1](view):
            since += 1
            if since % _PAUSE == 0:
                yield
            start, end, kind = candidate
            if (
                not kind
                or kind == CLEARED
                or (not fresh and masks.HIDDEN in text[start:end])
                or (start >= floor and not chosen.offer(candidate))
            ):
                unsure.append(candidate)
        if unsure:
            passed.append((entry, unsure))
        if len(text) > _SHORT:
            yield
    again = tuple([entry for entry, unsure in passed if not all(map(chosen.settles, unsure))])
    return chosen.candidates, again


def _touching(text: str, found: Sequence[Candidate]) -> bool:
    """Return whether a finding is joined to a word, which may read otherwise without it."""
    for start, end, _ in found:
        # Almost all stand alone, which is seen without a pattern.
        if text[start - 1 : start] not in _ALONE and _JOINED_BEFORE.search(
            text, max(0, start - 3), start
        ):
            return True
        if text[end : end + 1] not in _ALONE and _JOINED_AFTER.match(text, end):
            return True
    return False


def _cut(text: str, copy: Copy, body: str, heading: int, chosen: Sequence[Candidate]) -> _Result:
    """Put the masks into the original text."""
    findings: list[Finding] = []
    pieces: list[str] = []
    last = 0
    for start, end, kind in sorted(chosen):
        first, stop = copy.original(start - heading, end - heading)
        replacement = masks.mask(kind, body[start:end])
        findings.append(Finding(kind=kind, start=first, end=stop, replacement=replacement))
        pieces += text[last:first], replacement
        last = stop
    return "".join((*pieces, text[last:])), tuple(findings)


class _Chosen:
    """Candidates that do not overlap, in order of their start."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    def offer(self, candidate: Candidate) -> bool:
        """Take it unless an earlier one stands in its way; return whether nothing of it is left."""
        start, end, kind = candidate
        if not self._ends or start >= self._ends[-1]:
            self.candidates.append(candidate)
            self._starts.append(start)
            self._ends.append(end)
            return True
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if first < last:
            rivals = self.candidates[first:last]
            if kind not in _COVERING or not _covers(candidate, rivals):
                return rivals[0].start <= start and end <= rivals[-1].end
            del self.candidates[first:last], self._starts[first:last], self._ends[first:last]
        self.candidates.insert(first, candidate)
        self._starts.insert(first, start)
        self._ends.insert(first, end)
        return True

    def settles(self, candidate: Candidate) -> bool:
        """Return whether there is nothing new about it once what was taken is hidden."""
        start, end, kind = candidate
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if first == last:
            return kind == CLEARED
        return self._starts[first] <= start and end <= self._ends[first]


def _covers(candidate: Candidate, rivals: Sequence[Candidate]) -> bool:
    inside = candidate.start <= rivals[0].start and rivals[-1].end <= candidate.end
    return inside and candidate.end - candidate.start > rivals[-1].end - rivals[0].start


class NoRedactor:
    """Masks nothing. It has to be asked for.

    >>> from memory.redaction import NoRedactor
    >>> NoRedactor().redact("Call 98450 12345")
    ('Call 98450 12345', ())
    """

    def redact(self, text: str) -> _Result:
        """Return the text as it is."""
        return text, ()
