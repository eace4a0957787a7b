"""The charts are well-formed, and a larger value stands higher or further along."""

from __future__ import annotations

from xml.etree import ElementTree

from charts import Bar, bars, curves

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_grow_with_their_values() -> None:
    drawn = bars(
        "a <title>",
        "us",
        {"one": {n: Bar(value=v, low=v, high=v) for n, v in (("a", 1), ("b", 9))}},
    )
    root = ElementTree.fromstring(drawn)  # noqa: S314 - our own
    rectangles = [r for r in root.iter(f"{SVG}rect") if r.get("fill") in ("#0b6e4f", "#8d99ae")]
    first, second = (float(r.get("height") or 0) for r in rectangles[:2])
    assert first < second


def test_curves_have_a_point_for_each_measurement() -> None:
    drawn = curves("title", "records", "us", {"a": [(10, 1), (100, 1)], "b": [(10, 1), (100, 10)]})
    root = ElementTree.fromstring(drawn)  # noqa: S314 - our own
    lines = [line.get("points") or "" for line in root.iter(f"{SVG}polyline")]
    flat, rising = ([float(p.split(",")[1]) for p in line.split()] for line in lines)
    assert flat[0] == flat[1]
    assert rising[0] == flat[0]
    assert rising[1] < rising[0]
