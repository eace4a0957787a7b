"""Writing records: one call of ``memory.write_records`` for one record or a thousand."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.ports import Draft, Subject
from memory.ranking import FREQUENCY_MOST
from memory.types import Record
from memory.versions import Placed, recorded

__all__ = ["postpone", "register", "relate", "supersede", "write"]

_WRITE: Final = """
select w.written_at, w.subject_keys
from memory.write_records(
    $1::text, $2::uuid[], $3::text, $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::integer[], $10::boolean[], $11::text[], $12::integer[], $13::integer[], $14::real[],
    $15::timestamptz[], $16::timestamptz[], $17::integer[], $18::integer[], $19::text[],
    $20::text[], $21::uuid[], $22::text[], $23::text[]
) as w
"""


async def write(
    connection: AsyncConnection,
    tenant_key: str,
    items: Sequence[Placed],
    sources: Sequence[UUID] = (),
) -> list[Record]:
    """Store new records of one origin; derived ones with the sources of all of them."""
    drafts = [item.draft for item in items]
    numbers = range(1, len(drafts) + 1)
    starts, stops, vectors = _vectors(drafts)
    links = [(n, s) for n, draft in zip(numbers, drafts, strict=True) for s in draft.subjects]
    rows = await fetch(
        connection,
        _WRITE,
        tenant_key,
        [draft.record_id for draft in drafts],
        drafts[0].origin,
        [draft.kind for draft in drafts],
        [draft.text for draft in drafts],
        [json.dumps(draft.metadata, ensure_ascii=False) for draft in drafts],
        [json.dumps(draft.redacted) if draft.redacted else None for draft in drafts],
        [draft.record_key for draft in drafts],
        [item.version for item in items],
        [item.superseded for item in items],
        [draft.embedding_model if draft.embedding else None for draft in drafts],
        starts,
        stops,
        vectors,
        [draft.occurred_at for draft in drafts],
        [draft.expires_at for draft in drafts],
        [draft.length for draft in drafts],
        [number for number, _ in links],
        [subject.key for _, subject in links],
        [subject.hash for _, subject in links],
        list(sources) or None,
        [" ".join(draft.terms) for draft in drafts],
        [_frequencies(draft) for draft in drafts],
    )
    written_at, inherited = rows[0]
    return [
        recorded(tenant_key, item, written_at, subject_keys=inherited or (), sources=sources)
        for item in items
    ]


def _vectors(
    drafts: Sequence[Draft],
) -> tuple[list[int | None], list[int | None], array[float]]:
    starts: list[int | None] = []
    stops: list[int | None] = []
    vectors = array("f")
    for draft in drafts:
        if draft.embedding is None:
            starts.append(None)
            stops.append(None)
            continue
        starts.append(len(vectors) + 1)
        vectors.extend(draft.embedding)
        stops.append(len(vectors))
    return starts, stops, vectors


def _frequencies(draft: Draft) -> str | None:
    if draft.length == len(draft.terms):
        return None
    return " ".join(str(min(count, FREQUENCY_MOST)) for count in draft.terms.values())


_SUPERSEDE: Final = """
update memory.records as r
set superseded_at = clock_timestamp(), record_key = coalesce(r.record_key, r.record_id::text)
where r.tenant_key = $1 and r.record_id = any ($2::uuid[]) and r.superseded_at is null
returning r.record_id
"""


async def supersede(
    connection: AsyncConnection, tenant_key: str, record_ids: Sequence[UUID]
) -> bool:
    """Mark these current versions as superseded; false when one of them no longer was current."""
    rows = await fetch(connection, _SUPERSEDE, tenant_key, list(record_ids))
    return len(rows) == len(record_ids)


_POSTPONE: Final = """
update memory.records as r set expires_at = $3
where r.tenant_key = $1 and r.record_id = any ($2::uuid[])
    and r.expires_at > $4 and r.expires_at < $3
returning r.record_id
"""


async def postpone(
    connection: AsyncConnection,
    tenant_key: str,
    record_ids: Sequence[UUID],
    expires_at: datetime,
    now: datetime,
) -> int:
    """Have records expire later that would expire before, but after ``now``; count them."""
    values = (tenant_key, list(record_ids), expires_at, now)
    return len(await fetch(connection, _POSTPONE, *values))


_RELATE: Final = """
insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
select $1, r.record_id, u.key, u.hash
from memory.records as r, unnest($3::text[], $4::text[]) as u (key, hash)
where r.tenant_key = $1 and r.record_id = $2
on conflict do nothing
"""


async def relate(
    connection: AsyncConnection, tenant_key: str, record_id: UUID, subjects: Sequence[Subject]
) -> None:
    """Link people to a record; the database passes the links on to what was derived from it."""
    keys, hashes = [item.key for item in subjects], [item.hash for item in subjects]
    await fetch(connection, _RELATE, tenant_key, record_id, keys, hashes)


_REGISTER: Final = """
insert into memory.artefacts (tenant_key, adapter, artefact_id, record_id)
select $1, u.adapter, u.artefact_id, s.id
from unnest($2::text[], $3::text[]) as u (adapter, artefact_id)
cross join unnest($4::uuid[]) as s (id)
on conflict do nothing
"""


async def register(
    connection: AsyncConnection,
    tenant_key: str,
    artefacts: Sequence[tuple[str, str]],
    sources: Sequence[UUID],
) -> None:
    """Record that each artefact was made from all of these records."""
    values: list[Any] = [[name for name, _ in artefacts], [item for _, item in artefacts]]
    await fetch(connection, _REGISTER, tenant_key, *values, list(sources))
