"""Where rows of filler come to lie in the free space of a page, and so which to write. Pure.

Rows fill a gap from its upper end down while their line pointers, four bytes each, grow from the
lower one. What is left between the two holds old bytes. A pass with other rows leaves another part,
so a few that are well chosen leave nothing, unless a gap is too small for any row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["Gap", "descending", "left_by", "plan"]

_POINTER: Final = 4
_SHORTEST: Final = 8  # fewer bytes mean nothing
_UNIT: Final = 32  # in which the free space map counts
_CHOICES: Final = 40
_GAPS: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """Free space: its bytes, free line pointers, and from where to where it holds old bytes."""

    size: int
    unused: int
    runs: tuple[tuple[int, int], ...]

    @property
    def left(self) -> int:
        """How many old bytes there are."""
        return sum(stop - start for start, stop in self.runs)


def descending(first: int, smallest: int) -> list[int]:
    """Return the sizes of a pass: the first, then what the free space map can tell apart."""
    below = range((first - 1) // _UNIT * _UNIT, smallest - 1, -_UNIT)
    return list(dict.fromkeys((first, *below, smallest)))


def left_by(gap: Gap, sizes: Iterable[int]) -> Gap | None:
    """Return what old bytes rows of these sizes, one after the other, leave in a gap."""
    start, stop, unused = 0, gap.size, gap.unused
    for size in sizes:
        # A page is looked up by what is free in whole units, and then filled to the last byte.
        if (stop - start - _POINTER) // _UNIT < -(-size // _UNIT):
            continue
        while stop - start - _POINTER >= size:
            stop -= size
            if unused:
                unused -= 1
            else:
                start += _POINTER
    cut = ((max(run[0], start), min(run[1], stop)) for run in gap.runs)
    runs = tuple(run for run in cut if run[1] - run[0] >= _SHORTEST)
    return Gap(size=gap.size, unused=gap.unused, runs=runs) if runs else None


def plan(gaps: Iterable[Gap], smallest: int, largest: int, *, passes: int) -> list[int]:
    """Choose the rows that passes begin with, until none would leave less."""
    left = Counter(dict(Counter(gaps).most_common(_GAPS)))
    step = max(1, (largest - smallest) // 8 // _CHOICES) * 8
    choices = [descending(first, smallest) for first in range(largest, smallest - 1, -step)]
    chosen: list[int] = []
    while left and len(chosen) < passes:
        outcomes = [_outcome(left, sizes) for sizes in choices]
        best = min(range(len(choices)), key=lambda number: _bytes(outcomes[number]))
        if _bytes(outcomes[best]) == _bytes(left):
            break
        chosen.append(choices[best][0])
        left = outcomes[best]
    return chosen


def _outcome(gaps: Counter[Gap], sizes: list[int]) -> Counter[Gap]:
    outcome: Counter[Gap] = Counter()
    for gap, count in gaps.items():
        if (left := left_by(gap, sizes)) is not None:
            outcome[left] += count
    return outcome


def _bytes(gaps: Counter[Gap]) -> int:
    return sum(gap.left * count for gap, count in gaps.items())
