"""People whose erasure is on record and whose records stand nevertheless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Access, AnyRow, fetch
from memory.maintenance.checks.faults import Collector
from memory.maintenance.due import Due, Stream, people
from memory.maintenance.remaining import OLDER
from memory.repositories import tenancy

__all__ = ["check_erased"]

# What a hold kept back is known, since a held record is about everybody whose records lead to it.
_OLDER: Final = f"""
select count(*) as n, count(*) filter (where r.alone) as alone,
    (array_agg(r.record_id::text))[:5] as examples
{OLDER}
and ($4::boolean or (
    not l.inherited and not exists (
        select from memory.record_subjects as k
        cross join lateral (
            select from memory.records as h
            where h.tenant_key = $1 and h.record_id = k.record_id and h.held offset 0
        ) as h
        where k.tenant_key = $1 and k.subject_key = $2
    )
))
"""


async def check_erased(
    access: Access, tenant_key: str, own: Mapping[str, Due], stream: Stream, found: Collector
) -> None:
    """Look for records older than their person's erasure.

    ``own`` are the erasures of the database's chain. Those that only the stream knows are newer
    than the backup that was restored, so every older record is one that came back.
    """
    found.add("chain_lost", tenant_key, stream.lost[tenant_key])
    missing = stream.due.get(tenant_key, {})
    async for subject_key, subject_hash, due in people(access, tenant_key, {**own, **missing}):
        lost = subject_hash in missing
        row = await access.several(_older(tenant_key, subject_key, due, lost))
        back = row.n if lost else row.alone
        examples = row.examples or ()
        found.add("resurrected", tenant_key, back, *examples)
        if not back:
            found.add("older_than_erasure", tenant_key, row.n, *examples)
    narrow = stream.narrowly.get(tenant_key, {})
    async for subject_key, subject_hash, due in people(access, tenant_key, narrow):
        if subject_hash not in missing:
            row = await access.several(_older(tenant_key, subject_key, due, True))
            found.add("narrow_not_repeated", tenant_key, row.n, *(row.examples or ()))


def _older(tenant_key: str, subject_key: str, due: Due, lost: bool) -> Any:
    async def work(connection: AsyncConnection) -> AnyRow:
        await tenancy.enter(connection, tenant_key)
        rows = await fetch(connection, _OLDER, tenant_key, subject_key, due.erased_at, lost)
        return rows[0]

    return work
