"""Graphs drawn in columns, as SVG and as Mermaid. Pure; every text is escaped.

A small form of layered drawing (Sugiyama, Tagawa and Toda 1981): a node stands one column right of
its farthest source, the order within a column follows the neighbours, and so do the heights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

__all__ = ["Box", "Style", "columns", "mermaid", "svg"]

_WIDTH: Final = 184
_HEIGHT: Final = 44
_ACROSS: Final = 72
_BETWEEN: Final = 14
_MARGIN: Final = 18
_LINE: Final = 18
_SWEEPS: Final = 6
_FONT: Final = "font-family='system-ui,Segoe UI,Helvetica,Arial,sans-serif'"
_HEADING: Final = 21
_DETAIL: Final = 26


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """How a kind of box looks, and what the legend says of it."""

    name: str
    fill: str
    stroke: str


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
    """Return the drawing: a legend of the styles, the notes below it, then the graph."""
    found = columns(len(boxes), edges)
    height = _heights(found, edges)
    top = _MARGIN + _LINE * (1 + len(notes)) + 8
    left = {
        node: _MARGIN + n * (_WIDTH + _ACROSS) for n, column in enumerate(found) for node in column
    }
    widest = max((len(note) for note in notes), default=0) * 6.6
    legend = sum(34 + len(style.name) * 6.6 for style in styles)
    width = max(
        2 * _MARGIN + len(found) * (_WIDTH + _ACROSS) - _ACROSS, widest + 2 * _MARGIN, legend + 36
    )
    depth = top + max(height.values(), default=-_HEIGHT) + _HEIGHT + _MARGIN
    at = {node: (left[node], top + height[node]) for node in left}
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{depth:.0f}'"
        f" viewBox='0 0 {width:.0f} {depth:.0f}' {_FONT} font-size='12' role='img'>",
        f"<rect width='{width:.0f}' height='{depth:.0f}' fill='#ffffff'/>",
        *_legend(styles, notes),
        *(_line(boxes, at, edge) for edge in edges),
        *(_box(box, *at[node]) for node, box in enumerate(boxes)),
        "</svg>",
    ]
    return "".join(parts)


def _legend(styles: Sequence[Style], notes: Sequence[str]) -> Iterable[str]:
    x = float(_MARGIN)
    for style in styles:
        yield (
            f"<rect x='{x:.0f}' y='{_MARGIN - 10}' width='16' height='12' rx='2'"
            f" fill='{style.fill}' stroke='{style.stroke}'/>"
            f"<text x='{x + 22:.0f}' y='{_MARGIN}' fill='#333333'>{escape(style.name)}</text>"
        )
        x += 34 + len(style.name) * 6.6
    for number, note in enumerate(notes, 1):
        y = _MARGIN + number * _LINE
        yield f"<text x='{_MARGIN}' y='{y}' fill='#555555'>{escape(_clean(note))}</text>"


def _line(boxes: Sequence[Box], at: Mapping[int, tuple[float, float]], edge: Edge) -> str:
    (x1, y1), (x2, y2) = at[edge[0]], at[edge[1]]
    x1, y1, y2 = x1 + _WIDTH, y1 + _HEIGHT / 2, y2 + _HEIGHT / 2
    bend = max((x2 - x1) / 2, 24)
    colour = boxes[edge[0]].style.stroke
    return (
        f"<path d='M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f}"
        f" {x2 - 6:.1f} {y2:.1f}' fill='none' stroke='{colour}' stroke-opacity='.55'/>"
        f"<path d='M{x2:.1f} {y2:.1f}l-7 -3.5v7z' fill='{colour}'/>"
    )


def _box(box: Box, x: float, y: float) -> str:
    dashes = " stroke-dasharray='4 3'" if box.dashed else ""
    return (
        f"<g><title>{escape(_clean(box.title))}</title>"
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{_WIDTH}' height='{_HEIGHT}'"
        f" rx='{14 if box.round else 3}' fill='{box.style.fill}' stroke='{box.style.stroke}'"
        f" stroke-width='1.4'{dashes}/>"
        f"<text x='{x + 12:.1f}' y='{y + 18:.1f}' font-weight='600' fill='#222222'>"
        f"{escape(_short(box.heading, _HEADING))}</text>"
        f"<text x='{x + 12:.1f}' y='{y + 34:.1f}' font-size='11' fill='#555555'>"
        f"{escape(_detail(box))}</text></g>"
    )


def _clean(text: str) -> str:
    """Return the text on one line, without what XML or a terminal could take for a command."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _short(text: str, most: int) -> str:
    line = _clean(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _detail(box: Box) -> str:
    return _short(box.detail, _DETAIL - len(box.tail)) + box.tail


def mermaid(
    boxes: Sequence[Box], edges: Sequence[Edge], *, styles: Sequence[Style], notes: Sequence[str]
) -> str:
    """Return the graph as a Mermaid flowchart; the notes and the styles are nodes of its own.

    Not comments, which no renderer shows.
    """
    classes = {style.name: f"s{number}" for number, style in enumerate(styles)}
    legend = "<br/>".join(_entities(_clean(note)) for note in notes)
    lines = ["flowchart LR", *([f'notes["{legend}"]'] if notes else [])]
    lines += [
        f'k{number}["{_entities(style.name)}"]:::s{number}' for number, style in enumerate(styles)
    ]
    for number, box in enumerate(boxes):
        opening, closing = ("([", "])") if box.round else ("[", "]")
        heading, detail = _short(box.heading, _HEADING), _detail(box)
        label = f"{_entities(heading)}<br/>{_entities(detail)}"
        lines.append(f'n{number}{opening}"{label}"{closing}:::{classes[box.style.name]}')
    lines += [f"n{source} --> n{made}" for source, made in edges]
    for style in styles:
        looks = f"fill:{style.fill},stroke:{style.stroke},color:#222222"
        lines.append(f"classDef {classes[style.name]} {looks}")
    return "\n".join(lines) + "\n"


def _entities(text: str) -> str:
    """Return the text with whatever Mermaid could read as syntax as character codes."""
    safe = " …·●."
    return "".join(c if c.isalnum() or c in safe else f"#{ord(c)};" for c in text)
