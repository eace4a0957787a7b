"""Which rows of filler reach which old bytes in the free space of a page."""

from __future__ import annotations

from memory.maintenance.scrubbing.placing import Gap, descending, left_by, plan


def gap(size: int, *runs: tuple[int, int], unused: int = 0) -> Gap:
    return Gap(size=size, unused=unused, runs=runs or ((0, size),))


def test_sizes_fall_to_the_smallest_row() -> None:
    assert descending(184, 56) == [184, 160, 128, 96, 64, 56]
    assert descending(128, 64) == [128, 96, 64]
    assert descending(56, 56) == [56]


def test_rows_fill_from_above_and_pointers_from_below() -> None:
    assert left_by(gap(200), [64]) == gap(200, (8, 72))
    assert left_by(gap(192, unused=2), [64]) == gap(192, (0, 64), unused=2)
    assert left_by(gap(204), [96, 64]) is None


def test_a_gap_smaller_than_a_row_is_out_of_reach() -> None:
    assert left_by(gap(60), [56]) == gap(60)
    assert plan([gap(60)], 56, 184, passes=4) == []


def test_a_page_is_looked_up_in_units_of_the_free_space_map() -> None:
    # 120 bytes are free beside the pointer, which the map rounds to 96: no row of 104 is placed.
    assert left_by(gap(124), [104]) == gap(124)
    assert left_by(gap(124), [96]) == gap(124, (4, 28))


def test_two_passes_leave_nothing_where_one_leaves_something() -> None:
    gaps = [gap(size) for size in range(2000, 2400, 4)]
    firsts = plan(gaps, 56, 184, passes=4)
    assert 1 < len(firsts) <= 4
    for one in gaps:
        left: Gap | None = one
        for first in firsts:
            left = left and left_by(left, descending(first, 56))
        assert left is None
    alone = [left_by(one, descending(firsts[0], 56)) for one in gaps]
    assert any(alone)
