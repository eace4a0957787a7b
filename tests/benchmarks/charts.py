"""Charts as SVG, on logarithmic scales, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["Bar", "bars", "curves"]

COLOURS: Final = ("#0b6e4f", "#8d99ae", "#c8553d", "#e0a030", "#3d5a80", "#7b2d8b", "#444444")
_WIDTH: Final = 1_060
_LEFT, _RIGHT, _TOP, _BOTTOM = 120, 340, 50, 60


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A value and its spread."""

    value: float
    low: float
    high: float


def bars(title: str, unit: str, groups: Mapping[str, Mapping[str, Bar]]) -> str:
    """Draw groups of bars, one for each series, with their spread as a line."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    every = [bar for group in groups.values() for bar in group.values()]
    height = 420
    scale = _Scale([bar.low for bar in every] + [bar.high for bar in every], height - _BOTTOM, _TOP)
    parts = [*_frame(title, unit, scale, height)]
    room = (_WIDTH - _LEFT - _RIGHT) / len(groups)
    wide = room * 0.8 / len(names)
    for at, (label, group) in enumerate(groups.items()):
        left = _LEFT + at * room + room * 0.1
        parts.append(_text(left + room * 0.4, height - _BOTTOM + 20, label, anchor="middle"))
        for n, name in enumerate(names):
            if name in group:
                parts += _bar(left + n * wide, wide * 0.9, group[name], scale, COLOURS[n])
    return _svg(height, [*parts, *_legend(names)])


def curves(
    title: str, axis: str, unit: str, series: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """Draw a line for each series of points."""
    points = [point for line in series.values() for point in line]
    height = max(420, _TOP + 20 * len(series) + 40)
    up = _Scale([y for _, y in points], height - _BOTTOM, _TOP)
    along = _Scale([x for x, _ in points], _LEFT, _WIDTH - _RIGHT)
    parts = [*_frame(title, unit, up, height)]
    for x in along.ticks():
        parts.append(_text(along.at(x), height - _BOTTOM + 20, _short(x), anchor="middle"))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, height - 15, axis, anchor="middle"))
    for n, line in enumerate(series.values()):
        colour, dashes = COLOURS[n % len(COLOURS)], ("", "6 3", "2 3")[n // len(COLOURS) % 3]
        path = " ".join(f"{along.at(x):.1f},{up.at(y):.1f}" for x, y in line)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"'
            f' stroke-dasharray="{dashes}"/>'
        )
        parts += [
            f'<circle cx="{along.at(x):.1f}" cy="{up.at(y):.1f}" r="3" fill="{colour}"/>'
            for x, y in line
        ]
    return _svg(height, [*parts, *_legend(list(series))])


class _Scale:
    """Whole decades around the values, drawn between two places."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        positive = [value for value in values if value > 0] or [1.0]
        self._low = math.floor(math.log10(min(positive)))
        self._high = max(math.ceil(math.log10(max(positive))), self._low + 1)
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        share = (math.log10(max(value, 10**self._low)) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> Iterator[float]:
        yield from (10.0**power for power in range(self._low, self._high + 1))


def _frame(title: str, unit: str, scale: _Scale, height: int) -> Iterator[str]:
    yield f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    yield _text(_LEFT, 24, title, size=16)
    yield _text(_LEFT - 10, _TOP - 12, unit, anchor="end")
    for tick in scale.ticks():
        y = scale.at(tick)
        yield (
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        yield _text(_LEFT - 10, y + 4, _short(tick), anchor="end")


def _bar(left: float, wide: float, bar: Bar, scale: _Scale, colour: str) -> Iterator[str]:
    top, foot = scale.at(bar.value), scale.at(0)
    middle = left + wide / 2
    yield (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{foot - top:.1f}"'
        f' fill="{colour}"/>'
    )
    yield (
        f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{scale.at(bar.low):.1f}"'
        f' y2="{scale.at(bar.high):.1f}" stroke="black"/>'
    )


def _legend(names: Sequence[str]) -> Iterator[str]:
    for n, name in enumerate(names):
        y = _TOP + 20 * n
        colour = COLOURS[n % len(COLOURS)]
        x = _WIDTH - _RIGHT + 20
        yield f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>'
        yield _text(x + 18, y + 11, name)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _svg(height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
