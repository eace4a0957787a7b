"""``memory hold``, ``memory release`` and ``memory readmit``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import typer

from memory.cli.knowing import require_known
from memory.cli.people import Subject, Tenant, Yes, confirm, subject_key
from memory.cli.plugs import opened
from memory.cli.printing import Json, as_json, print_line
from memory.cli.receipts import decision_values, receipt_values, say_what_is_left, show_receipt
from memory.cli.running import finish, run
from memory.service import Memory
from memory.types import Decision, Release

__all__ = ["hold", "readmit", "release"]


def hold(context: typer.Context, tenant: Tenant, subject: Subject, json: Json = False) -> None:
    """Put a person under legal hold: nothing about them is erased until released."""
    _show(run(_decide(context, tenant, subject, Memory.hold)), json)


def readmit(context: typer.Context, tenant: Tenant, subject: Subject, json: Json = False) -> None:
    """Lift the block of forget --block-future: they may be remembered again. For operators."""
    _show(run(_decide(context, tenant, subject, Memory.readmit)), json)


async def _decide(
    context: typer.Context, tenant: str, subject: str, verb: Callable[..., Awaitable[Decision]]
) -> Decision:
    async with opened(context) as memory:
        await require_known(tenant)
        return await verb(memory, tenant, subject_key=subject_key(subject))


def _show(decision: Decision, json: bool) -> None:
    if json:
        as_json({"decision": decision_values(decision)})
    else:
        print_line(f"decision {decision.seq}: {decision.action} at {decision.at.isoformat()}")


def release(
    context: typer.Context,
    tenant: Tenant,
    subject: Subject,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Lift a hold, and carry out the erasures that waited for it. For operators."""
    done = run(_release(context, tenant, subject, yes=yes))
    if json:
        receipts = [receipt_values(receipt) for receipt in done.receipts]
        as_json({"decision": decision_values(done.decision), "receipts": receipts})
    else:
        _show(done.decision, json)
        for receipt in done.receipts:
            show_receipt(receipt)
    finish(say_what_is_left(done.receipts))


async def _release(context: typer.Context, tenant: str, subject: str, *, yes: bool) -> Release:
    async with opened(context) as memory:
        await require_known(tenant)
        key = subject_key(subject)
        confirm("Lift the hold, and erase what was asked for meanwhile?", yes=yes)
        return await memory.release(tenant, subject_key=key)
