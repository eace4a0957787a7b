"""What a stream of tombstones says was erased, and who of them a restored database holds again."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final, TypeAlias
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import tombstones
from memory.database import Access, fetch
from memory.repositories import tenancy
from memory.types import Anchor, Reason, Scope, Tombstone

__all__ = ["Due", "Lines", "Stream", "everybody", "latest", "people", "read"]

Lines: TypeAlias = Iterable[str | bytes]

WHOLE: Final[frozenset[Scope]] = frozenset({"subject", "tenant"})
"""Scopes that took everything about the person. The others do not say which records they took."""

_BATCH: Final = 1_000
_PEOPLE: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """The newest erasure of a person; where it was whole, all that was created before it went."""

    erased_at: datetime
    erasure_id: UUID
    reason: Reason
    scope: Scope


@dataclass(kw_only=True, slots=True)
class Stream:
    """A verified stream against a database: ``due`` maps tenant and hash to what is missing there.

    A tombstone is ``known`` when the database's own chain holds it: the erasure is part of what was
    restored. ``lost`` counts the others by tenant, and ``narrow`` by scope those of them that do
    not say which records they took; ``narrowly`` holds their people like ``due``.
    """

    tombstones: int = 0
    known: int = 0
    lost: Counter[str] = field(default_factory=Counter, repr=False)
    narrow: Counter[Scope] = field(default_factory=Counter)
    narrowly: dict[str, dict[str, Due]] = field(default_factory=dict, repr=False)
    due: dict[str, dict[str, Due]] = field(default_factory=dict, repr=False)


def latest(due: dict[str, Due], stone: Tombstone) -> None:
    """Note an erasure, unless a newer one of the same person is noted."""
    noted = due.get(stone.subject_hash)
    if noted is None or noted.erased_at < stone.erased_at:
        due[stone.subject_hash] = Due(
            erased_at=stone.erased_at,
            erasure_id=stone.erasure_id,
            reason=stone.reason,
            scope=stone.scope,
        )


async def read(
    access: Access, lines: Lines, anchors: Mapping[str, Anchor] | None, *, known: bool = False
) -> Stream:
    """Verify the whole stream and sort it by what the database knows; nothing is written.

    ``known`` makes also those due that the database's chain holds. Memory grows with the people
    erased, not with the stream.
    """
    found = Stream()
    for batch in _batches(tombstones.read(lines, anchors)):
        held = await _held(access, batch)
        for stone in batch:
            found.tombstones += 1
            is_known = (stone.tenant_key, stone.seq) in held
            found.known += is_known
            found.lost[stone.tenant_key] += not is_known
            if known or not is_known:
                _sort(found, stone)
    return found


def _sort(found: Stream, stone: Tombstone) -> None:
    if stone.scope in WHOLE:
        latest(found.due.setdefault(stone.tenant_key, {}), stone)
        return
    found.narrow[stone.scope] += 1
    # What had expired will expire again.
    if stone.scope != "retention":
        latest(found.narrowly.setdefault(stone.tenant_key, {}), stone)


def _batches(stones: Iterator[Tombstone]) -> Iterator[list[Tombstone]]:
    while batch := list(islice(stones, _BATCH)):
        yield batch


_HELD: Final = """
select u.seq from unnest($2::bigint[], $3::text[]) as u (seq, digest)
cross join lateral (
    select from memory.tombstones as t
    where t.tenant_key = $1 and t.seq = u.seq and t.digest = u.digest offset 0
) as t
"""


async def _held(access: Access, batch: Sequence[Tombstone]) -> set[tuple[str, int]]:
    """Return the positions at which the database's chains hold the very same tombstone."""
    by_tenant: dict[str, list[Tombstone]] = {}
    for stone in batch:
        by_tenant.setdefault(stone.tenant_key, []).append(stone)

    async def work(connection: AsyncConnection) -> set[tuple[str, int]]:
        found = set()
        for tenant_key, stones in by_tenant.items():
            await tenancy.enter(connection, tenant_key)
            seqs, digests = [s.seq for s in stones], [s.digest for s in stones]
            rows = await fetch(connection, _HELD, tenant_key, seqs, digests)
            found |= {(tenant_key, row.seq) for row in rows}
        return found

    return await access.several(work)


# From person to person through the index, one probe each, however many records they have.
_WALK: Final = """
with recursive walk (subject_key, subject_hash, n) as (
    (
        select l.subject_key, l.subject_hash, 1 from memory.record_subjects as l
        where l.tenant_key = $1 and l.subject_key > $2::text
        order by l.subject_key limit 1
    )
    union all
    select q.subject_key, q.subject_hash, w.n + 1 from walk as w
    cross join lateral (
        select l.subject_key, l.subject_hash from memory.record_subjects as l
        where l.tenant_key = $1 and l.subject_key > w.subject_key
        order by l.subject_key limit 1
    ) as q
    where w.n < $3
)
select w.subject_key, w.subject_hash from walk as w order by w.n
"""


async def everybody(access: Access, tenant_key: str) -> AsyncIterator[tuple[str, str]]:
    """Yield key and hash of everybody who is linked to a record."""
    last = ""
    while True:
        page = await access.several(partial(_page, tenant_key=tenant_key, last=last))
        for person in page:
            yield person
        if len(page) < _PEOPLE:
            return
        last = page[-1][0]


async def people(
    access: Access, tenant_key: str, due: Mapping[str, Due]
) -> AsyncIterator[tuple[str, str, Due]]:
    """Yield key, hash and erasure of everybody who is due and is linked to a record."""
    if not due:
        return
    async for subject_key, subject_hash in everybody(access, tenant_key):
        if subject_hash in due:
            yield subject_key, subject_hash, due[subject_hash]


async def _page(connection: AsyncConnection, tenant_key: str, last: str) -> list[tuple[str, str]]:
    await tenancy.enter(connection, tenant_key)
    rows = await fetch(connection, _WALK, tenant_key, last, _PEOPLE)
    return [(row.subject_key, row.subject_hash) for row in rows]
