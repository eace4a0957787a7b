"""mem0 on pgvector with ``infer=False``, so that no model is asked; its history is in SQLite.

Its telemetry is off, and its directory a temporary one. It needs an OpenAI client to be made, which
is never called: the embedder is replaced, and the socket guard of the command would refuse.
Without spaCy, as here, it keeps the words as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from servers import Database
from telling import DIMENSIONS, TENANT, Told, Vectors

__all__ = ["Mem0", "open_mem0"]


class Embedder:
    """What mem0 asks of an embedding model."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        del memory_action
        return self._vectors.of(text)


class Mem0:
    """The synchronous class, called in this thread: its asynchronous one adds threads to it.

    Only what the erasure benchmark runs beside each other gets a thread of its own.
    """

    name = "mem0"
    version = ""
    cascades = False

    def __init__(self, memory: Any, history: Path) -> None:
        self._memory = memory
        self.files: Sequence[Path] = (history,)
        self.version = metadata.version("mem0ai")

    async def remember(self, told: Told) -> None:
        self._add([told.text], user_id=told.person)

    async def ingest(self, many: Sequence[Told]) -> None:
        """Add one list of messages for each person: a call is about one."""
        people: dict[str, list[str]] = {}
        for told in many:
            people.setdefault(told.person, []).append(told.text)
        for person, texts in people.items():
            self._add(texts, user_id=person)

    def _add(self, texts: Sequence[str], user_id: str | None) -> None:
        messages = [{"role": "user", "content": text} for text in texts]
        self._memory.add(messages, user_id=user_id, agent_id=TENANT, infer=False)

    async def recall(self, query: str, person: str | None, limit: int = 8) -> list[str]:
        filters = {"agent_id": TENANT} | ({"user_id": person} if person else {})
        found = self._memory.search(query, top_k=limit, filters=filters, threshold=0.0)
        return [item["memory"] for item in found["results"]]

    async def summarise(self, text: str, of: Sequence[Told], person: str | None) -> None:
        del of
        await asyncio.to_thread(self._add, [text], person)

    async def erase(self, person: str) -> None:
        await asyncio.to_thread(self._memory.delete_all, user_id=person)

    async def evidence(self, tokens: Sequence[str]) -> tuple[int, int]:
        with contextlib.closing(sqlite3.connect(self.files[0])) as connection:
            query = "select old_memory from history where event = 'DELETE'"
            texts = [row[0] or "" for row in connection.execute(query)]
        return len(texts), sum(any(token in text for token in tokens) for text in texts)


@contextlib.asynccontextmanager
async def open_mem0(database: Database, vectors: Vectors, *, hnsw: bool) -> AsyncIterator[Mem0]:
    with tempfile.TemporaryDirectory(prefix="mem0-") as folder:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = folder
        # It says at every start that it found no spaCy.
        logging.getLogger("mem0").setLevel(logging.CRITICAL)
        from mem0 import Memory  # noqa: PLC0415 - it reads its environment when it is imported

        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        history = Path(folder) / "history.db"
        store = {
            "connection_string": database.owner_url,
            "embedding_model_dims": DIMENSIONS,
            "collection_name": "memories",
            "hnsw": hnsw,
        }
        memory = Memory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": store},
                "llm": unused,
                "embedder": unused,
                "history_db_path": str(history),
            }
        )
        memory.embedding_model = Embedder(vectors)
        try:
            yield Mem0(memory, history)
        finally:
            memory.close()
            memory.vector_store.connection_pool.close()
