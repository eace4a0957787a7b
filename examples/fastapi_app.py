"""A web service around one ``Memory``, to copy: a tenant per API key, and nothing quoted anywhere.

To try it, with the ``examples`` extra installed: ``python examples/fastapi_app.py`` starts a
PostgreSQL of its own and prints a request. In production the database, the pepper and the hashes of
the keys come from the environment: ``uvicorn fastapi_app:from_environment --factory``.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Annotated, Any, Final
from uuid import UUID

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from memory import (
    ConflictError,
    Exported,
    InstallError,
    InvalidInputError,
    LegalHoldError,
    Memory,
    MemoryServiceError,
    PartialErasureError,
    PostgresStore,
    Recall,
    Receipt,
    Remembered,
    RetryableError,
    StoreUnavailableError,
    SubjectBlockedError,
    TenantMemory,
    Tombstone,
    UnknownRecordError,
    embedded,
)

log = logging.getLogger("memory.web")
router = APIRouter()

STATUS: Final[Mapping[type[MemoryServiceError], int]] = {
    InvalidInputError: 422,
    UnknownRecordError: 404,
    ConflictError: 409,
    SubjectBlockedError: 403,
    LegalHoldError: 423,  # the receipt says what the hold keeps, and whether release completes it
    PartialErasureError: 202,  # the database is clean; the receipt names who owes a purge
    RetryableError: 503,
    StoreUnavailableError: 503,
    InstallError: 500,
}
MAX_BODY: Final = 256 * 1024  # bytes; it is read before the key is looked at
READY_WITHIN: Final = 3.0  # seconds


# Who asks: the tenant comes from the key, never from the body.
def digest(api_key: str) -> str:
    """Return what is kept of a key. It is random, 32 bytes, so a plain hash hides it."""
    return hashlib.sha256(api_key.encode()).hexdigest()


def tenant_of(api_key: str, tenants: Mapping[str, str]) -> str | None:
    """Look the key up; how long that takes says nothing about the keys there are."""
    given, found = digest(api_key), None
    for known, tenant in tenants.items():
        if hmac.compare_digest(known, given):
            found = tenant
    return found


async def tenant_memory(
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))],
) -> TenantMemory:
    """Bind the verbs to the tenant of the key in ``Authorization: Bearer``."""
    state = request.app.state
    tenant = tenant_of(given.credentials, state.tenants) if given else None
    if tenant is None:
        raise HTTPException(401, "a valid API key is needed", {"WWW-Authenticate": "Bearer"})
    memory: Memory = state.memory
    return memory.for_tenant(tenant)


Tenant = Annotated[TenantMemory, Depends(tenant_memory)]


# What may be asked: keys of people are in bodies, since every log keeps URLs.
Text = Annotated[str, Field(min_length=1, max_length=16_000)]
Key = Annotated[str, Field(min_length=1, max_length=200)]
People = Annotated[list[Key], Field(min_length=1, max_length=20)]


class Body(BaseModel):
    """Nothing but its fields; a tenant among them is refused."""

    model_config = ConfigDict(extra="forbid")


class ToRemember(Body):
    """With a ``record_id`` of the client's own, a retried request stores nothing twice."""

    text: Text
    subject_keys: People
    kind: Key = "episodic"
    metadata: dict[str, JsonValue] | None = None
    record_id: UUID | None = None


class ToRecall(Body):
    """Without a text: the newest."""

    text: Text | None = None
    subject_keys: People | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = 8


class ToForget(Body):
    """``expect`` is the ``closure`` of a dry run: nothing goes that was not in it."""

    subject_key: Key
    dry_run: bool = False
    expect: Annotated[str, Field(max_length=64)] | None = None
    block_future: bool = False


class ToExport(Body):
    """Everything held about one person, line by line."""

    subject_key: Key


class ToList(Body):
    """The tombstones of one person or of everybody, before a ``seq``, newest first."""

    subject_key: Key | None = None
    before: Annotated[int, Field(ge=1)] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


FIELDS: Final = {name for body in Body.__subclasses__() for name in body.model_fields}


@router.post("/remember", status_code=201)
async def remember(body: ToRemember, memory: Tenant) -> Remembered:
    return await memory.remember(**dict(body))


@router.post("/recall")
async def recall(body: ToRecall, memory: Tenant) -> Recall:
    return await memory.recall(**dict(body))


@router.post("/forget")
async def forget(body: ToForget, memory: Tenant) -> Receipt:
    return await memory.forget(**dict(body))


@router.post("/erasures")
async def erasures(body: ToList, memory: Tenant) -> list[Tombstone]:
    return await memory.erasure_history(**dict(body))


