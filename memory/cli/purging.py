"""``memory purge``: what external indexes owe, and a worker that has them pay."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, Final

import typer

from memory.cli.people import AllTenants, MaybeTenant, walk
from memory.cli.plugs import opened, plugs
from memory.cli.printing import Json, as_json, print_line, say, table
from memory.cli.running import database_url, finish, run, until_stopped
from memory.errors import InvalidInputError, RetryableError, StoreUnavailableError
from memory.maintenance.debts import Owed, owed
from memory.plain import plain
from memory.service import Memory

__all__ = ["purge"]

_NO_INDEX: Final = (
    "no index is plugged in: let the host's worker call purge_outstanding, or start these"
    " commands from memory.cli.main(indexes=...)"
)


def purge(
    context: typer.Context,
    tenant: MaybeTenant = None,
    all_tenants: AllTenants = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until SIGTERM or SIGINT; honours waiting times.")
    ] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two rounds.")] = 10.0,
    json: Json = False,
) -> None:
    """Ask the indexes again for every purge they owe; show what is left.

    The script "memory" knows no index, and shows only. See docs/cli.md for plugging them in.
    """
    if watch:
        run(until_stopped(_watch(context, tenant, all_tenants, interval, json)))
        return
    settled, left = run(_once(context, tenant, all_tenants))
    if json:
        as_json({"settled": settled, "owed": [_values(item) for item in left]})
    else:
        print_line(f"{settled} purges settled, {sum(item.artefacts for item in left)} owed")
        if left:
            table("Owed", [item.name for item in fields(Owed)], [_row(item) for item in left])
    if left and not plugs(context).indexes:
        say(f"memory: {_NO_INDEX}")
    finish(bool(left))


async def _once(
    context: typer.Context, tenant: str | None, every: bool
) -> tuple[int, Sequence[Owed]]:
    async with opened(context) as memory:
        settled = await _round(memory, tenant, every, due_only=False)
    return settled, await owed(database_url(), tenant_key=tenant)


async def _round(memory: Memory, tenant: str | None, every: bool, *, due_only: bool) -> int:
    settled = 0
    async for key in walk(tenant, every):
        settled += (await memory.purge_outstanding(key, due_only=due_only)).settled
    return settled


async def _watch(
    context: typer.Context, tenant: str | None, every: bool, interval: float, json: bool
) -> None:
    if not plugs(context).indexes:
        raise InvalidInputError("--watch", _NO_INDEX)
    async with opened(context) as memory:
        say("memory: watching; SIGTERM or SIGINT ends it")
        while True:
            try:
                settled = await _round(memory, tenant, every, due_only=True)
            except (RetryableError, StoreUnavailableError) as error:
                # A worker outlives a restart of its server.
                say(f"memory: {error}")
                settled = 0
            if settled:
                as_json({"settled": settled}) if json else print_line(f"{settled} purges settled")
            await asyncio.sleep(interval)


def _values(item: Owed) -> dict[str, Any]:
    return {field.name: plain(getattr(item, field.name)) for field in fields(item)}


def _row(item: Owed) -> list[object]:
    return ["" if value is None else value for value in _values(item).values()]
