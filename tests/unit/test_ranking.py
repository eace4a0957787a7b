from __future__ import annotations

import json
import math
from array import array
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import metadata, ranking, vectors

finite = st.floats(-1e6, 1e6, width=32)


def test_the_lexical_score_is_a_share_of_the_query():
    assert ranking.lexical_score(["a", "b", "c", "d"], {"a": 1, "c": 9, "z": 1}) == 0.5
    assert ranking.lexical_score(["a"], {"a"}) == 1.0
    assert ranking.lexical_score(["a"], ()) == 0.0
    assert ranking.lexical_score([], {"a"}) == 0.0


def test_best_takes_the_greatest_and_ties_by_bytes_of_the_id():
    low, high = UUID(int=3), UUID(int=1 << 127)
    assert ranking.best([(0.5, low), (0.5, high), (0.9, low)], 2) == [(0.9, low), (0.5, high)]
    day = datetime(2026, 1, 1, tzinfo=UTC)
    assert ranking.best([(day, high), (day + timedelta(days=1), low)], 1) == [
        (day + timedelta(days=1), low)
    ]
    assert ranking.best([(0.5, low)], 10) == [(0.5, low)]


def test_every_strategy_says_how_it_searched():
    assert set(ranking.HOW) == {"lexical", "vector", "recent"}


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=50))
def test_cosine_is_bounded_symmetric_and_blind_to_length(pairs):
    left, right = (list(side) for side in zip(*pairs, strict=True))
    norms = vectors.norm(left) * vectors.norm(right)
    if norms < 1e-12:
        return
    score = vectors.cosine(left, right, norms)
    assert -1.0 <= score <= 1.0
    assert score == vectors.cosine(right, left, norms)
    doubled = [2 * value for value in left]
    assert vectors.cosine(doubled, right, 2 * norms) == pytest.approx(score, abs=1e-12)


def test_vectors_share_a_space_by_length_and_by_name_where_both_have_one():
    assert vectors.comparable("a", 3, "a", 3)
    assert vectors.comparable("a", 3, None, 3)
    assert vectors.comparable(None, 3, None, 3)
    assert not vectors.comparable("a", 3, "b", 3)
    assert not vectors.comparable("a", 3, "a", 4)
    assert not vectors.comparable(None, 3, None, 4)


@given(st.lists(st.floats(-1e10, 1e10), min_size=1, max_size=20).filter(any))
def test_a_vector_is_rounded_to_single_precision(values):
    expected = array("f", values)
    if not 1e-15 <= math.hypot(*expected) <= 1e15:
        return
    assert vectors.vector(values) == expected
    assert vectors.vector(list(expected)) == expected


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("abc", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", max_size=2), json_values, max_size=4))
def test_metadata_is_copied_survives_json_and_contains_itself(value):
    copied = metadata.metadata(value)
    assert copied == json.loads(json.dumps(value)) == value
    assert copied is not value
    assert metadata.contains(copied, copied)
    assert metadata.contains(copied, {})
    for key in copied:
        assert metadata.contains(copied, {key: copied[key]})
        assert not metadata.contains({}, {key: copied[key]})


def test_equal_json_is_equal_by_the_rules_of_jsonb():
    same = metadata.canonical
    assert same({"a": 1, "b": [1.0]}) == same({"b": [1], "a": 1.0})
    assert same({"a": 1}) != same({"a": True})
    assert same({"a": 0}) != same({"a": False})
    assert same({"a": [1, 2]}) != same({"a": [2, 1]})
    assert same({"a": "1"}) != same({"a": 1})


def test_shared_references_do_not_multiply_without_end():
    value = [1]
    for _ in range(28):
        value = [value, value]
    with pytest.raises(ValueError, match="must not exceed"):
        metadata.metadata({"a": value})
    circular = {}
    circular["a"] = circular
    with pytest.raises(ValueError, match="must not nest"):
        metadata.metadata(circular)
