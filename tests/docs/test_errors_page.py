"""The catalogue of errors is complete, and says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from memory import errors
from memory.failures import translate
from pages import Page


def rows(page: Page, heading: str) -> list[list[str]]:
    """Return the cells of the table whose header begins so."""
    table = page.text.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    return [
        [cell.strip(" `") for cell in line.strip("|").split(" | ")]
        for line in table.splitlines()[2:]
    ]


def page(root: Path) -> Page:
    return Page(root / "docs" / "errors.md")


def raised(root: Path) -> set[str]:
    """Return the codes of ours that the migrations raise."""
    files = (root / "alembic" / "versions").glob("*.sql")
    return {
        code for file in files for code in re.findall(r"errcode = '(ME\d{3})'", file.read_text())
    }


class ServerError(Exception):
    """As a driver raises it."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


def test_every_error_has_a_row(root: Path) -> None:
    assert sorted(row[0] for row in rows(page(root), "error")) == errors.__all__


def test_every_code_of_the_schema_has_a_row(root: Path) -> None:
    listed = [row[0] for row in rows(page(root), "SQLSTATE")]
    assert listed == sorted(raised(root))


def test_a_code_stands_in_the_row_of_the_error_it_becomes(root: Path) -> None:
    listed = {
        code: row[0]
        for row in rows(page(root), "error")
        for code in re.findall(r"\b[0-9A-Z]{5}\b", row[2])
    }
    assert raised(root) <= listed.keys()
    for code, error in listed.items():
        assert type(translate(ServerError(code))).__name__ == error, code
