"""Erasing again what a restored backup brought back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Access, fetch
from memory.maintenance.debts import debts
from memory.maintenance.due import Due, Lines, people, read
from memory.maintenance.walking import Progress, Source, opened, silent
from memory.repositories import tenancy
from memory.types import Anchor, Scope

__all__ = ["Replayed", "replay"]

_BATCH: Final = 5_000


@dataclass(kw_only=True, slots=True)
class _Tally:
    people: int = 0
    records: int = 0
    held: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """What a replay did.

    Of the stream's ``tombstones``, ``known`` ones stand in the database's own chain: the backup was
    taken after them. ``people`` had ``records`` erased again, derived ones included; ``held``
    counts records that a legal hold kept. ``narrow`` counts by scope the tombstones that cannot be
    repeated, since they do not say which records they took: those of ``retention`` are done again
    by ``expire``, without a rule and with each rule by age; those of ``kinds`` and ``record``,
    which a raw DELETE leaves, by nobody. ``to_review`` counts the people of these last who have
    records from before: what had been erased may be among them.
    ``outstanding`` are all the external indexes that owe a purge now, whichever erasure it is
    from: call ``purge_outstanding`` for each tenant, then the replay again to see that none does.

    >>> import memory
    >>> lines = [line async for line in memory.export_tombstones(owner_url)]
    >>> replayed = await memory.replay(owner_url, lines)
    >>> replayed.people, replayed.outstanding, replayed.complete
    (0, (), True)
    """

    tombstones: int
    known: int
    people: int
    records: int
    held: int
    narrow: Mapping[Scope, int]
    to_review: int
    outstanding: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether the erasures are done again: nothing is kept by a hold, owed, or to review."""
        return not (self.held or self.to_review or self.outstanding)


async def replay(
    engine_or_url: Source,
    tombstones: Lines,
    *,
    anchors: Mapping[str, Anchor] | None = None,
    known: bool = False,
    progress: Progress = silent,
) -> Replayed:
    """Erase again, as the owner of the schema, whom the stream says was erased.

    ``tombstones`` are the lines that :func:`export_tombstones` wrote, from a time after the backup:
    an open file will do. They are verified to the end, against ``anchors`` too, before anything is
    erased. For each tombstone of a whole person that the database's chain does not hold, the
    records about that person created before it go, with all that was derived from them; what was
    remembered after it stays. ``known`` repeats those too that the chain holds, for rows restored
    into a living database: then go also, wrongly, older records that were related to the person
    after the erasure.

    Works tenant by tenant, 5,000 roots to a transaction; what was interrupted is called again. The
    chain is continued and the stream's tombstones are not put into it: each transaction leaves a
    tombstone of its own, with the ``erasure_id`` and reason of the one repeated. Holds
    and blocks set after the backup are not in the stream: set the holds again before the replay.

    Raises ``InvalidInputError`` for a stream that does not hold together, ``InstallError`` for a
    role that is not the owner.

    >>> import memory
    >>> lines = [line async for line in memory.export_tombstones(owner_url)]
    >>> (await memory.replay(owner_url, lines)).records
    0
    """
    async with opened(engine_or_url) as access:
        stream = await read(access, tombstones, anchors, known=known)
        tally = _Tally()
        for done, (tenant_key, due) in enumerate(stream.due.items()):
            progress("tenants", done)
            async for subject_key, subject_hash, erasure in people(access, tenant_key, due):
                await _person(access, tenant_key, (subject_key, subject_hash), erasure, tally)
                progress("people", tally.people)
        to_review = 0
        for tenant_key, narrowly in stream.narrowly.items():
            to_review += await _standing(access, tenant_key, narrowly)
        # Asked of the database, since an earlier replay may have left debts too.
        outstanding = {item.adapter async for item in debts(access)}
    return Replayed(
        tombstones=stream.tombstones,
        known=stream.known,
        people=tally.people,
        records=tally.records,
        held=tally.held,
        narrow=dict(stream.narrow),
        to_review=to_review,
        outstanding=tuple(sorted(outstanding)),
    )


