"""Asking an embedder, and a deterministic one for tests: words hashed into a vector."""

from __future__ import annotations

import hashlib
import inspect
import math
from array import array
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from memory import validation
from memory.errors import InvalidInputError
from memory.ports import Embedder
from memory.tokens import terms
from memory.turns import Turns
from memory.vectors import MAX_DIMENSIONS, norm, vector

__all__ = ["HashingEmbedder", "ask", "model_of"]


async def ask(embedder: Embedder, texts: Sequence[str]) -> tuple[list[array[float]], str | None]:
    """Return a checked vector for each of one or more texts, and the embedder's model, if named.

    Raises ``InvalidInputError`` for a wrong answer. What the embedder raises is the host's own and
    passes through.
    """
    asked: Any = embedder.embed(texts)
    if not inspect.isawaitable(asked):
        raise InvalidInputError("embedder", "must have an async method embed")
    dimensions = getattr(embedder, "dimensions", None)
    answers = await _answers(await asked, len(texts), dimensions)
    return answers, model_of(embedder)


def model_of(embedder: Embedder) -> str | None:
    """Return the name of the embedder's model, checked; None where it has none."""
    model = getattr(embedder, "model", None)
    if model is None:
        return None
    # Many a host keeps the loaded model itself under this name.
    return validation.key(model, "embedder.model", validation.MAX_NAME)


async def _answers(answered: Any, count: int, dimensions: object) -> list[array[float]]:
    wrong = InvalidInputError("embedder", "must return one vector per text")
    # Of a set or a mapping nobody knows whose vector is the first.
    if not isinstance(answered, Collection) or isinstance(answered, Set | Mapping):
        raise wrong
    if len(answered) != count:
        raise wrong
    turns = Turns()
    found: list[array[float]] = []
    for answer in answered:
        await turns.give()
        if len(found) == count:  # its length was not the truth, and it may have no end
            raise wrong
        found.append(vector(answer, "embedder"))
    if len(found) != count:
        raise wrong
    if len({len(answer) for answer in found}) > 1:
        raise InvalidInputError("embedder", "must return vectors of one length")
    if isinstance(dimensions, int) and len(found[0]) != dimensions:
        raise InvalidInputError("embedder", "must return vectors of as many values as it says")
    return found


class HashingEmbedder:
    """Feature hashing (Weinberger et al., 2009): texts that share words get near vectors.

    It needs no model, no key and no network, and knows nothing of meaning: for that, give
    ``Memory`` an embedder of your own. Vectors have length 1 and are the same in every process.

    >>> from memory import HashingEmbedder, Memory
    >>> embedder = HashingEmbedder(256)
    >>> [vector] = await embedder.embed(["green tea"])
    >>> len(vector), embedder.model
    (256, 'hashing-256')
    >>> (await Memory(embedder=embedder).recall("shop", text="green tea")).strategy
    'vector'
    """

    def __init__(self, dimensions: int = 384) -> None:
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise InvalidInputError("dimensions", f"must be from 1 to {MAX_DIMENSIONS:,}")
        self.dimensions = dimensions
        self.model = f"hashing-{dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text; see :class:`memory.Embedder`."""
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
