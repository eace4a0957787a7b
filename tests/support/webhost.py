"""The web service of the examples, in this process or as a server of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
from fastapi import FastAPI

from memory import Memory
from rawsql import Connection
from samples import load
from servers import Database

KEYS: Final = {"one": "key-of-one", "two": "key-of-two"}  # API key by tenant


def tenants() -> dict[str, str]:
    """What the service is told: the tenant of each digest."""
    return {load("fastapi_app").digest(key): tenant for tenant, key in KEYS.items()}


@dataclass
class Host:
    """The service with a client; every request is one tenant's."""

    app: FastAPI
    memory: Memory
    client: httpx.AsyncClient

    async def post(self, tenant: str, path: str, **body: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {KEYS[tenant]}"}
        return await self.client.post(path, json=body, headers=headers)

    async def told(self, tenant: str, text: str, *people: str, **more: Any) -> dict[str, Any]:
        """Remember something; return the record."""
        answer = await self.post(tenant, "/remember", text=text, subject_keys=people, **more)
        assert answer.status_code == 201, answer.text
        record: dict[str, Any] = answer.json()["record"]
        return record


@contextlib.asynccontextmanager
async def hosted(memory: Memory) -> AsyncIterator[Host]:
    """Run the service, start to shutdown, without a socket."""
    app = load("fastapi_app").create_app(memory, tenants())
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://service") as client,
    ):
        yield Host(app, memory, client)


async def exchanged(
    app: FastAPI, path: str, *, leave_after: int | None = None, spec: str = "2.3", **body: Any
) -> list[dict[str, Any]]:
    """Ask as tenant one, as a server does; return what the service sent.

    The client leaves after so many messages. Servers of ASGI 2.3 say so when they are asked, those
    of 2.4 when something is sent.
    """
    sent: list[dict[str, Any]] = []
    gone = asyncio.Event()
    if leave_after == 0:
        gone.set()
    asked = iter([{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in asked:
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if gone.is_set() and spec >= "2.4":
            raise OSError
        sent.append(dict(message))
        if len(sent) == leave_after:
            gone.set()

    headers = {"authorization": f"Bearer {KEYS['one']}", "content-type": "application/json"}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": spec},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await app(scope, receive, send)
    return sent


async def sessions(superuser: Connection, database: Database) -> list[str]:
    """What the sessions of the application are doing."""
    rows = await superuser.fetch(
        "select state from pg_stat_activity where datname = current_database() and usename = $1",
        database.role("app"),
    )
    return [row["state"] for row in rows]


async def no_session_is_left(
    superuser: Connection, database: Database, *, but: str | None = None
) -> None:
    for _ in range(1_000):
        if set(await sessions(superuser, database)) <= {but}:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(await sessions(superuser, database))
