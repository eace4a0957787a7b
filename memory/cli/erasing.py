"""``memory forget`` and ``memory expire``."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from memory.cli.bars import steps
from memory.cli.knowing import is_known, require_known
from memory.cli.people import (
    AllTenants,
    MaybeTenant,
    Subject,
    Tenant,
    Yes,
    confirm,
    subject_key,
    walk,
)
from memory.cli.plugs import opened
from memory.cli.printing import Json, as_json, print_line
from memory.cli.receipts import (
    receipt_values,
    say_what_is_left,
    say_what_to_expect,
    show_receipt,
)
from memory.cli.running import finish, run
from memory.errors import ConflictError, InvalidInputError, LegalHoldError, PartialErasureError
from memory.service import Memory
from memory.types import Receipt

__all__ = ["expire", "forget"]

Kinds = Annotated[list[str] | None, typer.Option("--kind", help="Of this kind only; repeatable.")]


def forget(
    context: typer.Context,
    tenant: Tenant,
    subject: Subject,
    kind: Kinds = None,
    reason: Annotated[
        str, typer.Option(help="subject_request, retention_policy or operator.")
    ] = "subject_request",
    block_future: Annotated[
        bool, typer.Option("--block-future", help="Refuse what is written about them from now on.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go; end.")] = False,
    expect: Annotated[
        str | None, typer.Option(help="The digest of an earlier dry run: this, or nothing.")
    ] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Erase a person, and all that was derived from them.

    Shows first what would go, and asks. Exactly what was shown is erased, or nothing.
    """
    options = {"kinds": kind or None, "reason": reason}
    asked: dict[str, Any] = {"dry_run": dry_run, "expect": expect, "block": block_future}
    run(_forget(context, tenant, subject, options, yes=yes, json=json, **asked))


async def _forget(
    context: typer.Context,
    tenant: str,
    subject: str,
    options: dict[str, Any],
    *,
    dry_run: bool,
    expect: str | None,
    block: bool,
    yes: bool,
    json: bool,
) -> None:
    async with opened(context) as memory:
        await require_known(tenant)
        options["subject_key"] = key = subject_key(subject)
        plan = await memory.forget(tenant, **options, expect=expect, dry_run=True)
        if expect not in (None, plan.closure):
            raise ConflictError("expect: the records to erase are not those of the dry run")
        known = await is_known(memory, plan, key)
        if not json:
            show_receipt(plan)
        stopped = say_what_to_expect(plan, known=known)
        if dry_run:
            if json:
                as_json({"plan": receipt_values(plan), "known": known})
            finish(stopped)
        confirm(f"Erase {plan.counts.records} records?", yes=yes)
        receipt = await _committed(
            memory.forget(tenant, **options, expect=plan.closure, block_future=block)
        )
    if json:
        values = {"plan": receipt_values(plan), "receipt": receipt_values(receipt)}
        as_json({**values, "known": known})
    else:
        show_receipt(receipt)
    finish(say_what_is_left([receipt]) or not known)


async def _committed(erasure: Any) -> Receipt:
    """Return the receipt, of an erasure that ended incomplete too."""
    try:
        receipt: Receipt = await erasure
    except (LegalHoldError, PartialErasureError) as stopped:
        receipt = stopped.receipt
    return receipt


def expire(
    context: typer.Context,
    tenant: MaybeTenant = None,
    all_tenants: AllTenants = False,
    older_than: Annotated[
        float | None, typer.Option(help="Also what occurred more than so many days ago.")
    ] = None,
    kind: Kinds = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Erase what retention says: for every night.

    Every record whose expiry has come; with --older-than, which asks first, also by age.
    """
    options = {
        "kinds": kind or None,
        "older_than": older_than,
    }
    receipts = run(_expire(context, tenant, all_tenants, options, yes=yes))
    if json:
        as_json({"receipts": [receipt_values(receipt) for receipt in receipts]})
    else:
        records = sum(receipt.counts.records for receipt in receipts)
        print_line(f"{records} records of {len(receipts)} tenants erased")
    finish(say_what_is_left(receipts))


async def _expire(
    context: typer.Context, tenant: str | None, every: bool, options: dict[str, Any], *, yes: bool
) -> list[Receipt]:
    found: list[Receipt] = []
    if options["older_than"] is not None:
        options["older_than"] = _days(options["older_than"])
    async with opened(context) as memory:
        if options["older_than"] is not None:
            confirm("Erase by age?", yes=yes)
        with steps() as progress:
            async for key in walk(tenant, every):
                found.append(await _expired(memory, key, options))
                progress("tenants", len(found))
    return found


def _days(count: float) -> timedelta:
    try:
        return timedelta(days=count)
    except (OverflowError, ValueError):
        failure = InvalidInputError("--older-than", "must be a number of days")
    raise failure


async def _expired(memory: Memory, tenant_key: str, options: dict[str, Any]) -> Receipt:
    return await _committed(memory.expire(tenant_key, **options))
