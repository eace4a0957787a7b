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

    >>> from memory import Memory
    >>> await Memory().capabilities()
    Capabilities(store='in-memory', vector_search='in-process', ...)
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

    >>> from memory import maintenance
    >>> index = await maintenance.indexes.build_index(owner_url, dimensions=8)
    >>> index.name, index.dimensions, index.m, index.valid
    ('records_hnsw_8', 8, 16, True)
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
    """Whether this process may serve; ``problems`` says in words why not.

    >>> from memory import Memory
    >>> ready = await Memory().ready()
    >>> ready.ready, ready.problems
    (True, ())
    """

    ready: bool
    problems: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One property of an installation: ``ok`` is true, false, or None where it cannot be read.

    ``detail`` names the database objects and roles that break it, never a key or a text.

    >>> import memory
    >>> checks = await memory.verify_install(owner_url)
    >>> next(check for check in checks if check.property == "functions_as_packaged")
    Check(property='functions_as_packaged', ok=True, detail='')
    """

    property: str
    ok: bool | None
    detail: str
