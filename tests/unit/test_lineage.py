from __future__ import annotations

import time
from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memory import lineage

A, B, C, D, E = (UUID(int=n) for n in range(5))


def test_a_closure_is_transitive_and_keeps_to_its_roots():
    derived_from = {A: [B], B: [C], D: [E]}
    assert lineage.closure([A], derived_from) == {A, B, C}
    assert lineage.closure([C], derived_from) == {C}
    assert lineage.closure([A, D], derived_from) == {A, B, C, D, E}
    assert lineage.closure([], derived_from) == set()


def test_depth_is_the_shortest_way_to_the_farthest():
    assert lineage.depth([], {}) == 0
    assert lineage.depth([A], {}) == 0
    assert lineage.depth([A], {A: [B], B: [C]}) == 2
    assert lineage.depth([A], {A: [B, C], B: [C]}) == 1
    assert lineage.depth([A, B], {A: [B], B: [C]}) == 1


def test_a_cycle_ends():
    cycle = {A: [B], B: [C], C: [A, D]}
    assert lineage.closure([A], cycle) == {A, B, C, D}
    assert lineage.depth([A], cycle) == 3
    assert lineage.closure([A], {A: [A]}) == {A}
    assert lineage.depth([A], {A: [A]}) == 0


def test_a_chain_of_ten_thousand_is_walked_without_recursion():
    ids = [UUID(int=n) for n in range(10_001)]
    chain = {source: [made] for source, made in pairwise(ids)}
    started = time.perf_counter()
    assert lineage.closure(ids[:1], chain) == set(ids)
    assert lineage.depth(ids[:1], chain) == 10_000
    assert time.perf_counter() - started < 2


nodes = st.integers(0, 12)


@given(st.sets(st.tuples(nodes, nodes), max_size=40), st.sets(nodes, max_size=4))
def test_levels_agree_with_relaxing_every_edge(edges, roots):
    derived_from: dict[UUID, set[UUID]] = {}
    for source, made in edges:
        derived_from.setdefault(UUID(int=source), set()).add(UUID(int=made))
    distance = dict.fromkeys(roots, 0)
    for _ in range(14):
        for source, made in edges:
            if source in distance:
                distance[made] = min(distance.get(made, 99), distance[source] + 1)
    start = [UUID(int=root) for root in roots]
    assert lineage.closure(start, derived_from) == {UUID(int=node) for node in distance}
    assert lineage.depth(start, derived_from) == max(distance.values(), default=0)


@given(
    st.sets(st.tuples(nodes, nodes), max_size=40),
    st.sets(nodes, max_size=4),
    st.sets(nodes, max_size=3),
)
def test_what_a_hold_does_not_keep_can_go_without_severing_anything(edges, roots, held):
    derived_from: dict[UUID, set[UUID]] = {}
    sources: dict[UUID, set[UUID]] = {}
    for source, made in edges:
        derived_from.setdefault(UUID(int=source), set()).add(UUID(int=made))
        sources.setdefault(UUID(int=made), set()).add(UUID(int=source))
    asked = lineage.closure([UUID(int=root) for root in roots], derived_from)
    flagged = {UUID(int=node) for node in held} & asked
    kept = lineage.spared(flagged, asked, sources)
    gone = asked - kept
    assert flagged <= kept
    assert lineage.closure(gone, derived_from) == gone
    # And nothing more is kept than leads to a held one.
    assert all(lineage.closure([item], derived_from) & flagged for item in kept)
