"""The mutants that tests/mutation/run.py tries are still of this library, and its tests exist."""

from __future__ import annotations

from pathlib import Path

import pytest

import rules_of_access
import rules_of_erasing
import rules_of_locks
import rules_of_writing
from edits import VERSIONS, function_text
from parts import PARTS

EDITS = [
    *rules_of_writing.EDITS,
    *rules_of_erasing.EDITS,
    *rules_of_locks.EDITS,
    *rules_of_access.EDITS,
]


def test_every_edit_changes_one_place_of_its_function() -> None:
    for edit in EDITS:
        assert edit.statement
        if edit.function:
            assert edit.statement.count("create or replace function") == 1
            assert edit.old != edit.new


def test_a_place_that_a_function_lacks_is_no_edit() -> None:
    gone = rules_of_writing.FIRST[0]
    with pytest.raises(ValueError, match="0 times in check_tenant"):
        _ = type(gone)(gone.stem, gone.function, "no such words", "", gone.tests).statement


def test_every_definer_function_that_writes_has_edits() -> None:
    edited = {edit.function for edit in EDITS}
    missing = {
        name
        for path in VERSIONS.glob("memory_00*.sql")
        if path.stem < "memory_0011"
        for name in _functions(path)
        if "security definer" in function_text(path.stem[7:11], name)
    } - edited
    assert not missing


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_the_modules_and_tests_of_each_part_exist(part) -> None:
    assert all(path.is_file() for path in part.paths)
    assert all(Path(test).exists() for test in part.tests if test.startswith("/"))
    assert all(Path(test).is_file() for edit in EDITS for test in edit.paths)


def _functions(path: Path) -> list[str]:
    words = path.read_text().split("create function memory.")
    return [word.partition("(")[0] for word in words[1:]]
