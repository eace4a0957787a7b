"""Tables and pictures: legible on a light and a dark page, whole, and told to a screen reader."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import palette, rendering, strips

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('1')</script>&\"]--> x\n\x00\u202e"
TONES = ("red", "blue", "amber", "green", "grey")


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("page", [palette._LIGHT, palette._DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["card", *TONES])
def test_texts_and_lines_stand_out_from_their_ground(page, ground):
    assert contrast(page["ink"], page[ground]) >= 7
    assert contrast(page["dim"], page[ground]) >= 4.5
    for tone in TONES:
        if ground in ("card", tone):
            assert contrast(page[f"{tone}-line"], page[ground]) >= 3


def test_both_pages_have_the_same_colours():
    assert palette._LIGHT.keys() == palette._DARK.keys()


def entries(text, count=2):
    return [
        strips.Entry(when="2026", heading=text, detail=f"{text} {n}", title=text, tone="red")
        for n in range(count)
    ]


def drawn(*given_entries, title="title", subtitle="subtitle"):
    return ET.fromstring(strips.strip(given_entries, title=title, subtitle=subtitle))  # noqa: S314 - our own


@given(st.text(max_size=200))
def test_any_text_is_well_formed_and_within_the_card(text):
    root = drawn(*entries(text), title=text, subtitle=text)
    assert len(root.findall(f"{SVG}g")) == 2
    for line in root.iter(f"{SVG}text"):
        size = float(line.get("font-size", 12))
        assert float(line.get("x")) + palette.width(line.text or "", size) <= float(
            root.get("width")
        )


def test_no_text_becomes_markup():
    root = drawn(*entries(HOSTILE), title=HOSTILE, subtitle=HOSTILE)
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    for html in (
        rendering.table([HOSTILE], [[HOSTILE]], caption=HOSTILE, note=HOSTILE),
        rendering.facts([(HOSTILE, HOSTILE)], caption=HOSTILE),
    ):
        assert "<script" not in html


def test_a_screen_reader_is_told_what_stands_in_the_picture():
    root = drawn(*entries("Erased"), title="Evidence", subtitle="times are UTC")
    assert (root.get("role"), root.get("aria-label")) == ("img", "Evidence")
    assert root.find(f"{SVG}title").text == "Evidence"
    told = root.find(f"{SVG}desc").text
    assert told == "times are UTC. 2026: Erased, Erased 0. 2026: Erased, Erased 1"


def test_numbers_stand_right_and_a_table_of_nothing_has_no_header():
    html = rendering.table(["score", "text"], [[0.25, "a"]], caption="found", note="how")
    assert "text-align:right" in html.split("0.250")[0].rpartition("<td")[2]
    assert "text-align:left" in html.split(">a<")[0].rpartition("<td")[2]
    assert "<th scope='col'" in html
    empty = rendering.table(["score", "text"], [], caption="nothing", note="why")
    assert "score" not in empty
    assert "why" in empty


def test_a_title_with_an_apostrophe_stays_one_attribute():
    assert drawn(title="Ann's").get("aria-label") == "Ann's"


def test_every_hexadecimal_digit_is_as_wide_as_another():
    assert len({palette.width(digit) for digit in "0123456789abcdef"}) == 1
