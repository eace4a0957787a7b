"""Both scores of every candidate of a hybrid search, and which turns are neighbours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.ports import Query
from memory.repositories.conditions import Shape
from memory.repositories.scoring import KEYWORD
from memory.repositories.tenancy import SETTING
from memory.repositories.weighing import has_many, held
from memory.repositories.words import found_by_words, parameters

__all__ = ["adjacent", "scores"]


@lru_cache
def _scores(shape: Shape, extension: str | None, many: bool) -> str:
    if extension is None:
        tables, best = found_by_words(shape, KEYWORD, first=7, many=many)
        compared = "r.embedding, r.embedding_model"
    else:
        tables, best = found_by_words(shape, KEYWORD, first=9, many=many)
        compared = f"""case
        when r.embedding_dims = cardinality($7::real[])
            and coalesce(r.embedding_model = $8::text, true)
        then 1 - (
            r.embedding::{extension}.vector operator({extension}.<=>)
            (select $7::real[]::{extension}.vector)
        )
    end as cosine"""
    return f"""
{SETTING}
select c.record_id, c.score, c.way, {compared}
from s
cross join lateral (
    with {tables}, best as materialized ({best})
    select b.record_id, b.score, b.way from best as b
    union all
    select u.id, {KEYWORD.final}, null
    from memory.each($6::uuid[]) as u (id)
    cross join lateral {held(KEYWORD, "u.id", many=many)} as x
    where not exists (select from best as b where b.record_id = u.id)
    limit $3 + cardinality($6::uuid[])
) as c
cross join lateral (
    select r.* from memory.records as r
    where r.tenant_key = s.t and r.record_id = c.record_id offset 0
) as r
"""


async def scores(
    connection: AsyncConnection,
    tenant_key: str,
    query: Query,
    near: Sequence[UUID],
    extension: str | None,
) -> list[AnyRow]:
    """Return the best by words and the records ``near``, each once and with its keyword score.

    ``way`` says how the search by words went and is null for the others. With pgvector each row has
    its ``cosine``, null where there is no comparable vector; without it the vector and its model.
    """
    vector = [] if extension is None else [query.embedding, query.embedding_model]
    return await fetch(
        connection,
        _scores(Shape.of(query.filters), extension, has_many(query)),
        *parameters(tenant_key, query, list(near), *vector),
    )


_ADJACENT: Final = f"""
{SETTING}
select n.record_id, n.other
from s
cross join lateral (
    with chosen as materialized (
        select u.id from memory.each($2::uuid[]) as u (id)
    ), people as materialized (
        select l.subject_key
        from chosen as c
        cross join lateral (
            select l.subject_key from memory.record_subjects as l
            where l.tenant_key = s.t and l.record_id = c.id and not l.inherited offset 0
        ) as l
        group by l.subject_key
    ), turns as materialized (
        select l.record_id, lag(l.record_id) over w as before, lead(l.record_id) over w as after
        from people as p
        cross join lateral (
            select l.record_id from memory.record_subjects as l
            where l.tenant_key = s.t and l.subject_key = p.subject_key and not l.inherited offset 0
        ) as l
        window w as (partition by p.subject_key order by l.record_id)
    )
    select t.record_id, o.other
    from turns as t
    cross join lateral (values (t.before), (t.after)) as o (other)
    where t.record_id in (select c.id from chosen as c)
        and o.other in (select c.id from chosen as c)
    limit $3
) as n
"""

# Each candidate has two neighbours per person.
_PAIRS: Final = 10_000_000


async def adjacent(
    connection: AsyncConnection, tenant_key: str, record_ids: Collection[UUID]
) -> list[tuple[UUID, UUID]]:
    """Return each record beside the turn before or after it about one of its people, if among them.

    A turn is a record with a direct link to the person, hidden ones included. Reads the links of
    everybody whom the records are directly about.
    """
    rows = await fetch(connection, _ADJACENT, tenant_key, list(record_ids), _PAIRS)
    return [(row.record_id, row.other) for row in rows]
