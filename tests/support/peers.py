"""The tables of those whom a host moves from: LangGraph's by itself, mem0's as it makes them."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import psycopg
from langchain_core.embeddings import Embeddings
from langgraph.store.postgres import PostgresStore

from servers import Database


class Letters(Embeddings):
    """A vector of how often each of eight letters occurs; ``asked`` counts the texts."""

    asked = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += len(texts)
        return [[text.count(letter) + 0.1 for letter in "abcdefgh"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def mem0_payload(text: str, **more: object) -> dict[str, Any]:
    """As ``Memory.add`` of mem0 2.2.1 writes it."""
    at = "2026-03-01T10:00:00.123456+00:00"
    own = {"data": text, "hash": "0" * 32, "text_lemmatized": text}
    return {**own, "created_at": at, "updated_at": at, "agent_id": "helper", **more}


def make_mem0(database: Database, rows: list[dict[str, Any]], table: str = "mem0") -> None:
    """Make and fill the table of a collection, as ``PGVector`` of mem0 2.2.1 does."""
    with psycopg.connect(database.superuser_url) as owner:
        owner.execute(
            f'create table "{table}" (id uuid primary key, vector vector(8), payload jsonb)'
        )
        for place, payload in enumerate(rows, 1):
            vector = str(Letters().embed_query(str(payload["data"])))
            values = (UUID(int=place), vector, json.dumps(payload))
            owner.execute(f'insert into "{table}" values (%s, %s, %s)', values)


def make_langgraph(database: Database) -> None:
    """Have LangGraph's own store make its tables and put two items."""
    index: Any = {"dims": 8, "embed": Letters()}
    with PostgresStore.from_conn_string(database.superuser_url, index=index) as store:
        store.setup()
        for person in ("dana", "eve"):
            store.put(("users", person), "prefs", {"lang": "en"})
