"""The fixtures that the page on web services gives to a host's tests, as a host runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, Page
from samples import EXAMPLES

PAGE = Page(ROOT / "docs" / "fastapi.md")
SECOND = """
import pytest


@pytest.mark.asyncio
async def test_another_test_sees_nothing_of_it(client):
    assert (await client.post("/recall", json={})).json()["hits"] == []
    await client.post("/remember", json={"text": "Li called", "subject_keys": ["customer:li"]})
    assert len((await client.post("/recall", json={})).json()["hits"]) == 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A host's folder of tests: the page's files, and a test beside them."""
    files = {block.file: block.code for block in PAGE.blocks("python") if block.file}
    assert sorted(files) == ["conftest.py", "test_forgetting.py"]
    files["test_second.py"] = SECOND
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    return tmp_path


def tried(folder: Path) -> str:
    # Of this run's plug-ins none but the one that the page names.
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_asyncio.plugin"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, **plugins, "PYTHONPATH": f"{ROOT}:{EXAMPLES}"},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_the_fixtures_of_the_page_serve_a_hosts_tests(folder: Path) -> None:
    assert "2 passed" in tried(folder)


def test_a_service_that_keeps_who_was_forgotten_would_be_found(folder: Path) -> None:
    test = folder / "test_forgetting.py"
    kept = test.read_text().replace('"subject_key": DANA}', '"subject_key": "customer:li"}')
    test.write_text(kept)
    assert "1 failed, 1 passed" in tried(folder)
