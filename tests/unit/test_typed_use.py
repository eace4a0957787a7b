"""The type-checked use of the API is complete."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from public import documented

USE = Path(__file__).parents[1] / "typing"
# The methods of an integration's classes.
CALLED_BY_FRAMEWORKS = re.compile(r"memory\.integrations(\.\w+){3}")


def used(source: str) -> set[str]:
    """Return the names and attributes that a module uses; importing is not using."""
    nodes = list(ast.walk(ast.parse(source)))
    found = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return found | {node.id for node in nodes if isinstance(node, ast.Name)}


def test_every_public_name_is_used() -> None:
    there = set().union(*(used(file.read_text(encoding="utf-8")) for file in USE.glob("*.py")))
    wanted = [path for path in documented() if not CALLED_BY_FRAMEWORKS.fullmatch(path)]
    lacking = sorted(path for path in wanted if path.rpartition(".")[2] not in there)
    assert not lacking, f"use in tests/typing: {lacking}"


def test_an_import_alone_is_no_use() -> None:
    assert used("from memory import Memory\nmemory.check()") == {"memory", "check"}
