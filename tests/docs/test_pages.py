"""What the pages show is executed; what they name exists."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memory.urls import normalize_url
from servers import Database

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Block:
    """A fenced block; ``line`` is that of its first line in the page, from 1."""

    code: str
    line: int


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[Block]:
        found = re.finditer(rf"^```{language}\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        return [
            Block(code=match[1], line=self.text.count("\n", 0, match.start(1)) + 1)
            for match in found
        ]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(params=pages(), ids=lambda path: path.name)
def page(request: pytest.FixtureRequest) -> Page:
    """Each page in turn."""
    return Page(request.param)


@pytest.fixture(scope="session")
def readme() -> Page:
    return Page(ROOT / "README.md")


def run(code: str, *, name: str, line: int, names: dict[str, Any]) -> None:
    """Run a block as ``python -m asyncio`` would, at its place in the page for tracebacks."""
    tree = ast.increment_lineno(ast.parse(code, name), line - 1)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    result = eval(compile(tree, name, "exec", flags, dont_inherit=True), names)  # noqa: S307
    if inspect.iscoroutine(result):
        asyncio.run(result)


def test_every_python_block_runs(page: Page, database: Database) -> None:
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        superuser.execute("create table public.tickets (title text)")
        superuser.execute(f"grant insert on public.tickets to {database.role('app')}")
    url = normalize_url(database.app_url).render_as_string(hide_password=False)
    names: dict[str, Any] = {"__name__": "__main__", "url": url, "pepper": "pepper"}
    blocks = page.blocks("python")
    assert blocks
    for block in blocks:
        run(block.code, name=page.path.name, line=block.line, names=names)


def test_the_joined_transaction_of_the_readme_writes_both_rows(
    readme: Page, database: Database
) -> None:
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        superuser.execute("create table public.tickets (title text)")
        superuser.execute(f"grant insert on public.tickets to {database.role('app')}")
        [block] = [b for b in readme.blocks("python") if "PostgresStore.joined" in b.code]
        url = normalize_url(database.app_url).render_as_string(hide_password=False)
        names = {"url": url, "pepper": "pepper"}
        run(block.code, name="README.md", line=block.line, names=names)
        counts = "select (select count(*) from tickets), (select count(*) from memory.records)"
        assert superuser.execute(counts).fetchone() == (1, 1)


def test_links_lead_to_files(page: Page) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.text)
    missing = [
        link
        for link in links
        if "://" not in link and not (page.path.parent / link).resolve().exists()
    ]
    assert not missing


def test_files_and_extras_that_the_readme_names_exist(readme: Page, root: Path) -> None:
    files = re.findall(r"\b((?:examples|tests|docs)/[\w/.]+\.(?:py|md))", readme.text)
    assert {"examples/quickstart.py", "examples/replay.py"} <= set(files)
    assert [file for file in files if not (root / file).is_file()] == []
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = re.findall(r"'\.\[(\w+)\]'|extra `(\w+)`", readme.text)
    named = {first or second for first, second in extras}
    assert named == {"dev", "embedded", "examples"}
    assert named <= project["optional-dependencies"].keys()


def test_the_test_command_is_what_integration_runs(readme: Page, root: Path) -> None:
    [block] = [b for b in readme.blocks("sh") if "pytest" in b.code]
    setup, command = block.code.strip().splitlines()
    script = (root / ".ci" / "run").read_text()
    assert script.strip().splitlines()[-1] == f"exec {command}"
    for step in setup.removeprefix("python3 ").split(" && "):
        words = [word for word in step.split() if word not in {"-q", "--quiet"}]
        lines = [
            [
                word
                for word in line.split()
                if word not in {"--quiet", "--disable-pip-version-check"}
            ]
            for line in script.splitlines()
        ]
        assert any(line[-len(words) :] == words for line in lines), step


def test_the_two_lines_of_ini_are_the_ones_that_deploy(readme: Page, tmp_path: Path) -> None:
    [block] = [b for b in readme.blocks("sh") if "alembic.ini" in b.code]
    first, second = block.code.strip().splitlines()
    subprocess.run(["/bin/sh", "-c", first], cwd=tmp_path, check=True)
    # tests/migration/test_packaging.py deploys an installed wheel with exactly this.
    ini = (tmp_path / "alembic.ini").read_text()
    assert ini == "[alembic]\nscript_location = memory:migrations\n"
    assert second.endswith("alembic upgrade head")


def test_the_changelog_says_what_is_not_released_yet(root: Path) -> None:
    text = (root / "CHANGELOG.md").read_text()
    section = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert re.search(r"^Revisions: ", section[1], re.MULTILINE)
    assert re.search(r"^### Added\n\n- ", section[1], re.MULTILINE)
