"""A released revision never changes: databases out there ran it as it was.

At a release: sha256sum versions/memory_NNNN_*.py versions/memory_NNNN_*.sql >> frozen.sha256,
in the folder alembic.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest


def broken(alembic: Path) -> list[str]:
    """The released files that are gone or differ from their hash."""
    lines = (alembic / "frozen.sha256").read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        digest, _, name = line.partition("  ")
        file = alembic / name
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            found.append(name)
    return found


def test_released_revisions_are_as_they_were(root: Path) -> None:
    assert broken(root / "alembic") == []


@pytest.fixture
def released(root: Path, tmp_path: Path) -> Path:
    """A copy in which everything is released."""
    copy = tmp_path / "alembic"
    shutil.copytree(root / "alembic", copy)
    names = sorted(p for p in (copy / "versions").iterdir() if p.suffix in {".py", ".sql"})
    (copy / "frozen.sha256").write_text(
        "".join(
            f"{hashlib.sha256(file.read_bytes()).hexdigest()}  versions/{file.name}\n"
            for file in names
        )
    )
    return copy


def test_an_edited_or_removed_revision_is_noticed(released: Path) -> None:
    assert broken(released) == []
    edited, removed = sorted((released / "versions").glob("*.sql"))[:2]
    edited.write_text(edited.read_text() + "-- harmless\n")
    removed.unlink()
    assert broken(released) == [f"versions/{edited.name}", f"versions/{removed.name}"]


def test_a_new_revision_beside_the_frozen_ones_is_allowed(released: Path) -> None:
    (released / "versions" / "memory_9999_new.py").write_text('revision = "memory_9999"\n')
    assert broken(released) == []
