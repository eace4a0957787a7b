"""The manifest that verify_install compares with is what the migrations build.

After a change of a revision that is not released yet, or in a new one that creates the function
anew: MEMORY_REGENERATE_GOLDEN=1 pytest tests/database/test_verify_manifest.py writes the list.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections import defaultdict
from pathlib import Path

import psycopg

from servers import Database

VERSIONS = Path(__file__).parents[2] / "alembic" / "versions"
LIST = re.compile(
    r"(?<=from \(values\n).*?(?=^    \) as m \(kind, names, definition\))", re.MULTILINE | re.DOTALL
)
WIDTH = 100

Row = tuple[str, str, str]


def latest_definition() -> Path:
    """The newest revision that creates the manifest."""
    return max(
        file for file in VERSIONS.glob("*.sql") if "function memory.manifest()" in file.read_text()
    )


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def entry(kind: str, names: list[str], definition: str) -> str:
    """One line of the list, or several where the names do not fit in one."""
    line = f"    ({quoted(kind)}, {quoted(' '.join(names))}, {quoted(definition)})"
    if len(line) < WIDTH:
        return line
    indented = "        "
    lines = textwrap.wrap(
        " ".join(names),
        WIDTH,
        initial_indent=indented,
        subsequent_indent=indented,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join([f"    ({quoted(kind)}, '", *lines, f"    ', {quoted(definition)})"])


def written(rows: set[Row]) -> str:
    """The list as it stands in the migration: what is defined alike, together."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for kind, name, definition in sorted(rows):
        groups[kind, definition].append(name)
    return (
        ",\n".join(entry(kind, names, definition) for (kind, definition), names in groups.items())
        + "\n"
    )


def installed(database: Database) -> set[Row]:
    with psycopg.connect(database.superuser_url) as connection:
        found = connection.execute("select kind, name, definition from memory.catalogue()")
        rows = {(str(k), str(n), str(d)) for k, n, d in found.fetchall()}
        heads = connection.execute("select version_num from memory.alembic_version").fetchall()
    return rows | {("revision", str(head), "") for (head,) in heads}


def test_the_manifest_is_what_the_migrations_build(database: Database) -> None:
    file = latest_definition()
    text = file.read_text(encoding="utf-8")
    wanted = LIST.sub(lambda _: written(installed(database)), text)
    if os.environ.get("MEMORY_REGENERATE_GOLDEN"):
        file.write_text(wanted, encoding="utf-8")
    assert text == wanted
