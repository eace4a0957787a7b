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

# Not pg_get_indexdef: it looks past the snapshot, and fails on an index that is being dropped.
COLUMNS: Final = """
    x.relname::text as index_name, i.indisvalid as index_valid, o.opcname::text as index_class,
    pg_catalog.pg_get_expr(i.indexprs, i.indrelid) as index_expression,
    pg_catalog.pg_get_expr(i.indpred, i.indrelid) as index_predicate,
    x.reloptions::text[] as index_options,
    coalesce(pg_catalog.pg_relation_size(i.indexrelid), 0) as index_bytes
"""
FROM: Final = """
    pg_catalog.pg_index as i
    join pg_catalog.pg_class as x on x.oid = i.indexrelid
    join pg_catalog.pg_am as a on a.oid = x.relam and a.amname = 'hnsw'
        and i.indrelid = pg_catalog.to_regclass('memory.records')
    join pg_catalog.pg_opclass as o on o.oid = i.indclass[0]
"""
"""Rows of these columns are what :func:`indexes` reads."""

_S: Final = r"(?:.+\.)?"  # the schema of pgvector, where it is not on the search path
_EXPRESSIONS: Final = {
    "vector": re.compile(rf"\(embedding\)::{_S}vector\((\d+)\)"),
    "halfvec": re.compile(
        rf"\({_S}l2_normalize\(\(embedding\)::{_S}vector\((\d+)\)\)\)::{_S}halfvec\(\1\)"
    ),
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
    for kind, expression in _EXPRESSIONS.items():
        matched = expression.fullmatch(row.index_expression or "")
        if matched is not None and row.index_class == f"{kind}_cosine_ops":
            break
    else:
        return None
    dimensions = int(matched[1])
    if row.index_predicate != f"(embedding_dims = {dimensions})":
        return None
    given = (option.split("=") for option in row.index_options or ())
    options = _DEFAULTS | {name: int(value) for name, value in given}
    return VectorIndex(
        name=row.index_name,
        dimensions=dimensions,
        halfvec=kind == "halfvec",
        m=options["m"],
        ef_construction=options["ef_construction"],
        valid=row.index_valid,
        bytes=row.index_bytes,
    )


async def listed(connection: AsyncConnection) -> tuple[VectorIndex, ...]:
    """Return every HNSW index over the vectors, also those an interrupted build has left."""
    return indexes(await fetch(connection, f"select {COLUMNS} from {FROM}"))
