"""The pages of the documentation and the fenced blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
