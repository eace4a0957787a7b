"""The web service of the examples as a process: a pool of two, and a limit per request.

A request that says how patient it is, in seconds, is cancelled after that, wherever it is: hosts
limit requests with middleware like this one.
"""

from __future__ import annotations

import asyncio
import os

from fastapi import FastAPI
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory import Memory, PostgresStore
from memory.urls import normalize_url
from samples import load
from webhost import tenants

__all__ = ["service"]


class Impatient:
    """Cancels a request that has taken as long as its header ``X-Patience`` allows."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        patience = dict(scope.get("headers", ())).get(b"x-patience")
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            async with asyncio.timeout(float(patience) if patience else None):
                await self.app(scope, receive, noted)
        except TimeoutError:
            if not started:
                await JSONResponse({"error": "Timeout"}, 504)(scope, receive, send)


def service() -> FastAPI:
    """Return the service as a deployment might set it up; ``/pool`` says how its pool is."""
    url = normalize_url(os.environ["MEMORY_DATABASE_URL"])
    engine = create_async_engine(url, pool_size=2, max_overflow=0, hide_parameters=True)
    memory = Memory(PostgresStore(engine), subject_pepper="pepper")
    app: FastAPI = load("fastapi_app").create_app(memory, tenants())
    app.add_middleware(Impatient)

    @app.get("/pool")
    def pool() -> dict[str, object]:
        return {"checked_out": engine.pool.checkedout()}  # type: ignore[attr-defined]

    return app
