"""Identifiers made of digits: which runs of digit groups are put to the rules.

Digits are collected in chains, groups with at most three separators between. Within a chain every
run of whole groups that adds up to 8 to 19 digits is tried, from the left and the longest first,
so that a card number is not taken for the Aadhaar number its first twelve digits may make. A run
never cuts a group, and is not taken where it is a piece of something longer: a group glued to
letters, a hyphen or a dot with more digits behind it, one more group of the same length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memory.redaction import context
from memory.redaction.backwards import cue_start
from memory.redaction.candidate import CLEARED, Candidate
from memory.redaction.rules import LEADS, Number, classify
from memory.redaction.view import View

__all__ = ["numbers"]

_CHAIN = re.compile(r"[0-9](?:[ \-.()\t\r\n]{0,3}+[0-9]){7,}+")
_GROUP = re.compile(r"[0-9]+")
_SHORTEST, _LONGEST = 8, 19
_GROUPS = 6  # in a long chain; only a short one may be a number written digit by digit
_APART = frozenset({". ", ".  ", ".\n", ".\t"})  # the end of a sentence
_APART_FROM_WORDS = frozenset(["", *" \n\t,;()"])
_TIGHT = frozenset("-._/")
# Hinglish postpositions that get written without the space: 9876543210pe.
_TAIL = re.compile(r"(?:pe|par|ko|se|ka|ki|hai|wala|ji)(?![A-Za-z0-9])", re.IGNORECASE)
# 2024/9876543210 is a reference; 9123456780/9876543210 are two numbers.
_SHORT = re.compile(r"(?<![0-9])[0-9]{1,6}[./]$|[0-9]\.$")
_HEAD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2,12}$")


def numbers(view: View, *, bare_accounts: bool = False) -> Iterator[Candidate]:
    """Yield the digit identifiers of the copy, from left to right."""
    text = view.text
    signed = "+" in text
    for match in _CHAIN.finditer(text):
        start, end = match.span()
        if match[0].isdigit():
            plus = _plus(text, start) if signed else -1
            yield _single(text, start, end, plus, bare_accounts)
        else:
            yield from _Chain(text, start, end, bare_accounts).candidates()


def _single(text: str, start: int, end: int, plus: int, bare_accounts: bool) -> Candidate:
    """Return what a chain of one group is, which most are."""
    if end - start > _LONGEST:
        return Candidate(start, end, "")
    kind = _kind(text, ((start, end),), "", plus >= 0, bare_accounts)
    if kind:
        return Candidate(plus if plus >= 0 else start, end, kind)
    cue = cue_start(text, start)
    # One that plain words name is read with them, the two characters behind it, and nothing else.
    return Candidate(start, end, "") if cue < 0 else Candidate(cue, end + 2, CLEARED)


def _plus(text: str, start: int) -> int:
    """Return where the plus sign in front of a number stands; -1 where there is none."""
    near = text[start - 2 : start] if start > 1 else text[:start]
    if "+" not in near:
        return -1
    if near[-1] == "+":
        return start - 1
    return start - 2 if near[-1] in " (\n" else -1


def _kind(
    text: str, spans: Sequence[tuple[int, int]], joints: str, plus: bool, bare_accounts: bool
) -> str:
    """Return what a run of whole groups is; empty where no rule takes it."""
    start, end = spans[0][0], spans[-1][1]
    lengths: tuple[int, ...]
    prefix = _prefix(text, start)
    if prefix is None or not _ends(text, end):
        return ""
    bare = len(spans) == 1
    if bare:
        digits, lengths = text[start:end], (end - start,)
    else:
        digits = "".join([text[first:last] for first, last in spans])
        lengths = tuple([last - first for first, last in spans])
    total = len(digits)
    if total == _SHORTEST and not plus:
        return ""
    said = context.about(text, start, end, lengths)
    kind = classify(Number(digits, lengths, said, joints=joints, plus=plus, prefix=prefix))
    if not kind and bare_accounts and bare and 9 <= total <= 18:
        return "bank_account"
    return kind


class _Chain:
    """One chain of digit groups and what the text says around it."""

    def __init__(self, text: str, start: int, end: int, bare_accounts: bool) -> None:
        self._text = text
        self._bare_accounts = bare_accounts
        self._spans = spans = [match.span() for match in _GROUP.finditer(text, start, end)]
        self._lengths = [last - first for first, last in spans]
        self._joints = [text[spans[at][1] : spans[at + 1][0]] for at in range(len(spans) - 1)]
        self._floor = 0  # groups before it are masked
        self._plus = _plus(text, start)

    def candidates(self) -> Iterator[Candidate]:
        first = left = 0
        while first < len(self._spans):
            last, kind = self._longest(first)
            if kind:
                yield self._candidate(first, last, kind)
                first = self._floor = last + 1
                left = 0
                continue
            left += self._lengths[first]
            if left >= _SHORTEST:
                yield Candidate(*self._spans[first], "")
            first += 1

    def _longest(self, first: int) -> tuple[int, str]:
        """Return the last group of the longest run from here that a rule takes, and its kind."""
        ends = []
        total = 0
        for last in range(first, len(self._spans)):
            total += self._lengths[last]
            if total > _LONGEST:
                break
            if total >= _SHORTEST and (last - first < _GROUPS or len(self._spans) <= _LONGEST):
                ends.append(last)
        ends.reverse()
        if first == 0 and self._plus >= 0:
            # With a plus the number is as long as it is: the next line is another one.
            ends.sort(key=lambda end: any("\n" in joint for joint in self._joints[:end]))
        for last in ends:
            if self._whole(first, last):
                kind = self._kind(first, last)
                if kind:
                    return last, kind
        return first, ""

    def _whole(self, first: int, last: int) -> bool:
        """Return whether the run is written as one number and is not a piece of a longer one."""
        joints = self._joints[first:last]
        if not _APART.isdisjoint(joints) or "".join(joints).count("\n") > 1:
            return False
        if first > self._floor and self._continues(first - 1, first, last):
            return False
        return not (last < len(self._joints) and self._continues(last, first, last))

    def _continues(self, left: int, first: int, last: int) -> bool:
        """Return whether the run from ``first`` goes on across the joint behind group ``left``."""
        joint = self._joints[left]
        if joint in _TIGHT:
            return True
        if first == last or self._lengths[left] != self._lengths[left + 1]:
            return False
        return joint == self._joints[first] and not self._tiles(first, last)

    def _tiles(self, first: int, last: int) -> bool:
        """Return whether equal groups go on for a whole number of such runs: a list of numbers."""
        size, lengths = last - first + 1, self._lengths
        begin, end = first, last
        lowest, highest = max(self._floor, first - 4 * size), min(len(lengths), last + 4 * size)
        while begin > lowest and lengths[begin - 1] == lengths[first]:
            begin -= 1
        while end + 1 < highest and lengths[end + 1] == lengths[first]:
            end += 1
        return (end - begin + 1) % size == 0 and (first - begin) % size == 0

    def _kind(self, first: int, last: int) -> str:
        joints = "".join(self._joints[first:last])
        plus = first == 0 and self._plus >= 0
        return _kind(self._text, self._spans[first : last + 1], joints, plus, self._bare_accounts)

    def _candidate(self, first: int, last: int, kind: str) -> Candidate:
        """Return the span, with a leading plus and an opening bracket that closes inside."""
        text = self._text
        start, end = self._spans[first][0], self._spans[last][1]
        if first == 0 and self._plus >= 0:
            start = self._plus
        if text[start - 1 : start] == "(" and ")" in text[start:end]:
            start -= 1
        return Candidate(start, end, kind)


def _prefix(text: str, start: int) -> str | None:
    """Return what a glued word makes of the number; None where it is no number of its own."""
    before = text[start - 1 : start]
    if before in _APART_FROM_WORDS:
        return ""
    if before.isascii() and before.isalnum():
        word = _HEAD.search(text, max(0, start - 13), start)
        cue = context.cue_of(word[0]) if word else ""
        return cue if cue in LEADS else None
    if before in "-_/#.":
        if before in "./" and _SHORT.search(text, max(0, start - 8), start):
            return None
        return context.glued(text, start)
    return ""


def _ends(text: str, end: int) -> bool:
    """Return whether a number may end here: before a letter only if that is a postposition."""
    after = text[end : end + 1]
    if after in _APART_FROM_WORDS:
        return True
    if after.isascii() and after.isalnum():
        return _TAIL.match(text, end) is not None
    following = text[end + 1 : end + 2]
    if after == ":":
        return not following.isdigit()
    return not (after in {"_", "."} and following.isascii() and following.isalnum())
