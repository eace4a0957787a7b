"""``memory certificate``: a page to print, of what the database recorded of an erasure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import typer

from memory.certifiable import IndexState, Remaining
from memory.certificates import certificate as certified
from memory.cli.files import anchor_of, written
from memory.cli.knowing import require_known, tombstones_of, took
from memory.cli.people import Subject, Tenant, subject_key
from memory.cli.plugs import opened
from memory.cli.printing import say
from memory.cli.running import database_url, finish, run
from memory.maintenance.debts import purges_of
from memory.maintenance.remaining import remaining_of
from memory.service import Memory
from memory.types import Tombstone

__all__ = ["certificate"]


def certificate(
    context: typer.Context,
    tenant: Tenant,
    subject: Subject,
    erasure: Annotated[
        UUID | None,
        typer.Option(help="Of this erasure; else of the person's newest that took something."),
    ] = None,
    controller: Annotated[str, typer.Option(help="Who issues it: a line of yours.")] = "",
    reference: Annotated[str, typer.Option(help="A case number: a line of yours.")] = "",
    backups_until: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="The day the last backup of before is gone."),
    ] = None,
    anchor: Annotated[
        str | None, typer.Option(help="SEQ:DIGEST kept elsewhere; else the page is one itself.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Write here, readable by you alone; else to standard output."),
    ] = None,
) -> None:
    """Write a certificate of a person's erasure: one page of HTML to print and sign.

    It says what is outstanding now, and names the person by the hash.
    """
    found = run(_found(context, tenant, subject, erasure))
    if not found.stones:
        say("memory: there is no tombstone of it: nothing to certify")
        finish(True)
    nothing = not any(map(took, found.stones))
    if nothing and found.others:
        others = ", ".join(map(str, found.others))
        say(f"memory: this erasure took nothing; others of the person did (--erasure): {others}")
    elif nothing:
        say("memory: this erasure took nothing, and no other did: is the key right?")
    run(
        _write(
            found,
            output,
            controller=controller,
            reference=reference,
            anchor=anchor,
            backups_until=backups_until,
        )
    )
    left = found.deferred or found.remaining.due > 0 or any(state.owed for state in found.indexes)
    if left:
        say("memory: the erasure is not complete, and the page says so")
    unsaid = not found.indexes and any(stone.artefacts for stone in found.stones)
    if unsaid and not left:
        say("memory: no index says that the copies elsewhere are gone, and the page says so")
    if found.remaining.unclear and not left:
        say("memory: no evidence says of all that is there whether it was to go, nor does the page")
    never = nothing and not found.others
    finish(left or unsaid or found.remaining.unclear > 0 or never)


_NONE: Final = Remaining(due=0)


@dataclass(frozen=True, kw_only=True)
class _Found:
    stones: list[Tombstone]
    others: tuple[UUID, ...] = ()
    """The person's other erasures that took something, newest first."""
    indexes: tuple[IndexState, ...] = ()
    deferred: bool = False
    remaining: Remaining = _NONE


async def _found(context: typer.Context, tenant: str, subject: str, erasure: UUID | None) -> _Found:
    async with opened(context) as memory:
        await require_known(tenant)
        key = subject_key(subject)
        known = await tombstones_of(memory, tenant, key)
        # A request that is repeated leaves a newer tombstone, of nothing.
        others = list(dict.fromkeys(stone.erasure_id for stone in known if took(stone)))
        if erasure is None and known:
            erasure = others[0] if others else known[0].erasure_id
        stones = [stone for stone in known if stone.erasure_id == erasure]
        if not stones or erasure is None:
            return _Found(stones=[])
        deferred = await _waits(memory, tenant, key, erasure)
    indexes = await purges_of(
        database_url(),
        tenant_key=tenant,
        erasure_id=erasure,
        subject_hash=stones[0].subject_hash,
    )
    # What waits for a release is said already.
    remaining = (
        _NONE if deferred else await remaining_of(database_url(), subject_key=key, evidence=stones)
    )
    return _Found(
        stones=stones,
        others=tuple(other for other in others if other != erasure),
        indexes=indexes,
        deferred=deferred,
        remaining=remaining,
    )


async def _waits(memory: Memory, tenant: str, key: str, erasure: UUID) -> bool:
    """Say whether a hold still keeps some of the erasure: it was requested and not completed."""
    before: int | None = None
    while page := await memory.decisions(tenant, subject_key=key, before=before, limit=1000):
        for decision in page:
            if decision.erasure_id == erasure and decision.action in ("request", "complete"):
                return decision.action == "request"
        before = page[-1].seq
    return False


async def _write(
    found: _Found,
    output: Path | None,
    *,
    controller: str,
    reference: str,
    anchor: str | None,
    backups_until: datetime | None,
) -> None:
    page = certified(
        found.stones,
        indexes=found.indexes,
        deferred=found.deferred,
        remaining=found.remaining,
        anchor=None if anchor is None else anchor_of(anchor),
        controller=controller,
        reference=reference,
        backups_until=None if backups_until is None else backups_until.date(),
        issued_at=datetime.now(UTC),
    )
    with written(output) as file:
        file.write(page.encode())
