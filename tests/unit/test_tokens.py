from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.tokens import TERM_BYTES, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" \n\t", {}),
        ("?! ... --- ***", {}),
        ("the cat and the hat", {"the": 2, "cat": 1, "and": 1, "hat": 1}),
        ("INV-42, inv_42", {"inv": 2, "42": 2}),
        ("invoices invoice", {"invoices": 1, "invoice": 1}),
        ("don't", {"don": 1, "t": 1}),
        ("a.b@c.d", {"a": 1, "b": 1, "c": 1, "d": 1}),
        ("Straße STRASSE", {"strasse": 2}),
        ("\u0130stanbul", {"i\u0307stanbul": 1}),
        ("caf\u00e9 cafe\u0301", {"caf\u00e9": 2}),
        ("\uff37\uff49\uff44\uff45", {"wide": 1}),
        ("\ufb01ne", {"fine": 1}),
        ("x\u00b2", {"x2": 1}),
        ("नमस्ते दुनिया", {"नमस्ते": 1, "दुनिया": 1}),
        ("தமிழ் மொழி", {"தமிழ்": 1, "மொழி": 1}),
        ("क्\u200dष क्ष", {"क्ष": 2}),
        ("co\u00adoperate", {"cooperate": 1}),
        ("東京都", {"東京": 1, "京都": 1}),
        ("猫", {"猫": 1}),
        ("猫 犬", {"猫": 1, "犬": 1}),
        ("ひらカタ漢", {"ひら": 1, "らカ": 1, "カタ": 1, "タ漢": 1}),
        ("한국어", {"한국": 1, "국어": 1}),
        ("iPhone用ケース", {"iphone": 1, "用ケ": 1, "ケー": 1, "ース": 1}),
        ("\ufeff☎️ 👍🏽 ❤️", {}),
        ("\u0301\u0301", {}),
        ("❤\ufe0fhello", {"hello": 1}),
        ("٣٤", {"٣٤": 1}),
    ],
)
def test_words_of_every_script(text, expected):
    assert terms(text) == expected


def test_a_long_term_is_cut_at_a_character():
    assert list(terms("a" * 129)) == ["a" * 128]
    assert list(terms("é" * 65)) == ["é" * 64]
    assert list(terms("x" + "é" * 64)) == ["x" + "é" * 63]
    # Few enough characters to pass for short, of four bytes each.
    assert list(terms("\U00010428" * 33)) == ["\U00010428" * 32]
    assert terms("a" * 200 + " " + "a" * 300) == {"a" * 128: 2}


@pytest.mark.parametrize("selector", ["\ufe00", "\ufe0f", "\U000e0100", "\U000e01ef"])
def test_each_variation_selector_is_invisible_and_its_neighbours_are_not(selector):
    assert terms(f"us{selector}er") == {"user": 1}
    for neighbour in ("\ufdff", "\ufe10", "\U000e00ff", "\U000e01f0"):
        assert "user" not in terms(f"us{neighbour}er")


@given(st.text(max_size=300))
def test_terms_are_bounded_normal_and_findable(text):
    found = terms(text)
    assert all(count >= 1 for count in found.values())
    for term in found:
        assert 0 < len(term.encode()) <= TERM_BYTES
        assert any(char.isalnum() for char in term)
        assert not any(unicodedata.category(char)[0] in "ZCPS" for char in term)


@given(st.text(alphabet="abc ABC é É 東京 हि\u0301-", max_size=80))
def test_upper_case_and_normal_form_do_not_matter(text):
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))
    assert terms(text.swapcase()) == terms(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 65_536,
        "é" * 32_768,
        "字" * 21_845,
        "\u0301\u0323" * 16_384,
        "a" + "\u0301" * 16_000 + "\u0323" * 16_000,
        "\ufdfa" * 21_845,
        "a " * 32_768,
        "é-" * 21_845,
    ],
    ids=["ascii", "latin", "cjk", "marks", "descending marks", "expanding", "words", "mixed"],
)
def test_a_full_text_without_separators_is_fast(text):
    # Sorting combining marks naively takes 1.4 seconds for the fifth; linear takes 0.1 at most.
    started = time.process_time()
    terms(text)
    assert time.process_time() - started < 0.7
