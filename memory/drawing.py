"""Graphs drawn in columns, as SVG and as Mermaid. Pure; every text is escaped.

A small form of layered drawing (Sugiyama, Tagawa and Toda 1981): a node stands one column right of
its farthest source, the order within a column follows the neighbours, and so do the heights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from memory.palette import Tone, card, clean, paint, short, solid, width

__all__ = ["Box", "Style", "columns", "mermaid", "svg"]

_NARROW: Final = 148
_BROAD: Final = 268
_HEIGHT: Final = 44
_ACROSS: Final = 72
_BETWEEN: Final = 14
_MARGIN: Final = 18
_LINE: Final = 18
_SWEEPS: Final = 6
_INSIDE: Final = 12
_KEY: Final = 22
_SMALL: Final = 11
_TEXT: Final = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """How a kind of box looks, and what the legend says of it."""

    name: str
    tone: Tone


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A node: a heading, a second line, a longer text for the pointer, and its looks.

    ``tail`` ends the second line and is never cut.
    """

    heading: str = field(repr=False)
    detail: str = field(repr=False)
    title: str = field(repr=False)
    style: Style
    tail: str = field(default="", repr=False)
    round: bool = False
    dashed: bool = False


Edge = tuple[int, int]


def columns(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    """Return nodes ``0`` to ``count - 1`` by column: sources left of what was made from them.

    Within a column the order keeps lines short. An edge that closes a cycle is not followed.
    """
    after: dict[int, list[int]] = {node: [] for node in range(count)}
    before: dict[int, list[int]] = {node: [] for node in range(count)}
    for source, made in edges:
        after[source].append(made)
        before[made].append(source)
    place = _places(after, before)
    found: list[list[int]] = [[] for _ in range(max(place.values(), default=-1) + 1)]
    for node in range(count):
        found[place[node]].append(node)
    for sweep in range(_SWEEPS):
        neighbours = after if sweep % 2 else before
        for column in reversed(found) if sweep % 2 else found:
            rank = {node: n for part in found for n, node in enumerate(part)}
            means = {node: _mean(neighbours[node], rank, node) for node in column}
            column.sort(key=means.__getitem__)
    return found


def _places(
    after: Mapping[int, Sequence[int]], before: Mapping[int, Sequence[int]]
) -> dict[int, int]:
    """Return the column of each node: the longest way from a node without sources."""
    waiting = {node: len(sources) for node, sources in before.items()}
    place = dict.fromkeys(after, 0)
    ready = [node for node, count in waiting.items() if not count]
    done = 0
    while done < len(place):
        if not ready:
            # A cycle: go on with the node that waits for the fewest.
            ready.append(min((count, node) for node, count in waiting.items() if count > 0)[1])
            waiting[ready[0]] = 0
        node = ready.pop()
        done += 1
        waiting[node] = -1
        for made in after[node]:
            if waiting[made] > 0:
                place[made] = max(place[made], place[node] + 1)
                waiting[made] -= 1
                if not waiting[made]:
                    ready.append(made)
    return place


def _mean(nodes: Sequence[int], values: Mapping[int, float], node: int) -> float:
    return sum(values[one] for one in nodes) / len(nodes) if nodes else values[node]


def _heights(found: Sequence[Sequence[int]], edges: Sequence[Edge]) -> dict[int, float]:
    """Return the middle of each box: near its neighbours, none on another."""
    step = _HEIGHT + _BETWEEN
    tallest = max((len(column) for column in found), default=0)
    near: dict[int, list[int]] = {}
    for source, made in edges:
        near.setdefault(source, []).append(made)
        near.setdefault(made, []).append(source)
    height = {
        node: (n + (tallest - len(column)) / 2) * step
        for column in found
        for n, node in enumerate(column)
    }
    for _ in range(_SWEEPS):
        for column in found:
            wanted = [_mean(near.get(node, ()), height, node) for node in column]
            height.update(zip(column, _apart(wanted, step), strict=True))
    top = min(height.values(), default=0)
    return {node: value - top for node, value in height.items()}


def _apart(wanted: Sequence[float], step: float) -> list[float]:
    """Return places a step apart, in order, as near to the wanted ones as one pass gets them."""
    placed: list[float] = []
    for value in wanted:
        placed.append(value if not placed else max(value, placed[-1] + step))
    if not placed:
        return placed
    shift = sum(want - got for want, got in zip(wanted, placed, strict=True)) / len(placed)
    return [value + shift for value in placed]


def svg(
    boxes: Sequence[Box], edges: Sequence[Edge], *, styles: Sequence[Style], notes: Sequence[str]
) -> str:
    """Return the drawing: a legend of the styles, the notes below it, then the graph.

    The first note is what a screen reader calls it; it reads the others, then every box.
    """
    found = columns(len(boxes), edges)
    height = _heights(found, edges)
    broad = _breadth(boxes)
    top = 2 * _MARGIN + _LINE * len(notes) + 10
    at = {
        node: (_MARGIN + n * (broad + _ACROSS), top + height[node])
        for n, column in enumerate(found)
        for node in column
    }
    said = [clean(note) for note in notes]
    across = 2 * _MARGIN + max(
        len(found) * (broad + _ACROSS) - _ACROSS,
        sum(_in_legend(style) for style in styles),
        *(width(note) for note in said),
    )
    down = top + max(height.values(), default=-_HEIGHT) + _HEIGHT + _MARGIN
    title, *others = said or [""]
    return card(
        across,
        down,
        title=title,
        text=". ".join([*others, *(_read(box) for box in boxes)]),
        parts=[
            *_legend(title, styles, others),
            *(_line(boxes, at, edge, broad) for edge in edges),
            *(_box(box, *at[node], broad) for node, box in enumerate(boxes)),
        ],
    )


def _breadth(boxes: Sequence[Box]) -> float:
    """Return how broad the boxes are: all alike, as broad as the longest text needs, or less."""
    needed = max((_needed(box) for box in boxes), default=0)
    return min(max(needed + 2 * _INSIDE, _NARROW), _BROAD)


def _needed(box: Box) -> float:
    return max(
        width(clean(box.heading), _TEXT, bold=True), width(clean(box.detail) + box.tail, _SMALL)
    )


def _read(box: Box) -> str:
    return f"{clean(box.heading)}, {clean(box.detail)}{box.tail}: {box.style.name}"


def _in_legend(style: Style) -> float:
    return _KEY + width(style.name) + _KEY


def _legend(title: str, styles: Sequence[Style], notes: Sequence[str]) -> Iterable[str]:
    x, y = float(_MARGIN), _MARGIN + 6
    yield (
        f"<text x='{x}' y='{y}' font-size='13' font-weight='600' {paint(fill='ink')}>"
        f"{escape(title)}</text>"
    )
    y += _LINE + 2
    for style in styles:
        yield (
            f"<rect x='{x:.0f}' y='{y - 10}' width='16' height='12' rx='2' {_toned(style)}/>"
            f"<text x='{x + _KEY:.0f}' y='{y}' {paint(fill='ink')}>{escape(style.name)}</text>"
        )
        x += _in_legend(style)
    for note in notes:
        y += _LINE
        yield f"<text x='{_MARGIN}' y='{y}' {paint(fill='dim')}>{escape(note)}</text>"


def _toned(style: Style) -> str:
    return paint(fill=style.tone, stroke=f"{style.tone}-line")


def _line(
    boxes: Sequence[Box], at: Mapping[int, tuple[float, float]], edge: Edge, broad: float
) -> str:
    (x1, y1), (x2, y2) = at[edge[0]], at[edge[1]]
    x1, y1, y2 = x1 + broad, y1 + _HEIGHT / 2, y2 + _HEIGHT / 2
    bend = max((x2 - x1) / 2, 24)
    tone = f"{boxes[edge[0]].style.tone}-line"
    return (
        f"<path d='M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f}"
        f" {x2 - 6:.1f} {y2:.1f}' fill='none' {paint(stroke=tone)} stroke-opacity='.6'/>"
        f"<path d='M{x2:.1f} {y2:.1f}l-7 -3.5v7z' {paint(fill=tone)}/>"
    )


def _box(box: Box, x: float, y: float, broad: float) -> str:
    dashes = " stroke-dasharray='4 3'" if box.dashed else ""
    inside = x + _INSIDE
    return (
        f"<g><title>{escape(clean(box.title))}</title>"
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{broad:.0f}' height='{_HEIGHT}'"
        f" rx='{14 if box.round else 3}' {_toned(box.style)} stroke-width='1.4'{dashes}/>"
        f"<text x='{inside:.1f}' y='{y + 18:.1f}' font-weight='600' {paint(fill='ink')}>"
        f"{escape(_heading(box, broad))}</text>"
        f"<text x='{inside:.1f}' y='{y + 34:.1f}' font-size='{_SMALL}' {paint(fill='dim')}>"
        f"{escape(_detail(box, broad))}</text></g>"
    )


def _heading(box: Box, broad: float) -> str:
    return short(box.heading, broad - 2 * _INSIDE, _TEXT, bold=True)


def _detail(box: Box, broad: float) -> str:
    room = broad - 2 * _INSIDE - width(box.tail, _SMALL)
    return short(box.detail, room, _SMALL) + box.tail


def mermaid(
    boxes: Sequence[Box], edges: Sequence[Edge], *, styles: Sequence[Style], notes: Sequence[str]
) -> str:
    """Return the graph as a Mermaid flowchart; the notes and the styles are nodes of its own.

    Not comments, which no renderer shows.
    """
    classes = {style.name: f"s{number}" for number, style in enumerate(styles)}
    legend = "<br/>".join(_entities(clean(note)) for note in notes)
    lines = ["flowchart LR", *([f'notes["{legend}"]'] if notes else [])]
    lines += [
        f'k{number}["{_entities(style.name)}"]:::s{number}' for number, style in enumerate(styles)
    ]
    for number, box in enumerate(boxes):
        opening, closing = ("([", "])") if box.round else ("[", "]")
        label = f"{_entities(_heading(box, _BROAD))}<br/>{_entities(_detail(box, _BROAD))}"
        lines.append(f'n{number}{opening}"{label}"{closing}:::{classes[box.style.name]}')
    lines += [f"n{source} --> n{made}" for source, made in edges]
    for style in styles:
        fill, line = solid(style.tone)
        looks = f"fill:{fill},stroke:{line},color:#1f2328"
        lines.append(f"classDef {classes[style.name]} {looks}")
    return "\n".join(lines) + "\n"


def _entities(text: str) -> str:
    """Return the text with whatever Mermaid could read as syntax as character codes."""
    safe = " …·●."
    return "".join(c if c.isalnum() or c in safe else f"#{ord(c)};" for c in text)
