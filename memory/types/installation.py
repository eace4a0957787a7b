"""What is known of a store and of an installation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Capabilities", "Check", "Readiness", "VectorIndex"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What this store can do, measured on its connection and never guessed.

    ``vector_search`` is ``pgvector`` where the extension ranks inside the database, else
    ``in-process``. ``server_version`` is the server's own (``18.4``), None without a server.
    ``hnsw_dimensions`` are the lengths of vectors that an HNSW index serves.
    """

    store: Literal["in-memory", "postgres"]
    vector_search: Literal["pgvector", "in-process"]
    pgvector_version: str | None = None
    server_version: str | None = None
    hnsw_dimensions: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorIndex:
    """An HNSW index over the vectors of one length; see :mod:`memory.maintenance.indexes`.

    With ``halfvec`` it holds them in half precision. One that is not ``valid`` was left by an
    interrupted build and serves no search. ``bytes`` is its size.
    """

    name: str
    dimensions: int
    halfvec: bool
    m: int
    ef_construction: int
    valid: bool
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Whether this process may serve; ``problems`` says in words why not."""

    ready: bool
    problems: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One property of an installation: ``ok`` is true, false, or None where it cannot be read.

    ``detail`` names the database objects and roles that break it, never a key or a text.
    """

    property: str
    ok: bool | None
    detail: str
