"""What is left, or back, of what an erasure was to take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import certifiable, validation
from memory.certifiable import Remaining
from memory.database import fetch
from memory.errors import InvalidInputError
from memory.maintenance.walking import Source, opened
from memory.repositories import tenancy
from memory.types import Tombstone

__all__ = ["OLDER", "remaining_of"]

# A link keeps no time of its own: after the erasure of a person, only a record that is directly
# about nobody else cannot have been related to them since.
OLDER: Final = """
from memory.record_subjects as l
cross join lateral (
    select r.record_id, r.expires_at, r.origin = 'remembered' and not exists (
        select from memory.record_subjects as k
        where k.tenant_key = $1 and k.record_id = r.record_id
            and k.subject_key <> l.subject_key and not k.inherited
    ) as alone
    from memory.records as r
    where r.tenant_key = $1 and r.record_id = l.record_id and r.created_at < $3 offset 0
) as r
where l.tenant_key = $1 and l.subject_key = $2
"""
"""Links ``l`` of the person ``$2`` to records ``r`` from before ``$3``."""

# A sweep records no request for what a hold has it pass by, and no release completes it; nor does
# its tombstone say by which age it went.
_REMAINING: Final = f"""
with older as materialized (
    select l.inherited, r.alone, r.expires_at <= $3 as expired
    {OLDER}
),
kept (holds) as materialized (
    select exists (
        select from memory.record_subjects as l
        join memory.record_subjects as k on k.tenant_key = $1 and k.record_id = l.record_id
        where l.tenant_key = $1 and l.subject_key = $2 and 'hold' = (
            select d.action from memory.decisions as d
            where d.tenant_key = $1 and d.subject_hash = k.subject_hash
                and d.action in ('hold', 'release') and d.at <= $5
            order by d.seq desc limit 1
        )
    )
),
judged as (
    select
        case $4::text
            when 'tenant' then true
            when 'retention' then coalesce(o.expired, false)
            when 'subject' then o.alone and not o.inherited
            else false
        end as due,
        case $4::text
            when 'retention' then k.holds
            when 'subject' then not o.inherited
            else false
        end as perhaps
    from older as o cross join kept as k
)
select
    count(*) filter (where j.due) as due,
    count(*) filter (where j.perhaps and not j.due) as unclear
from judged as j
"""
# By the hash alone no index leads to a person, but one holds all that is read.
_MISNAMED: Final = """
select exists (
    select from memory.record_subjects as l
    where l.tenant_key = $1 and l.subject_hash = $3 and l.subject_key <> $2
) or exists (
    select from memory.record_subjects as l
    where l.tenant_key = $1 and l.subject_key = $2 and l.subject_hash <> $3
) as misnamed
"""


async def remaining_of(
    engine_or_url: Source, *, subject_key: str, evidence: Tombstone | Sequence[Tombstone]
) -> Remaining:
    """Return how many records about a person this erasure was to take and are there all the same.

    What a legal hold had a sweep pass by (:meth:`memory.Memory.forget_tenant`, and what had expired
    for :meth:`memory.Memory.expire`), and what has come back with restored rows. ``evidence`` are
    the tombstones that the erasure left of the person. Erasures of kinds and of single records do
    not say what they took: of these none is counted. As the application's role, or the owner.
    Raises ``InvalidInputError``, also where the records under the tombstones' hash are under
    another key.

    >>> import memory
    >>> from memory import maintenance
    >>> async with memory.Memory(memory.PostgresStore(url), subject_pepper=pepper) as service:
    ...     receipt = await service.forget("shop", subject_key="nobody")
    ...     [stone, *_] = await service.erasure_history("shop", subject_key="nobody")
    >>> await maintenance.remaining_of(url, subject_key="nobody", evidence=stone)
    Remaining(due=0, unclear=0)
    """
    person = validation.key(subject_key, "subject_key")
    stones = certifiable.of_one_erasure(evidence)
    first, last = stones[0], stones[-1]

    async def read(connection: AsyncConnection) -> Remaining:
        await tenancy.enter(connection, first.tenant_key)
        named = (first.tenant_key, person)
        if (await fetch(connection, _MISNAMED, *named, first.subject_hash))[0].misnamed:
            raise InvalidInputError("subject_key", "must be of the person of the tombstones")
        values = (*named, first.erased_at, first.scope, last.erased_at)
        [row] = await fetch(connection, _REMAINING, *values)
        return Remaining(due=row.due, unclear=row.unclear)

    async with opened(engine_or_url) as access:
        return await access.several(read)
