"""Writing a page of what was read elsewhere: what is new, and beside what is here already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from memory.errors import ConflictError, InvalidInputError, SubjectBlockedError
from memory.service import Item, TenantMemory
from memory.types import Record

__all__ = ["write"]


async def write(memory: TenantMemory, found: Sequence[Item | str], counts: Counter[str]) -> None:
    """Write what is not here yet: at once, or one by one where something is refused."""
    counts["read"] += len(found)
    counts.update(reason for reason in found if isinstance(reason, str))
    drafts = [item for item in found if isinstance(item, Item)]
    keys = [draft.record_key or "" for draft in drafts]
    records = await memory.records(record_keys=keys, limit=len(keys)) if keys else []
    here = {record.record_key: record for record in records}
    fresh = []
    known = []
    for draft in drafts:
        record = here.get(draft.record_key or "")
        if record is None or (draft.occurred_at and record.occurred_at < draft.occurred_at):
            fresh.append(draft)
        else:
            known.append((draft, record))
    await _compare(memory, known, counts)
    try:
        await memory.remember_many(items=fresh)
    except (ConflictError, InvalidInputError, SubjectBlockedError):
        for draft in fresh:
            await _write_one(memory, draft, counts)
    else:
        for draft in fresh:
            _count(draft, counts)


async def _compare(
    memory: TenantMemory, known: Sequence[tuple[Item, Record]], counts: Counter[str]
) -> None:
    """Count what is here: newer, the same, or something else that the source never dated."""
    same = []
    for draft, record in known:
        if record.record_id != draft.record_id:
            counts["existing"] += 1
        elif draft.expires_at != record.expires_at and "ttl" not in record.metadata:
            counts["changed"] += 1
        else:
            # Masked and compared as a retry is, which writes nothing: hence no vector.
            end = record.expires_at
            same.append(replace(draft, embedding=None, searchable=False, expires_at=end))
    try:
        await memory.remember_many(items=same)
    except (ConflictError, InvalidInputError, SubjectBlockedError):
        for draft in same:
            counts[await _compared(memory, draft)] += 1
    else:
        counts["existing"] += len(same)


async def _compared(memory: TenantMemory, draft: Item) -> str:
    try:
        await memory.remember_many(items=[draft])
    except SubjectBlockedError:
        return "barred"
    except (ConflictError, InvalidInputError):
        return "changed"
    return "existing"


async def _write_one(memory: TenantMemory, draft: Item, counts: Counter[str]) -> None:
    try:
        await memory.remember_many(items=[draft])
    except SubjectBlockedError:
        counts["barred"] += 1
    except InvalidInputError:
        counts["refused"] += 1
    except ConflictError:  # a newer version has come from elsewhere
        counts["existing"] += 1
    else:
        _count(draft, counts)


def _count(draft: Item, counts: Counter[str]) -> None:
    counts["imported"] += 1
    counts["vectors"] += draft.embedding is not None