@router.post("/export")
async def export(body: ToExport, memory: Tenant) -> StreamingResponse:
    entries = memory.export(subject_key=body.subject_key)
    first = await anext(entries, None)  # what fails here still has a status
    return StreamingResponse(lines(first, entries), media_type="application/x-ndjson")


async def lines(
    first: Exported | None, rest: AsyncGenerator[Exported, None]
) -> AsyncIterator[bytes]:
    """One JSON object a line; where one cannot be read, the response breaks off unfinished."""
    async with aclosing(rest):
        if first is not None:
            yield json.dumps(first.to_dict()).encode() + b"\n"
        async for entry in rest:
            yield json.dumps(entry.to_dict()).encode() + b"\n"


@router.get("/live")
async def live() -> dict[str, bool]:
    """Whether the process runs; a database that is down is no reason to restart it."""
    return {"alive": True}


@router.get("/ready")
async def ready(request: Request) -> JSONResponse:
    """Whether it may serve; why not is for its log."""
    memory: Memory = request.app.state.memory
    try:
        async with asyncio.timeout(READY_WITHIN):
            problems = (await memory.ready()).problems
    except TimeoutError:
        problems = ("the database does not answer in time",)
    for problem in problems:
        log.warning("not ready: %s", problem)
    return JSONResponse({"ready": not problems}, 503 if problems else 200)


# What goes wrong: an answer names fields and rules, a log classes; neither quotes a value.
async def refused(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of the library; an erasure that ends incomplete has its receipt in it."""
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    content: dict[str, Any] = {"error": type(error).__name__}
    if status >= 500:  # messages are free of content, but some are for operators
        log.error("%s: %s", type(error).__name__, error)
    else:
        content["detail"] = str(error)
    if isinstance(error, LegalHoldError | PartialErasureError):
        content["receipt"] = jsonable_encoder(error.receipt)
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse(content, status, headers)


async def declined(request: Request, error: Exception) -> JSONResponse:
    """Answer what reaches no verb: without a key, for no such path."""
    assert isinstance(error, HTTPException)
    content = {"error": type(error).__name__, "detail": error.detail}
    return JSONResponse(content, error.status_code, error.headers)


async def malformed(request: Request, error: Exception) -> JSONResponse:
    """Answer a body that does not fit; FastAPI's own answer quotes it."""
    assert isinstance(error, RequestValidationError)
    rules = set()
    for item in error.errors():
        # What is not a field of ours was named by the client, and may be anything.
        field = next((part for part in item["loc"] if part in FIELDS), "body")
        rules.add(f"{field}: {item['type']}")
    return JSONResponse({"error": "MalformedBody", "detail": ", ".join(sorted(rules))}, 422)


class Discreet(FastAPI):
    """Logs what nobody expected by its class: a server logs a traceback, whose end may quote."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Leave the client the 500 that was sent, or a response that is broken off."""
        try:
            await super().__call__(scope, receive, send)
        except Exception as error:
            if scope["type"] != "http":
                raise
            log.error("unexpected %s", type(error).__name__)  # noqa: TRY400 - a traceback may quote


def create_app(memory: Memory, tenants: Mapping[str, str]) -> FastAPI:
    """Return the service; ``tenants`` maps the digest of each API key to its tenant."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with memory:  # connects with the first request, closes with the last
            yield

    app = Discreet(
        title="Memory",
        lifespan=lifespan,
        max_body_size=MAX_BODY,
        exception_handlers={
            MemoryServiceError: refused,
            HTTPException: declined,
            RequestValidationError: malformed,
        },
        telemetry={"logs": False},  # they would carry exceptions whole
    )
    app.state.memory, app.state.tenants = memory, dict(tenants)
    app.include_router(router)
    return app


def from_environment() -> FastAPI:
    """Return the service of a deployment; ``MEMORY_TENANTS`` is a JSON object of digests."""
    store = PostgresStore(os.environ["MEMORY_DATABASE_URL"])
    memory = Memory(store, subject_pepper=os.environ["MEMORY_SUBJECT_PEPPER"])
    return create_app(memory, json.loads(os.environ["MEMORY_TENANTS"]))


async def try_it(port: int) -> None:
    api_key = secrets.token_urlsafe(32)
    async with embedded.serve() as server:
        memory = Memory(PostgresStore(server.url), subject_pepper="for trying only")
        app = create_app(memory, {digest(api_key): "trial"})
        print(
            f"curl -H 'Authorization: Bearer {api_key}' -H 'Content-Type: application/json'"
            """ -d '{"text": "Dana moved", "subject_keys": ["customer:dana"]}'"""
            f" http://127.0.0.1:{port}/remember",
            flush=True,
        )
        await uvicorn.Server(uvicorn.Config(app, port=port)).serve()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(try_it(int(os.environ.get("PORT", "8000"))))
