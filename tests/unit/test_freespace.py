"""Which bytes of a page's free space are left over from before."""

from __future__ import annotations

import struct

from memory.maintenance.scrubbing.freespace import gap_left

ROW = b"\x11" * 22 + b"\x18\x11" + b"\x05~" + b"\xaa" * 16 + b"~" * 40
POINTER = struct.pack("<I", 64 << 17 | 1 << 15 | 8128)


def page(gap: bytes, *, lower: int = 40) -> bytes:
    head = b"\x01" * 12 + struct.pack("<HH", lower, lower + len(gap)) + b"\x01" * (lower - 16)
    return head + gap + b"live" * ((8192 - lower - len(gap)) // 4)


def remnant(content: bytes) -> int:
    gap = gap_left(content)
    return 0 if gap is None else gap.left


def test_zeros_are_clean() -> None:
    assert remnant(page(b"\0" * 400)) == 0
    assert remnant(b"\0" * 8192) == 0


def test_old_bytes_are_counted() -> None:
    assert remnant(page(b"\0" * 200 + b"Dana moved to the river" + b"\0" * 177)) == 23


def test_what_lies_above_the_filler_is_filler() -> None:
    assert remnant(page(b"\0" * 40 + ROW * 4)) == 0
    assert remnant(page(b"Dana moved to the river." + ROW * 4)) == 24


def test_a_filler_vector_is_known_by_its_values() -> None:
    piece = b"\x11" * 22 + b"\x18" + b"\x11" * 13 + struct.pack("<100f", *[1.0] * 100)
    assert remnant(page(piece)) == 0


def test_pointers_to_rows_that_are_gone_hold_no_content() -> None:
    assert remnant(page(POINTER * 30 + b"\0" * 80)) == 0
    assert remnant(page(POINTER * 30 + b"Dana moved to the river" + b"\0" * 57)) == 23


def test_fewer_bytes_than_eight_mean_nothing() -> None:
    assert remnant(page(b"\0" * 92 + b"Dana mo" + b"\0")) == 0
    assert remnant(page(b"\0" * 92 + b"Dana mov")) == 8


def test_where_old_bytes_lie_and_which_pointers_are_free_is_told() -> None:
    found = gap_left(page(b"\0" * 92 + b"Dana moved to town", lower=40))
    assert found is not None
    assert (found.size, found.runs, found.unused) == (110, ((92, 110),), 0)
    freed = bytearray(page(b"Dana moved", lower=40))
    freed[28:36] = bytes(8)
    found = gap_left(bytes(freed))
    assert found is not None
    assert found.unused == 2
