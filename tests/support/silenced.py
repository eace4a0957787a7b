"""A server that no longer answers: reached through a socket that stops passing anything on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from sqlalchemy import make_url

from servers import Database


@contextlib.asynccontextmanager
async def silenced(database: Database, folder: Path) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Yield a URL of the application's role, and what is cleared to have the server fall silent."""
    host, port = database.server.address
    answers = asyncio.Event()
    answers.set()
    pumps: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            while data := await reader.read(65_536):
                await answers.wait()
                writer.write(data)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if host.startswith("/"):
            path = f"{host}/.s.PGSQL.{port}"
            upstream = await asyncio.open_unix_connection(path)
        else:
            upstream = await asyncio.open_connection(host, int(port))
        for ends in ((reader, upstream[1]), (upstream[0], writer)):
            pumps.add(asyncio.create_task(pump(*ends)))

    listening = await asyncio.start_unix_server(accept, folder / ".s.PGSQL.5432")
    url = make_url(database.app_url).set(host=None, port=None)
    through = url.update_query_dict({"host": str(folder), "port": "5432"})
    try:
        yield through.render_as_string(hide_password=False), answers
    finally:
        answers.set()
        listening.close()
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
