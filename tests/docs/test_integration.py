"""What integration runs beside the suite: the other Pythons."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def pythons(root: Path) -> ModuleType:
    """The program .ci/pythons.py as a module."""
    spec = importlib.util.spec_from_file_location("pythons", root / ".ci" / "pythons.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(file: Path, script: str) -> Path:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def test_a_python_that_is_absent_or_does_not_run_is_not_taken(
    pythons: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
    assert pythons.find("3.99") is None
    program(tmp_path / "python3.99", "exit 127")
    assert pythons.find("3.99") is None
    folder = tmp_path / ".pyenv" / "versions" / "3.99.1" / "bin"
    folder.mkdir(parents=True)
    there = program(folder / "python", f'exec {sys.executable} "$@"')
    assert pythons.find("3.99") == str(there)


def test_what_fails_under_another_python_ends_integration(pythons: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no such thing"):
        pythons.run(sys.executable, "-c", "raise SystemExit('no such thing')")
    assert pythons.run(sys.executable, "-c", "print('done')") == "done\n"


def test_the_tests_it_names_exist(pythons: ModuleType, root: Path) -> None:
    files = [name for name in pythons.TESTS if name.startswith("tests/")]
    assert files
    assert [name for name in files if not (root / name).is_file()] == []


def test_integration_runs_it_before_the_suite(root: Path) -> None:
    script = (root / ".ci" / "run").read_text()
    assert script.index(".ci/pythons.py") < script.index("exec .venv/bin/python -m pytest")
