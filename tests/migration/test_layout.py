"""A folder called alembic beside a package called alembic: what keeps them apart."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_no_init_file_makes_the_folder_shadow_the_package(root: Path) -> None:
    assert (root / "alembic" / "env.py").is_file()
    assert not list((root / "alembic").rglob("__init__.py"))


def test_alembic_is_the_real_package_from_the_checkout(root: Path) -> None:
    program = "import alembic.command as c; print(c.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert root / "alembic" not in Path(done.stdout.strip()).parents


def test_every_revision_is_named_for_its_id_and_has_its_sql_beside_it(root: Path) -> None:
    revisions = sorted((root / "alembic" / "versions").glob("*.py"))
    assert revisions
    for file in revisions:
        text = file.read_text(encoding="utf-8")
        revision = re.search(r'^revision = "(.+)"$', text, re.MULTILINE)
        assert revision is not None, file.name
        assert re.fullmatch(r"memory_\d{4}", revision[1]), file.name
        assert file.stem.startswith(f"{revision[1]}_"), file.name
        assert ("ddl.statements(__file__)" in text) == file.with_suffix(".sql").exists()
    scripts = (root / "alembic" / "versions").glob("*.sql")
    assert {script.stem for script in scripts} <= {file.stem for file in revisions}


def test_a_revision_hangs_on_no_live_code_but_the_splitter(root: Path) -> None:
    for file in (root / "alembic" / "versions").glob("*.py"):
        imported = re.findall(r"^(?:from|import) memory.*$", file.read_text(), re.MULTILINE)
        assert imported in ([], ["from memory import ddl"]), file.name
