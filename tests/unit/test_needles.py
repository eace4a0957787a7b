"""The forms in which content is searched for."""

from __future__ import annotations

import base64
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import InvalidInputError
from memory.maintenance.needles import patterns

TEXT = 'Dana said "é"\nand left'


def encoded(*needles: object) -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = {}
    for pattern in patterns(needles):  # type: ignore[arg-type]
        found.setdefault(pattern.encoding, set()).add(pattern.value)
    return found


def test_a_text_is_searched_in_every_form_it_may_be_written_in() -> None:
    found = encoded(TEXT)
    assert TEXT.encode() in found["text"]
    assert TEXT.casefold().encode() in found["text"]
    assert json.dumps(TEXT)[1:-1].encode() in found["json"]
    assert json.dumps(TEXT, ensure_ascii=False)[1:-1].encode() in found["json"]
    assert TEXT.encode().hex().encode() in found["hex"]


@given(st.binary(max_size=5), st.text(min_size=16).filter(lambda text: max(text) < "\ud800"))
def test_base64_is_found_whatever_stands_before_and_after(before: bytes, text: str) -> None:
    whole = base64.b64encode(before + text.encode() + b"after")
    assert any(value in whole for value in encoded(text)["base64"])


def test_a_vector_is_searched_in_two_precisions_as_it_is_and_with_unit_length() -> None:
    found = encoded([3.0, 0.0, 4.0, 0.0])
    assert found["float32"] == {struct.pack("<4f", 3, 0, 4, 0), struct.pack("<4f", 0.6, 0, 0.8, 0)}
    assert found["float16"] == {struct.pack("<4e", 3, 0, 4, 0), struct.pack("<4e", 0.6, 0, 0.8, 0)}


def test_fragments_overlap_by_half() -> None:
    value = bytes(range(65, 97))
    pieces = [p.value for p in patterns([value], fragment=16) if p.encoding == "bytes"]
    assert pieces == [value[:16], value[8:24], value[16:]]


@pytest.mark.parametrize("needle", ["abc", b"", "", [1.0], [1e300, 1.0, 1.0, 1.0]])
def test_what_would_be_found_by_chance_is_refused(needle: object) -> None:
    with pytest.raises(InvalidInputError, match="needles"):
        encoded(needle)
    assert encoded("abcd", [1.0, 2.0, 3.0, 4.0])


def test_a_fragment_that_would_be_found_by_chance_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="fragment"):
        patterns(["a text of some length"], fragment=7)
    assert patterns(["a text of some length"], fragment=8)
