"""The pages of the documentation and the fenced blocks in them."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from sqlalchemy.ext.asyncio import AsyncEngine

from memory import Memory
from memory.urls import normalize_url
from servers import Database

ROOT: Final = Path(__file__).parents[2]
_ROLES: Final = {"application": "app", "owner": "owner", "superuser": "superuser"}


@dataclass(frozen=True)
class Block:
    """A fenced block; ``line`` is that of its first line in the page, from 1."""

    language: str
    code: str
    line: int

    @property
    def role(self) -> str | None:
        """Whose SQL this is, as its first line says: ``-- as the owner``."""
        found = re.match(r"-- as (?:a|an|the) (\w+)", self.code)
        return found[1] if found else None

    @property
    def file(self) -> str | None:
        """What the reader saves this as, where its first line says so: ``# vouch.py``."""
        found = re.match(r"# (\w+\.py)\n", self.code)
        return found[1] if found else None

    @property
    def statements(self) -> list[str]:
        """The statements of an SQL block; none may hold a semicolon."""
        return [part.strip() for part in self.code.split(";") if part.strip()]


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def blocks(self, *languages: str) -> list[Block]:
        """Return the blocks of these languages in the order of the page."""
        names = "|".join(languages)
        found = re.finditer(rf"^```({names})\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        return [
            Block(language=m[1], code=m[2], line=self.text.count("\n", 0, m.start(2)) + 1)
            for m in found
        ]

    def sql(self, *words: str) -> list[str]:
        """Return the statements of the one SQL block that says all this."""
        [found] = [b for b in self.blocks("sql") if all(word in b.code for word in words)]
        return found.statements


def run(
    code: str,
    *,
    name: str,
    line: int,
    names: dict[str, Any],
    runner: asyncio.Runner | None = None,
) -> None:
    """Run a block as ``python -m asyncio`` would, at its place in the page for tracebacks."""
    tree = ast.increment_lineno(ast.parse(code, name), line - 1)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    result = eval(compile(tree, name, "exec", flags, dont_inherit=True), names)  # noqa: S307
    if inspect.iscoroutine(result):
        (asyncio.run if runner is None else runner.run)(result)


def run_page(
    page: Page, database: Database, names: dict[str, Any], *, sql: bool = True
) -> list[list[Any]]:
    """Run the blocks in the order of the page, on one event loop; return the rows of its SQL.

    ``names`` gains what the blocks define; a Memory or an engine that they leave open is closed.
    """
    rows: list[list[Any]] = []
    with asyncio.Runner() as runner:
        try:
            for block in page.blocks("python", "sql"):
                if block.file is not None:
                    Path(block.file).write_text(block.code)
                elif block.language == "python":
                    place = {"name": page.path.name, "line": block.line}
                    run(block.code, **place, names=names, runner=runner)
                elif sql:
                    rows += _run_sql(block, database)
        finally:
            for value in list(names.values()):
                if isinstance(value, Memory):
                    runner.run(value.close())
                elif isinstance(value, AsyncEngine):
                    runner.run(value.dispose())
    return rows


def names_for(database: Database) -> dict[str, Any]:
    """What the blocks of the pages take for given."""
    return {
        "__name__": "__main__",
        "url": normalize_url(database.app_url).render_as_string(hide_password=False),
        "owner_url": database.owner_url,
        "operator_url": normalize_url(database.operator_url).render_as_string(hide_password=False),
        "pepper": "pepper",
        "indexes": [],
    }


def _run_sql(block: Block, database: Database) -> list[list[Any]]:
    """Run a block of SQL as the role it names; return the rows of each statement that has some."""
    assert block.role in _ROLES, f"line {block.line}: begin with -- as the owner, or whose it is"
    with psycopg.connect(database.url(_ROLES[block.role]), autocommit=True) as session:
        cursors = [session.execute(statement) for statement in block.statements]
        return [cursor.fetchall() for cursor in cursors if cursor.description is not None]
