"""What a page tells the reader to paste is what an interactive Python takes, line by line."""

from __future__ import annotations

import ast
import codeop

import pytest

from pages import ROOT, Page

PASTED = [
    page
    for page in map(Page, sorted((ROOT / "docs").glob("*.md")))
    if "python -m asyncio" in page.text and "Paste" in page.text
]


def statements(block: str) -> int:
    """Feed a block as ``python -m asyncio`` reads it, Enter last; return what was executed."""
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    executed = 0
    waiting: list[str] = []
    for line in [*block.splitlines(), ""]:
        waiting.append(line)
        if compiler("\n".join(waiting), symbol="single") is not None:
            executed += any(waiting)
            waiting = []
    assert not waiting, "the block is not complete"
    return executed


def test_there_is_a_page_to_paste() -> None:
    assert [page.path.name for page in PASTED] == ["tutorial.md"]


@pytest.mark.parametrize("page", PASTED, ids=lambda page: page.path.name)
def test_every_statement_of_a_pasted_block_is_executed(page: Page) -> None:
    for block in page.blocks("python"):
        assert statements(block.code) == len(ast.parse(block.code).body), block.line


def test_a_loop_without_an_empty_line_behind_it_would_be_found() -> None:
    loop = "for one in range(2):\n    print(one)\n"
    assert statements(f"{loop}\nprint(2)") == 2
    with pytest.raises(SyntaxError):
        statements(f"{loop}print(2)")
