"""A deterministic embedder for tests and examples: words hashed into a vector."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from memory.errors import InvalidInputError
from memory.tokens import terms
from memory.turns import Turns
from memory.vectors import MAX_DIMENSIONS, norm

__all__ = ["HashingEmbedder"]


class HashingEmbedder:
    """Feature hashing (Weinberger et al., 2009): texts that share words get near vectors.

    It needs no model, no key and no network, and knows nothing of meaning: for that, give
    ``Memory`` an embedder of your own. Vectors have length 1 and are the same in every process.
    """

    def __init__(self, dimensions: int = 384) -> None:
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise InvalidInputError("dimensions", f"must be from 1 to {MAX_DIMENSIONS:,}")
        self.dimensions = dimensions
        self.model = f"hashing-{dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text; see :class:`memory.ports.Embedder`."""
        found = []
        turns = Turns()
        for text in texts:
            await turns.give()
            found.append(self._vector(text))
        return found

    def _vector(self, text: str) -> list[float]:
        # A text without a word, or whose words cancel out, still needs a vector that is not zero.
        values = self._hashed(terms(text))
        if not any(values):
            values = self._hashed({"": 1})
        length = norm(values)
        return [value / length for value in values]

    def _hashed(self, counted: dict[str, int]) -> list[float]:
        values = [0.0] * self.dimensions
        for term, count in counted.items():
            digest = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest())
            sign = 1.0 if digest & 1 else -1.0
            values[(digest >> 1) % self.dimensions] += sign * math.sqrt(count)
        return values
