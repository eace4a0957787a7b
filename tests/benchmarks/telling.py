"""What the comparison tells each library, and what it asks of it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

__all__ = ["DIMENSIONS", "TENANT", "Contender", "RefusedError", "Told", "Vectors"]

DIMENSIONS: Final = 384
TENANT: Final = "acme"


@dataclass(frozen=True, kw_only=True)
class Told:
    """One memory of one person; no two texts are alike."""

    person: str
    text: str


class Vectors:
    """A model without a model: every text has the vector that it was given."""

    def __init__(self) -> None:
        self._by_text: dict[str, array[float]] = {}

    def give(self, text: str, vector: Sequence[float]) -> str:
        self._by_text[text] = array("f", vector)
        return text

    def of(self, text: str) -> list[float]:
        return self._by_text[text].tolist()


class Contender(Protocol):
    """One library on one database. ``cascades``: what is derived goes with its sources."""

    name: str
    version: str
    cascades: bool
    files: Sequence[Path]
    """Files beside the server in which it keeps content."""

    async def remember(self, told: Told) -> None: ...

    async def ingest(self, many: Sequence[Told]) -> None:
        """Write all of them in the library's best batch form."""

    async def recall(self, query: str, person: str | None, limit: int = 8) -> list[str]:
        """Return the texts nearest to the query: one person's, or the whole tenant's."""

    async def summarise(self, text: str, of: Sequence[Told], person: str | None) -> None:
        """Write what an agent made of these: filed under a person, or under the tenant alone.

        Raises ``RefusedError`` where the library refuses it.
        """

    async def erase(self, person: str) -> None:
        """Delete everything of a person by the best way that the library documents."""

    async def evidence(self, tokens: Sequence[str]) -> tuple[int, int]:
        """Return how many entries say that something was deleted, and how many hold a token."""


class RefusedError(Exception):
    """A write that the library would not take."""
