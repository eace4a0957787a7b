"""What is left, or back, of what an erasure was to take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import certifiable, validation
from memory.database import fetch
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

# A sweep records no request for what a hold has it pass by, and no release completes it.
_REMAINING: Final = f"""
select count(*) as n
{OLDER}
and case $4::text
    when 'tenant' then true
    when 'retention' then r.expires_at <= $3
    when 'subject' then r.alone and not l.inherited
    else false
end
"""


async def remaining_of(
    engine_or_url: Source, *, subject_key: str, evidence: Tombstone | Sequence[Tombstone]
) -> int:
    """Return how many records about a person this erasure was to take and are there all the same.

    What a legal hold had a sweep pass by (:meth:`memory.Memory.forget_tenant`, and what had expired
    for :meth:`memory.Memory.expire`), and what has come back with restored rows. ``evidence`` are
    the tombstones that the erasure left of the person. Erasures of kinds and of single records do
    not say what they took: of these none is counted. As the application's role, or the owner.
    Raises ``InvalidInputError``.

    >>> import memory
    >>> from memory import maintenance
    >>> async with memory.Memory(memory.PostgresStore(url), subject_pepper=pepper) as service:
    ...     receipt = await service.forget("shop", subject_key="nobody")
    ...     [stone, *_] = await service.erasure_history("shop", subject_key="nobody")
    >>> await maintenance.remaining_of(url, subject_key="nobody", evidence=stone)
    0
    """
    person = validation.key(subject_key, "subject_key")
    first, *_ = certifiable.of_one_erasure(evidence)

    async def read(connection: AsyncConnection) -> int:
        await tenancy.enter(connection, first.tenant_key)
        values = (first.tenant_key, person, first.erased_at, first.scope)
        rows = await fetch(connection, _REMAINING, *values)
        return int(rows[0].n)

    async with opened(engine_or_url) as access:
        return await access.several(read)
