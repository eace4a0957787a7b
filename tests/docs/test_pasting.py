"""What the pages show is what ``python -m asyncio`` takes, pasted into it line by line."""

from __future__ import annotations

import ast
import code
from types import CodeType

import pytest

from pages import ROOT, Block, Page

PAGES = [Page(path) for path in sorted((ROOT / "docs").glob("*.md"))]
FILES = {"conftest.py", "operate.py", "test_forgetting.py", "vouch.py"}


class Console(code.InteractiveConsole):
    """The console of ``python -m asyncio``, which notes what it would run and what it refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self.ran: list[ast.stmt] = []
        self.refused: list[str] = []

    def runcode(self, code: CodeType) -> None:
        self.ran += ast.parse("\n".join(self.buffer)).body

    def showsyntaxerror(self, filename: str | None = None, **given: object) -> None:
        self.refused.append(self.buffer[-1])


def pasted(block: str) -> Console:
    """Feed a block as it is pasted, Enter last."""
    console = Console()
    waits = [console.push(line) for line in [*block.splitlines(), ""]]
    assert not waits[-1], "the block is not complete"
    return console


def dumped(statements: list[ast.stmt]) -> list[str]:
    return [ast.dump(statement) for statement in statements]


def typed(page: Page) -> list[Block]:
    return [block for block in page.blocks("python") if block.file is None]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.name)
def test_every_block_is_taken_as_it_is_written(page: Page) -> None:
    for block in typed(page):
        console = pasted(block.code)
        assert console.refused == [], f"line {block.line}: a blank line too many, or too few"
        assert dumped(console.ran) == dumped(ast.parse(block.code).body), f"line {block.line}"


def test_what_is_saved_as_a_file_is_this() -> None:
    named = {block.file for page in PAGES for block in page.blocks("python")}
    assert named == {None, *FILES}


def test_the_first_page_says_how_to_paste() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "python -m asyncio" in index
    assert "Only a block that begins with the name of a file" in index


@pytest.mark.parametrize(
    "split",
    [
        "for one in range(2):\n    print(one)\nprint(2)\n",
        "async with lock:\n    print(1)\n\n    print(2)\n",
        "class A:\n    a = 1\n\n    b = 2\n",
        "if a:\n    print(1)\n\nelse:\n    print(2)\n",
    ],
    ids=["no blank line behind it", "one inside", "one in a class", "one before else"],
)
def test_a_block_that_is_split_would_be_found(split: str) -> None:
    console = pasted(split)
    ran = dumped(console.ran)
    assert console.refused
    assert ran != dumped(ast.parse(split).body)


def test_a_loop_with_a_blank_line_behind_it_is_two_statements() -> None:
    console = pasted("for one in range(2):\n    print(one)\n\n# behind it\nprint(2)\n")
    assert (len(console.ran), console.refused) == (2, [])
