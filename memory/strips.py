"""What happened, one below the other along a line, as SVG. Pure; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from memory.palette import Tone, card, clean, paint, short, width

__all__ = ["Entry", "strip"]

_MARGIN: Final = 18
_TOP: Final = 44
_STEP: Final = 46
_WHEN: Final = 136
_AFTER: Final = 22
_LEAST: Final = 300
_MOST: Final = 720
_SMALL: Final = 11
_TEXT: Final = 12
_LARGE: Final = 13


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One thing that happened: when, what, a second line, and a longer text for the pointer.

    ``open`` marks what is not over yet.
    """

    when: str = field(repr=False)
    heading: str = field(repr=False)
    detail: str = field(repr=False)
    title: str = field(repr=False)
    tone: Tone
    open: bool = False


def strip(entries: Sequence[Entry], *, title: str, subtitle: str) -> str:
    """Return the drawing, in the order of the entries; a screen reader is told all of it."""
    needed = max((_needed(entry) for entry in entries), default=_LEAST)
    room = min(max(needed, _LEAST), _MOST)
    head = max(width(clean(title), _LARGE, bold=True), width(clean(subtitle), _SMALL))
    across = 2 * _MARGIN + max(_WHEN + _AFTER + room, head)
    down = _TOP + 12 + _STEP * len(entries)
    read = [f"{entry.when}: {entry.heading}, {clean(entry.detail)}" for entry in entries]
    return card(
        across,
        down,
        title=title,
        text=". ".join([subtitle, *read]),
        parts=[
            *_head(title, subtitle),
            *_thread(len(entries)),
            *(_entry(entry, number, room) for number, entry in enumerate(entries)),
        ],
    )


def _head(title: str, subtitle: str) -> Iterable[str]:
    yield (
        f"<text x='{_MARGIN}' y='24' font-size='{_LARGE}' font-weight='600' {paint(fill='ink')}>"
        f"{escape(clean(title))}</text>"
        f"<text x='{_MARGIN}' y='41' font-size='{_SMALL}' {paint(fill='dim')}>"
        f"{escape(clean(subtitle))}</text>"
    )


def _middle(number: int) -> float:
    return _TOP + 26 + number * _STEP


def _thread(count: int) -> Iterable[str]:
    if count > 1:
        x = _MARGIN + _WHEN
        yield (
            f"<path d='M{x} {_middle(0)}V{_middle(count - 1)}' {paint(stroke='rim')}"
            " stroke-width='2'/>"
        )


def _needed(entry: Entry) -> float:
    return max(width(clean(entry.heading), _TEXT, bold=True), width(clean(entry.detail), _SMALL))


def _entry(entry: Entry, number: int, room: float) -> str:
    y, x = _middle(number), _MARGIN + _WHEN
    right = x + _AFTER
    fill = "card" if entry.open else f"{entry.tone}-line"
    dashes = " stroke-dasharray='2.5 2'" if entry.open else ""
    return (
        f"<g><title>{escape(clean(entry.title))}</title>"
        f"<text x='{_MARGIN}' y='{y + 4:.0f}' font-size='{_SMALL}' {paint(fill='dim')}>"
        f"{escape(clean(entry.when))}</text>"
        f"<circle cx='{x}' cy='{y:.0f}' r='6' {paint(fill=fill, stroke=f'{entry.tone}-line')}"
        f" stroke-width='2'{dashes}/>"
        f"<text x='{right}' y='{y - 2:.0f}' font-weight='600' {paint(fill='ink')}>"
        f"{escape(short(entry.heading, room, _TEXT, bold=True))}</text>"
        f"<text x='{right}' y='{y + 13:.0f}' font-size='{_SMALL}' {paint(fill='dim')}>"
        f"{escape(short(entry.detail, room, _SMALL))}</text></g>"
    )
