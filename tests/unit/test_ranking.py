from __future__ import annotations

import json
import math
from array import array
from datetime import UTC, datetime, timedelta
from typing import get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import metadata, ranking, vectors
from memory.types import Strategy

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


def test_a_rare_term_weighs_more_and_no_term_weighs_nothing():
    assert ranking.idf(100, 1) == pytest.approx(math.log(1 + 99.5 / 1.5))
    weights = [ranking.idf(100, holding) for holding in range(1, 101)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0
    # Counters that lag behind the postings must not make it negative.
    assert ranking.idf(3, 10) == ranking.idf(10, 10) > 0


def test_bm25_saturates_and_favours_short_records():
    weights = {"a": 2.0, "b": 1.0}
    assert ranking.bm25(weights, {"z": 3}, 3, 4.0) == 0.0
    # At the mean length, one occurrence is worth exactly the weight.
    assert ranking.bm25(weights, {"a": 1}, 4, 4.0) == 2.0
    assert ranking.bm25(weights, {"a": 1, "b": 1}, 4, 4.0) == 3.0
    repeated = [ranking.bm25(weights, {"a": count}, 4, 4.0) for count in (1, 2, 3, 40_000)]
    assert repeated == sorted(set(repeated))
    assert repeated[-1] < 2.0 * (ranking.BM25_K1 + 1)
    short, long = (ranking.bm25(weights, {"a": 1}, length, 4.0) for length in (2, 8))
    assert short > 2.0 > long


def test_frequencies_beyond_a_smallint_count_as_the_most_that_it_holds():
    most = ranking.FREQUENCY_MOST
    assert most == 2**15 - 1
    scores = {ranking.bm25({"a": 2.0}, {"a": count}, 10**6, 9.0) for count in (most, 10 * most)}
    assert len(scores) == 1


ONE, TWO, THREE, FOUR = (UUID(int=n) for n in range(1, 5))


def test_both_sides_are_scaled_over_all_candidates_and_added():
    fused = ranking.fuse({ONE: (4.0, 0.1), TWO: (0.0, 0.5), THREE: (1.0, 0.3)})
    assert dict((item, score) for score, item in fused) == pytest.approx(
        {ONE: 1.0, TWO: 1.0, THREE: 0.25 + 0.5}
    )


def test_a_candidate_without_a_vector_has_the_least_cosine():
    fused = {
        item: s for s, item in ranking.fuse({ONE: (0.0, -0.5), TWO: (0.0, 0.5), THREE: (2.0, None)})
    }
    assert fused == pytest.approx({ONE: 0.0, TWO: 1.0, THREE: 1.0})


def test_a_side_that_tells_nothing_apart_changes_no_order():
    equal = {item: score for score, item in ranking.fuse({ONE: (3.0, 0.2), TWO: (3.0, 0.9)})}
    assert equal == pytest.approx({ONE: 1.0, TWO: 2.0})
    without = ranking.fuse({ONE: (3.0, None), TWO: (1.0, None)})
    assert without == [(1.0, ONE), (0.0, TWO)]
    assert ranking.fuse({ONE: (3.0, 0.2)}) == [(2.0, ONE)]
    assert ranking.fuse({}) == []


def test_the_better_neighbour_adds_its_share():
    candidates = {ONE: (4.0, None), TWO: (0.0, None), THREE: (2.0, None), FOUR: (0.0, None)}
    adjacent = [(ONE, TWO), (TWO, ONE), (TWO, THREE), (THREE, TWO), (FOUR, UUID(int=9))]
    fused = {
        item: score for score, item in ranking.fuse(candidates, neighbours=0.5, adjacent=adjacent)
    }
    assert fused == pytest.approx({ONE: 1.0, TWO: 0.5, THREE: 0.5, FOUR: 0.0})


pairs = st.tuples(st.floats(0, 50), st.none() | st.floats(-1, 1))


@given(st.dictionaries(st.uuids(), pairs, max_size=12))
def test_fused_scores_are_bounded_and_blind_to_the_scale_of_keywords(candidates):
    fused = ranking.fuse(candidates)
    assert [item for _, item in fused] == list(candidates)
    assert all(0.0 <= score <= 2.0 for score, _ in fused)
    keywords = [keyword for keyword, _ in candidates.values()]
    if keywords and max(keywords) - min(keywords) > 1e-3:
        scaled = {item: (8 * keyword, cosine) for item, (keyword, cosine) in candidates.items()}
        assert [score for score, _ in ranking.fuse(scaled)] == pytest.approx(
            [score for score, _ in fused]
        )


def test_every_strategy_says_how_it_searched():
    assert set(ranking.HOW) == set(get_args(Strategy))


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=50))
def test_cosine_is_bounded_symmetric_and_blind_to_length(pairs):
    left, right = (list(side) for side in zip(*pairs, strict=True))
    squares = vectors.square(left) * vectors.square(right)
    if squares < 1e-24:
        return
    score = vectors.cosine(left, right, squares)
    assert -1.0 <= score <= 1.0
    assert score == vectors.cosine(right, left, squares)
    doubled = [2 * value for value in left]
    assert vectors.cosine(doubled, right, 4 * squares) == pytest.approx(score, abs=1e-12)


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


def test_two_long_arrays_are_not_compared_each_with_each(monkeypatch):
    compared = []
    canonical = metadata.canonical
    monkeypatch.setattr(metadata, "canonical", lambda value: compared.append(1) or canonical(value))
    value, pattern = {"a": [*range(2_000), [7]]}, {"a": [*range(1_999, -1, -1), [7]]}
    assert metadata.contains(value, pattern)
    assert not metadata.contains(value, {"a": [*range(1, 2_001)]})
    assert not metadata.contains(value, {"a": [True]})
    assert len(compared) < 20_000
