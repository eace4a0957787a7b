"""Mutants of the database's rules: one edit to a function of the migrations, or a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from servers import ROOT, Database

VERSIONS = ROOT / "alembic" / "versions"


@dataclass(frozen=True)
class Edit:
    """A fault of one kind, in the migration with this number, and the tests that should see it.

    ``old`` is found once in the function's text; without a function ``new`` is a statement.
    """

    stem: str
    function: str
    old: str
    new: str
    tests: str

    @property
    def paths(self) -> list[str]:
        """The tests, as pytest takes them."""
        return _paths(self.tests)

    @property
    def statement(self) -> str:
        """What the owner of the tables runs to get the mutant."""
        if not self.function:
            return self.new
        text = function_text(self.stem, self.function)
        if text.count(self.old) != 1:
            raise ValueError(f"{text.count(self.old)} times in {self.function}: {self.old}")
        return text.replace("create function", "create or replace function", 1).replace(
            self.old, self.new
        )

    def __str__(self) -> str:
        words = " ".join(self.old.split()), " ".join(self.new.split())
        if not self.function:
            return f"{self.stem} {words[1]}"
        return f"{self.stem} {self.function}: {words[0]}  ->  {words[1] or '(nothing)'}"


def function_text(stem: str, function: str) -> str:
    """The statement that creates the function."""
    (path,) = VERSIONS.glob(f"memory_{stem}_*.sql")
    found = re.search(
        rf"^create function memory\.{function}\(.*?\$\$;$", path.read_text(), re.M | re.S
    )
    if found is None:
        raise ValueError(f"no function {function} in {path.name}")
    return found[0]


def of(stem: str, function: str, tests: str, *changes: tuple[str, str]) -> Iterator[Edit]:
    """Edits of one function."""
    for old, new in changes:
        yield Edit(stem, function, old, new, tests)


def statements(stem: str, tests: str, *changes: str) -> Iterator[Edit]:
    """Edits of what is no function."""
    for change in changes:
        yield Edit(stem, "", "", change, tests)


def trigger(stem: str, function: str, table: str, tenant: str, tests: str) -> Iterator[Edit]:
    """What may be missing in each definer trigger: whose rows, whose tenant, on which table."""
    setting = "perform set_config('app.current_tenant', {}, true);"
    yield Edit(stem, function, setting.format(tenant), "", tests)
    yield Edit(
        stem,
        function,
        setting.format("coalesce(caller, '')"),
        "",
        f"test_isolation_sessions {tests}",
    )
    yield Edit(stem, function, f"tg_relid <> 'memory.{table}'::regclass", "false", "test_hijacks")


def apply(edit: Edit, database: Database) -> None:
    """Make the mutant of a migrated database."""
    statement = edit.statement.replace("{app}", database.role("app"))
    with psycopg.connect(database.owner_url, autocommit=True) as owner:
        owner.execute(statement)


def _paths(tests: str) -> list[str]:
    paths = []
    for name in dict.fromkeys(tests.split()):
        folder = "" if "/" in name else "database/"
        paths.append(str(ROOT / "tests" / f"{folder}{name}.py"))
    return paths