_OLDER: Final = """
select coalesce(string_agg(uuid_send(r.record_id), '' order by r.record_id), '') as ids
from memory.record_subjects as l
cross join lateral (
    select r.record_id from memory.records as r
    where r.tenant_key = $1 and r.record_id = l.record_id and r.created_at < $3 offset 0
) as r
where l.tenant_key = $1 and l.subject_key = $2
"""


async def _person(
    access: Access, tenant_key: str, person: tuple[str, str], due: Due, tally: _Tally
) -> None:
    """Erase a person's older records in batches."""
    subject_key, subject_hash = person
    packed = await _older(access, tenant_key, subject_key, due)
    erased = 0
    for start in range(0, len(packed), 16 * _BATCH):
        part = packed[start : start + 16 * _BATCH]
        ids = [UUID(bytes=part[at : at + 16]) for at in range(0, len(part), 16)]
        records, held = await access.several(
            partial(_erase, tenant_key=tenant_key, subject_hash=subject_hash, ids=ids, due=due)
        )
        erased += records
        tally.held += held
    tally.records += erased
    tally.people += erased > 0


async def _standing(access: Access, tenant_key: str, narrowly: Mapping[str, Due]) -> int:
    """Count the people who have records from before an erasure that did not say what it took."""
    count = 0
    async for subject_key, _, due in people(access, tenant_key, narrowly):
        count += bool(await _older(access, tenant_key, subject_key, due))
    return count


async def _older(access: Access, tenant_key: str, subject_key: str, due: Due) -> bytes:
    """Return the ids of a person's older records, one behind the other."""

    async def older(connection: AsyncConnection) -> bytes:
        await tenancy.enter(connection, tenant_key)
        rows = await fetch(connection, _OLDER, tenant_key, subject_key, due.erased_at)
        return bytes(rows[0].ids)

    return await access.several(older)


_LOCK: Final = """
select memory.lock_subject($1, $2),
    memory.lock_records($1, memory.closure($1, $3::uuid[]))
"""
# As forget does it: what is held stays, and all that leads to it.
_PLAN: Final = """
with recursive reached (record_id) as materialized (
    select r.record_id from unnest(memory.closure($1, $2::uuid[])) as u (id)
    cross join lateral (
        select r.record_id from memory.records as r
        where r.tenant_key = $1 and r.record_id = u.id offset 0
    ) as r
),
kept (record_id) as (
    select r.record_id from reached as u
    cross join lateral (
        select r.record_id from memory.records as r
        where r.tenant_key = $1 and r.record_id = u.record_id and r.held offset 0
    ) as r
    union
    select e.source_id from kept as k
    cross join lateral (
        select p.source_id from memory.provenance as p
        where p.tenant_key = $1 and p.derived_id = k.record_id offset 0
    ) as e
)
select
    array(
        select u.record_id from reached as u
        where u.record_id not in (select k.record_id from kept as k)
    ) as ids,
    (
        select count(*) from reached as u
        where u.record_id in (select k.record_id from kept as k)
    ) as held
"""


async def _erase(
    connection: AsyncConnection, tenant_key: str, subject_hash: str, ids: list[UUID], due: Due
) -> tuple[int, int]:
    """Erase these records and what was derived from them; return how many went, and were held."""
    await tenancy.enter(connection, tenant_key)
    await fetch(connection, _LOCK, tenant_key, subject_hash, ids)
    plan = (await fetch(connection, _PLAN, tenant_key, ids))[0]
    gone = list(plan.ids)
    if not gone:
        return 0, plan.held
    label = f"{due.erasure_id} {due.reason} {due.scope} {subject_hash}"
    await fetch(connection, "select set_config('memory.erasure', $1, true)", label)
    await fetch(connection, "select memory.delete_records($1, $2::uuid[])", tenant_key, gone)
    return len(gone), plan.held
