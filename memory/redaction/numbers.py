"""Identifiers made of digits: which runs of digit groups are put to the rules.

Digits are collected in chains, groups with at most three separators between. Within a chain every
run of whole groups that adds up to 8 to 19 digits is tried, from the left and the longest first,
so that a card number is not taken for the Aadhaar number its first twelve digits may make. A run
never cuts a group, and is not taken where it is a piece of something longer: a group glued to
letters, a hyphen or a dot with more digits behind it, one more group of the same length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.redaction import context
from memory.redaction.candidate import Candidate
from memory.redaction.rules import LEADS, Number, classify
from memory.redaction.view import View

__all__ = ["numbers"]

_CHAIN = re.compile(r"[0-9](?:[ \-.()\t\r\n]{0,3}+[0-9]){7,}+")
_GROUP = re.compile(r"[0-9]+")
_PLUS = re.compile(r"\+[ (]?$")
_LONGEST = 19
_TIGHT = frozenset("-._/")
# Hinglish postpositions that get written without the space: 9876543210pe.
_TAIL = re.compile(r"(?:pe|par|ko|se|ka|ki|hai|wala|ji)(?![A-Za-z0-9])", re.IGNORECASE)
# 2024/9876543210 is a reference; 9123456780/9876543210 are two numbers.
_SHORT = re.compile(r"(?<![0-9])[0-9]{1,6}[./]$|[0-9]\.$")
_HEAD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2,12}$")


def numbers(view: View, *, bare_accounts: bool = False) -> Iterator[Candidate]:
    """Yield the digit identifiers of the copy, from left to right."""
    for match in _CHAIN.finditer(view.text):
        yield from _Chain(view.text, *match.span(), bare_accounts).candidates()


class _Chain:
    """One chain of digit groups and what the text says around it."""

    def __init__(self, text: str, start: int, end: int, bare_accounts: bool) -> None:
        self._text = text
        self._bare_accounts = bare_accounts
        self._spans = [match.span() for match in _GROUP.finditer(text, start, end)]
        self._lengths = [last - first for first, last in self._spans]

    def candidates(self) -> Iterator[Candidate]:
        first, count = 0, len(self._spans)
        floor = 0  # groups before it are masked
        while first < count:
            taken = self._longest(first, floor)
            if taken is None:
                first += 1
                continue
            last, candidate = taken
            yield candidate
            first = floor = last + 1

    def _longest(self, first: int, floor: int) -> tuple[int, Candidate] | None:
        """Return the longest run from this group on that a rule takes, and its last group."""
        ends = []
        total = 0
        for last in range(first, len(self._spans)):
            total += self._lengths[last]
            if total > _LONGEST:
                break
            if total >= 8:
                ends.append(last)
        for last in reversed(ends):
            if not self._whole(first, last, floor):
                continue
            kind = self._kind(first, last)
            if kind:
                return last, self._candidate(first, last, kind)
        return None

    def _joint(self, left: int) -> str:
        """Return what stands between a group and the next."""
        return self._text[self._spans[left][1] : self._spans[left + 1][0]]

    def _whole(self, first: int, last: int, floor: int) -> bool:
        """Return whether the run is written as one number and is not a piece of a longer one."""
        joints = "".join(self._joint(at) for at in range(first, last))
        if joints.count("\n") > 1:
            return False
        if first > floor and self._continues(first - 1, first, first, last):
            return False
        return not (last + 1 < len(self._spans) and self._continues(last, last + 1, first, last))

    def _continues(self, left: int, right: int, first: int, last: int) -> bool:
        """Return whether the number goes on across the border between two groups."""
        joint = self._joint(left)
        if joint in _TIGHT:
            return True
        if first == last or self._lengths[left] != self._lengths[right]:
            return False
        inner = self._joint(first)
        return joint == inner and not self._tiles(first, last)

    def _tiles(self, first: int, last: int) -> bool:
        """Return whether equal groups go on for a whole number of such runs: a list of numbers."""
        size, length, count = last - first + 1, self._lengths[first], len(self._lengths)
        begin, end = first, last
        while begin and self._lengths[begin - 1] == length:
            begin -= 1
            if first - begin > 4 * size:
                return False
        while end + 1 < count and self._lengths[end + 1] == length:
            end += 1
            if end - last > 4 * size:
                return False
        return (end - begin + 1) % size == 0 and (first - begin) % size == 0

    def _kind(self, first: int, last: int) -> str:
        text = self._text
        start, end = self._spans[first][0], self._spans[last][1]
        prefix = self._prefix(start)
        if prefix is None or not self._ends(end):
            return ""
        digits = "".join(text[begin:stop] for begin, stop in self._spans[first : last + 1])
        lengths = tuple(self._lengths[first : last + 1])
        plus = first == 0 and _PLUS.search(text, max(0, start - 2), start) is not None
        if not plus and len(digits) < 9:
            return ""
        number = Number(
            digits=digits,
            lengths=lengths,
            joints="".join(self._joint(at) for at in range(first, last)),
            plus=plus,
            said=context.about(text, start, end, frozenset(lengths)),
            prefix=prefix,
        )
        kind = classify(number)
        if not kind and self._bare_accounts and number.bare and 9 <= len(digits) <= 18:
            return "bank_account"
        return kind

    def _prefix(self, start: int) -> str | None:
        """Return what a glued word makes of the number; None where it is no number of its own."""
        text = self._text
        before = text[start - 1 : start]
        if before.isascii() and before.isalnum():
            word = _HEAD.search(text, max(0, start - 13), start)
            cue = context.cue_of(word[0]) if word else ""
            return cue if cue in LEADS else None
        if before and before in "-_/#.":
            if before in "./" and _SHORT.search(text, max(0, start - 8), start):
                return None
            return context.glued(text, start)
        return ""

    def _ends(self, end: int) -> bool:
        after = self._text[end : end + 1]
        if after.isascii() and after.isalnum():
            return _TAIL.match(self._text, end) is not None
        following = self._text[end + 1 : end + 2]
        return not (after in {"_", "."} and following.isascii() and following.isalnum())

    def _candidate(self, first: int, last: int, kind: str) -> Candidate:
        """Return the span, with a leading plus and an opening bracket that closes inside."""
        text = self._text
        start, end = self._spans[first][0], self._spans[last][1]
        if first == 0 and (plus := _PLUS.search(text, max(0, start - 2), start)):
            start = plus.start()
        if text[start - 1 : start] == "(" and ")" in text[start:end]:
            start -= 1
        return Candidate(start, end, kind)
