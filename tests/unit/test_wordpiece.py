"""WordPiece against ids that the reference tokeniser gave."""

from __future__ import annotations

import hashlib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.integrations.wordpiece import WordPiece, vocabulary, words

PIECES = vocabulary()
TOKENS = WordPiece(PIECES)
NAMES = list(PIECES)
UNKNOWN = PIECES["[UNK]"]


def pieces(text, most=256):
    return [NAMES[number] for number in TOKENS.ids(text, most)[1:-1]]


def test_the_vocabulary_is_the_one_that_its_notice_names():
    folder = resources.files("memory.integrations").joinpath("bert_uncased")
    digest = hashlib.sha256(folder.joinpath("vocab.txt").read_bytes()).hexdigest()
    assert f"sha256 of vocab.txt: {digest}" in folder.joinpath("NOTICE").read_text()
    assert "Apache License" in folder.joinpath("LICENSE").read_text()
    assert len(PIECES) == 30_522
    assert (PIECES["[PAD]"], PIECES["[UNK]"], PIECES["##\uff5e"]) == (0, 100, 30_521)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", [101, 102]),
        ("Ravi moved to Pune last March.", [101, 16806, 2333, 2000, 16920, 2197, 2233, 1012, 102]),
        ("unaffable", [101, 14477, 20961, 3468, 102]),
        ("東京 is 12", [101, 1879, 1755, 2003, 2260, 102]),
    ],
)
def test_ids_are_those_of_the_reference(text, ids):
    assert TOKENS.ids(text, 256) == ids


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café CAFE\u0301", ["cafe", "cafe"]),
        ("don't $5", ["don", "'", "t", "$", "5"]),
        ("東京 is 12", ["東", "京", "is", "12"]),
        ("नमस्ते", ["न", "##म", "##स", "##त"]),
        ("a\tb\u00a0c\nd", ["a", "b", "c", "d"]),
        ("in\u200bvis\u00adi\0ble", ["invisible"]),
        ("\ufffd", []),
        ("[MASK] [CLS]", ["[", "mask", "]", "[", "cl", "##s", "]"]),
        ("ok 🙂 ok", ["ok", "[UNK]", "ok"]),
        ("\ufb01ne", ["\ufb01", "##ne"]),
    ],
    ids=range(10),
)
def test_corners_of_unicode(text, expected):
    assert pieces(text) == expected


def test_a_word_of_over_a_hundred_characters_is_unknown_as_a_whole():
    assert "[UNK]" not in pieces("a" * 100)
    assert pieces("a" * 101) == ["[UNK]"]
    assert pieces(f"tea {'a' * 5_000} tea") == ["tea", "[UNK]", "tea"]


def test_a_long_text_is_cut_and_still_ends():
    ids = TOKENS.ids("tea " * 1_000, 256)
    assert len(ids) == 256
    assert (ids[0], ids[1], ids[-2], ids[-1]) == (101, PIECES["tea"], PIECES["tea"], 102)


@given(st.text(max_size=60), st.integers(2, 40))
def test_any_text_gives_ids_within_bounds(text, most):
    ids = TOKENS.ids(text, most)
    assert 2 <= len(ids) <= most
    assert (ids[0], ids[-1]) == (101, 102)
    assert all(0 <= number < len(PIECES) for number in ids)
    assert not {101, 102} & set(ids[1:-1])
    assert not any(char.isspace() for word in words(text) for char in word)
