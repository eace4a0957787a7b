"""``memory upgrade`` and ``memory serve``."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from memory import embedded, migrate
from memory.cli.printing import Json, as_json, print_line, say
from memory.cli.running import database_url, run, until_stopped
from memory.database import fetch
from memory.maintenance.walking import opened

__all__ = ["serve", "upgrade"]


def upgrade(
    revision: Annotated[str, typer.Option(help="Up to this revision.")] = "head",
    json: Json = False,
) -> None:
    """Bring the schema to a revision, as alembic upgrade does; deployers wait for each other."""
    reached = run(_upgrade(revision))
    if json:
        as_json({"revision": reached})
    else:
        print_line(f"the schema is at revision {reached}")


async def _upgrade(revision: str) -> str:
    await migrate.upgrade(database_url(), revision)
    async with opened(database_url()) as access:
        rows = await access.single(
            lambda c: fetch(c, "select version_num from memory.alembic_version")
        )
    return ", ".join(row.version_num for row in rows)


def serve(
    path: Annotated[
        Path | None, typer.Option(help="Keep the data here; else they go with the server.")
    ] = None,
    postgres_version: Annotated[int, typer.Option(help="16 or 18.")] = 18,
    json: Json = False,
) -> None:
    """Run a PostgreSQL server of one's own, for trying and testing, until interrupted."""
    run(until_stopped(_serve(path, postgres_version, json)))


async def _serve(path: Path | None, postgres_version: int, json: bool) -> None:
    async with embedded.serve(path, postgres_version=postgres_version) as server:
        if json:
            as_json(asdict(server))
        else:
            print_line(f"application  {server.url}")
            print_line(f"operator     {server.operator_url}")
            print_line(f"owner        {server.owner_url}")
            print_line(f"superuser    {server.superuser_url}")
            print_line(f"data         {server.data_directory}")
        say("memory: running; SIGTERM or SIGINT ends it")
        await asyncio.Event().wait()
