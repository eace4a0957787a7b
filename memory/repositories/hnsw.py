"""The HNSW indexes that operators make: one per vector length, over an expression.

An index is recognised by its definition, whatever its name, so that one made by hand serves too.
"""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.types import VectorIndex

__all__ = ["COLUMNS", "FROM", "indexed", "indexes", "listed"]

COLUMNS: Final = """
    x.relname::text as index_name, i.indisvalid as index_valid,
    pg_catalog.pg_get_indexdef(i.indexrelid) as index_definition,
    pg_catalog.pg_relation_size(i.indexrelid) as index_bytes
"""
FROM: Final = """
    pg_catalog.pg_index as i
    join pg_catalog.pg_class as x on x.oid = i.indexrelid
    join pg_catalog.pg_am as a on a.oid = x.relam and a.amname = 'hnsw'
        and i.indrelid = pg_catalog.to_regclass('memory.records')
"""
"""Rows of these columns are what :func:`indexes` reads."""

_S: Final = r"(?:.+\.)?"  # the schema of pgvector, where it is not on the search path
_EXPRESSIONS: Final = {
    "vector": rf"\(embedding\)::{_S}vector\((\d+)\)",
    "halfvec": rf"\({_S}l2_normalize\(\(embedding\)::{_S}vector\((\d+)\)\)\)::{_S}halfvec\(\1\)",
}
_DEFINITIONS: Final = {
    kind: re.compile(
        rf"USING hnsw \(\({expression}\) {_S}{kind}_cosine_ops\)(?: WITH \((?P<options>.*)\))?"
        r" WHERE \(embedding_dims = \1\)"
    )
    for kind, expression in _EXPRESSIONS.items()
}
# What pgvector takes where the definition does not say.
_DEFAULTS: Final = {"m": 16, "ef_construction": 64}


def indexed(value: str, extension: str, dimensions: int, *, halfvec: bool) -> str:
    """Return what an index holds of a vector, as SQL: in half precision, its direction only.

    Half precision ends at 65,504, and what is below 6e-8 is zero there; a vector may be longer or
    shorter. Its length does not matter to a cosine.
    """
    full = f"{value}::{extension}.vector({dimensions})"
    if not halfvec:
        return full
    return f"{extension}.l2_normalize({full})::{extension}.halfvec({dimensions})"


def indexes(rows: list[AnyRow]) -> tuple[VectorIndex, ...]:
    """Return the indexes over the vectors among the rows, by length."""
    found = [_index(row) for row in rows if row.index_name is not None]
    return tuple(
        sorted(
            (index for index in found if index is not None),
            key=lambda index: (index.dimensions, index.halfvec, index.name),
        )
    )


def _index(row: AnyRow) -> VectorIndex | None:
    found = {kind: form.search(row.index_definition) for kind, form in _DEFINITIONS.items()}
    kind, matched = next(((k, m) for k, m in found.items() if m is not None), ("", None))
    if matched is None:
        return None
    given = re.findall(r"(m|ef_construction)='(\d+)'", matched["options"] or "")
    options = _DEFAULTS | {name: int(value) for name, value in given}
    return VectorIndex(
        name=row.index_name,
        dimensions=int(matched[1]),
        halfvec=kind == "halfvec",
        m=options["m"],
        ef_construction=options["ef_construction"],
        valid=row.index_valid,
        bytes=row.index_bytes,
    )


async def listed(connection: AsyncConnection) -> tuple[VectorIndex, ...]:
    """Return every HNSW index over the vectors, also those an interrupted build has left."""
    return indexes(await fetch(connection, f"select {COLUMNS} from {FROM}"))
