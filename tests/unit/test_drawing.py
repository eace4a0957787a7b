"""Graphs in columns: sources left of what they made, boxes apart, texts escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from memory import drawing

STYLE = drawing.Style(name="kind", tone="blue")


def boxes(count, text="x"):
    return [
        drawing.Box(heading=text, detail=f"{text} {n}", title=text, style=STYLE)
        for n in range(count)
    ]


def drawn(count, edges, text="x", notes=()):
    return ET.fromstring(drawing.svg(boxes(count, text), edges, styles=[STYLE], notes=notes))  # noqa: S314 - our own


def rectangles(root):
    """The boxes of the graph, as (left, top, width, height)."""
    groups = root.findall("{http://www.w3.org/2000/svg}g")
    found = [group.find("{http://www.w3.org/2000/svg}rect") for group in groups]
    return [tuple(float(r.get(n)) for n in ("x", "y", "width", "height")) for r in found]


edges_of = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
                lambda pair: pair[0] != pair[1]
            ),
            max_size=20,
            unique=True,
        ),
    )
)


@given(edges_of)
def test_every_node_has_one_place_and_a_source_stands_left(graph):
    count, edges = graph
    forward = [(min(pair), max(pair)) for pair in edges]
    found = drawing.columns(count, forward)
    assert sorted(node for column in found for node in column) == list(range(count))
    place = {node: n for n, column in enumerate(found) for node in column}
    assert all(place[source] < place[made] for source, made in forward)


@given(edges_of)
def test_no_box_lies_on_another_and_all_lie_in_the_picture_even_with_cycles(graph):
    count, edges = graph
    root = drawn(count, edges)
    found = rectangles(root)
    assert len(found) == count
    for number, (x, y, width, height) in enumerate(found):
        assert 0 <= x <= x + width <= float(root.get("width"))
        assert 0 <= y <= y + height <= float(root.get("height"))
        for other_x, other_y, _, _ in found[number + 1 :]:
            assert x != other_x or abs(y - other_y) >= height


def test_an_empty_graph_is_a_picture_too():
    assert rectangles(drawn(0, [], notes=["nothing"])) == []
    assert drawing.mermaid([], [], styles=[STYLE], notes=[]).startswith("flowchart LR\n")


def test_a_thousand_nodes_are_drawn():
    edges = [(n, n + 1) for n in range(0, 999, 2)]
    assert len(rectangles(drawn(1000, edges))) == 1000


HOSTILE = "<script>alert('1')</script>&\"]--> x\n%% end\x00\u202e"


def test_no_text_becomes_markup():
    root = drawn(2, [(0, 1)], HOSTILE, [HOSTILE])
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    source = drawing.mermaid(boxes(2, HOSTILE), [(0, 1)], styles=[STYLE], notes=[HOSTILE])
    assert len(source.splitlines()) == 7
    for line in source.splitlines():
        assert "script>" not in line
        assert not re.search(r'"[^"]*"[^"]*"', line.replace("<br/>", ""))


@given(st.text(max_size=40))
def test_any_text_is_well_formed(text):
    drawn(1, [], text, [text])
    source = drawing.mermaid(boxes(1, text), [], styles=[STYLE], notes=[text])
    assert len(source.split("\n")) == 6
