"""What ``lineage`` returns: records, what was made from what, and what an erasure would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from memory import drawing
from memory.types import Origin

__all__ = ["Graph", "Lineage", "LineageNode"]

_ERASED: Final = drawing.Style(name="would be erased", tone="red")
_STAYS: Final = drawing.Style(name="stays", tone="blue")
_HELD: Final = drawing.Style(name="under a legal hold", tone="amber")
_NAMED: Final = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageNode:
    """One record in the graph, without its content.

    ``root`` marks what the erasure starts from, ``erased`` what it would take. ``people`` counts
    whom the record is about, ``artefacts`` what is registered in external indexes.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> told = await shop.remember(text="Ana and Ben pay", subject_keys=["ana", "ben"])
    >>> [node] = (await shop.lineage(subject_key="ana")).nodes
    >>> node.root, node.erased, node.people
    (True, True, 2)
    """

    record_id: UUID
    origin: Origin
    kind: str
    version: int
    superseded: bool
    people: int
    artefacts: int
    held: bool
    root: bool
    erased: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """What a store knows of a lineage: see :class:`Lineage`."""

    nodes: tuple[LineageNode, ...]
    edges: tuple[tuple[UUID, UUID], ...]
    records: int
    erased: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    """The records that an erasure would take and all that these were made from, transitively.

    ``edges`` are (source, derived) pairs. ``records`` counts the whole graph and ``erased`` what
    would go; ``nodes`` are those nearest to the roots where there are more than were asked for.
    ``closure`` is the digest of what would go: for ``expect=``. ``bystander_keys`` are the other
    people whose records would go; drawings name them, a ``repr`` does not.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> told = await shop.remember(text="Ana and Ben pay", subject_keys=["ana", "ben"])
    >>> graph = await shop.lineage(subject_key="ana")
    >>> graph.erased, graph.bystander_keys
    (1, ('ben',))
    >>> graph.mermaid().splitlines()[0], graph.svg()[:4]
    ('flowchart LR', '<svg')
    """

    nodes: tuple[LineageNode, ...] = field(repr=False)
    edges: tuple[tuple[UUID, UUID], ...] = field(repr=False)
    records: int
    erased: int
    closure: str
    bystander_keys: tuple[str, ...] = field(default=(), repr=False)

    def mermaid(self, *, labels: Mapping[UUID, str] | None = None) -> str:
        """Return a Mermaid flowchart; ``labels`` replace the second line of records but its +n."""
        boxes, edges = self._drawn(labels or {})
        return drawing.mermaid(boxes, edges, styles=self._styles(), notes=self._notes())

    def svg(self, *, labels: Mapping[UUID, str] | None = None) -> str:
        """Return an SVG drawing; it shows no text of a memory but the ``labels`` it is given.

        A long label is cut, and whole where the pointer rests.
        """
        boxes, edges = self._drawn(labels or {})
        return drawing.svg(boxes, edges, styles=self._styles(), notes=self._notes())

    def _repr_html_(self) -> str:
        return f"<div style='overflow:auto;max-height:640px'>{self.svg()}</div>"

    def _drawn(self, labels: Mapping[UUID, str]) -> tuple[list[drawing.Box], list[tuple[int, int]]]:
        numbers = {node.record_id: number for number, node in enumerate(self.nodes)}
        boxes = [_box(node, labels.get(node.record_id)) for node in self.nodes]
        return boxes, [(numbers[source], numbers[made]) for source, made in self.edges]

    def _styles(self) -> list[drawing.Style]:
        if not self.nodes:
            return []
        held = any(node.held for node in self.nodes)
        return [_ERASED, _STAYS, *([_HELD] if held else [])]

    def _notes(self) -> list[str]:
        notes = [f"{self.erased} of {self.records} records would be erased"]
        if not self.nodes:
            return notes
        if len(self.nodes) < self.records:
            notes[0] += f"; the {len(self.nodes)} nearest are drawn"
        notes.append(
            "● where it starts · round: derived · dashed: older version · +n: in external indexes"
        )
        if self.bystander_keys:
            names = ", ".join(self.bystander_keys[:_NAMED])
            more = len(self.bystander_keys) - _NAMED
            notes.append(
                f"other people touched ({len(self.bystander_keys)}): {names}"
                + (f" and {more} more" if more > 0 else "")
            )
        return notes


def _box(node: LineageNode, label: str | None) -> drawing.Box:
    version = f" v{node.version}" if node.version > 1 else ""
    people = "1 person" if node.people == 1 else f"{node.people} people"
    # The end of an id: its beginning is a time, and much alike among neighbours.
    detail = f"…{str(node.record_id)[-6:]} · {people}"
    facts = [
        *([label] if label is not None else []),
        str(node.record_id),
        node.origin,
        people,
        f"{node.artefacts} artefacts",
    ]
    facts += [name for name in ("held", "superseded", "root") if getattr(node, name)]
    style = _HELD if node.held else _ERASED if node.erased else _STAYS
    return drawing.Box(
        heading=f"{'● ' if node.root else ''}{node.kind}{version}",
        detail=detail if label is None else label,
        tail=f" +{node.artefacts}" if node.artefacts else "",
        title=", ".join(facts),
        style=style,
        round=node.origin == "derived",
        dashed=node.superseded,
    )
