"""A search of files finds what is there, wherever it is, and nothing else."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from memory.errors import InvalidInputError
from memory.maintenance import find_residue, residue
from memory.maintenance.compressed import unpack_all

TEXT = "Dana moved to the house by the river"
VECTOR = [0.25, -1.5, 3.0, 0.125, 9.0]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "PG_VERSION").write_text("18\n")
    (tmp_path / "base").mkdir()
    return tmp_path


def write(data: Path, content: bytes, name: str = "base/1") -> None:
    (data / name).write_bytes(content)


@pytest.mark.parametrize("before", range(17))
def test_a_text_is_found_at_any_place(data: Path, before: int) -> None:
    write(data, b"x" * before + TEXT.encode() + b"y" * 5)
    found = find_residue(data, [TEXT, "somebody who was never here"])
    assert [(t.needle, t.encoding, t.file) for t in found.traces] == [(0, "text", "base/1")]
    assert (found.share, found.files) == (0.5, 2)


def test_capital_letters_hide_nothing(data: Path) -> None:
    write(data, TEXT.upper().encode())
    assert find_residue(data, [TEXT]).found == {0}
    assert find_residue(data, ["Dana"]).found == {0}


def test_a_vector_is_found_byte_for_byte_only(data: Path) -> None:
    write(data, b"..." + struct.pack("<5f", *VECTOR))
    other = [*VECTOR[:4], 9.5]
    found = find_residue(data, [VECTOR, other])
    assert [(t.needle, t.encoding) for t in found.traces] == [(0, "float32")]


def test_a_remnant_is_found_by_fragments_only(data: Path) -> None:
    write(data, TEXT.encode()[9:33])
    assert find_residue(data, [TEXT]).found == set()
    assert find_residue(data, [TEXT], fragment=16).found == {0}


@pytest.mark.parametrize("size", [1, 7, 64, 500])
def test_a_text_is_found_across_blocks_and_behind_zeros(
    data: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(residue, "_BLOCK", size)
    write(data, b"\0" * 300 + TEXT.encode() + b"\0" * 300)
    assert find_residue(data, [TEXT]).found == {0}


def test_zeros_within_a_vector_do_not_hide_it(data: Path) -> None:
    sparse = [1.0, *[0.0] * 300, 2.0]
    write(data, b"\0" * 5000 + struct.pack("<302f", *sparse) + b"\0" * 5000)
    assert find_residue(data, [sparse]).found == {0}


def test_a_tablespace_is_searched(data: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "1").write_bytes(TEXT.encode())
    (data / "pg_tblspc").mkdir()
    (data / "pg_tblspc" / "16400").symlink_to(elsewhere)
    found = find_residue(data, [TEXT])
    assert [trace.file for trace in found.traces] == ["pg_tblspc/16400/1"]


def test_progress_tells_names_and_numbers(data: Path) -> None:
    told: list[tuple[str, int, int]] = []
    write(data, b"")
    find_residue(data, [TEXT], progress=lambda *args: told.append(args))
    assert told == [("PG_VERSION", 1, 2), ("base/1", 2, 2)]


def test_the_report_shows_no_needle(data: Path) -> None:
    write(data, TEXT.encode())
    found = find_residue(data, [TEXT])
    assert "river" not in repr(found) + found._repr_html_()
    assert "base/1" in found._repr_html_()


def test_another_directory_and_no_needle_are_refused(data: Path) -> None:
    with pytest.raises(InvalidInputError, match="data_directory"):
        find_residue(data / "base", [TEXT])
    with pytest.raises(InvalidInputError, match="needles"):
        find_residue(data, [])


def inline(packed: bytes, size: int, method: int) -> bytes:
    return struct.pack("<II", (len(packed) + 8) << 2 | 2, method << 30 | size) + packed


def chunk(packed: bytes, size: int, method: int) -> bytes:
    return struct.pack("<III", 0, (len(packed) + 8) << 2, method << 30 | size) + packed


# "abcd" and what stands four bytes back, for 60 bytes: pglz first, LZ4 second.
PGLZ = b"\x10abcd\x0f\x04\x26"
LZ4 = b"\x4fabcd\x04\x00\x25"


@pytest.mark.parametrize("head", [inline, chunk])
@pytest.mark.parametrize(("packed", "method"), [(PGLZ, 0), (LZ4, 1)])
def test_what_was_compressed_is_unpacked(head: object, packed: bytes, method: int) -> None:
    value = head(packed, 60, method)  # type: ignore[operator]
    assert b"abcd" * 15 in set(unpack_all(b"\xff" * 7 + value + b"\xff" * 9))


def test_a_compressed_value_that_breaks_off_is_unpacked_as_far_as_it_goes(data: Path) -> None:
    # The reference leads back before the beginning.
    broken = b"\x80river a\x0f\xff" + b"\x00" * 20
    assert b"river a" in set(unpack_all(inline(broken, 5000, 0)))
    write(data, inline(b"\x00Dana mov\x00ed to th\x00e house ", 4000, 0))
    found = find_residue(data, ["Dana moved to the house"])
    assert [trace.compressed for trace in found.traces] == [True]
