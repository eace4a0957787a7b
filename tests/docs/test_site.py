"""The documentation site builds without a warning, lists every public name, and fetches nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx.util.inventory import InventoryFile

from public import documented


@pytest.fixture(scope="session")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "docs", folder],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def listed(site: Path) -> set[str]:
    """Return the Python names that have an entry."""
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    return {name for kind in inventory if kind.startswith("py:") for name in inventory[kind]}


def test_every_public_name_has_an_entry(site: Path) -> None:
    lacking = sorted(documented().keys() - listed(site))
    assert not lacking, f"add to docs/reference: {lacking}"


def test_nothing_is_fetched_by_a_page(site: Path) -> None:
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 20
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=\"(?:https?:)?//|<link[^>]*\shref=\"(?:https?:)?//"
        r"|url\([\"']?(?:https?:)?//|@import"
    )
    assert [page.name for page in pages if fetched.search(page.read_text(encoding="utf-8"))] == []
