"""What the page on web services says: statuses, an ORM's session, and when its commit comes."""

from __future__ import annotations

import inspect
import re
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import Depends, FastAPI
from sqlalchemy import delete, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from memory import InvalidInputError, LegalHoldError, Memory, PostgresStore
from memory.engines import open_engine
from pages import ROOT, Page, names_for, run
from rawsql import Connection
from samples import load
from servers import Database
from stores import image, mentions

PAGE = Page(ROOT / "docs" / "fastapi.md")
SESSION_SETTINGS = """
    select name, setting from pg_catalog.pg_settings where source = 'client' order by name
"""
ZOE, DANA = "customer:zoe", "customer:dana"


def test_the_statuses_are_those_of_the_service() -> None:
    said = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE.text, re.MULTILINE))
    answered = load("fastapi_app").STATUS
    assert said == {error.__name__: str(status) for error, status in answered.items()}


def test_the_command_names_what_the_service_reads() -> None:
    [block] = [block for block in PAGE.blocks("sh") if "uvicorn" in block.code]
    code = inspect.getsource(load("fastapi_app").from_environment)
    assert re.findall(r"(MEMORY_\w+)=", block.code) == re.findall(r'"(MEMORY_\w+)"', code)
    assert "uvicorn fastapi_app:from_environment --factory" in block.code


def test_the_digest_of_the_page_is_the_one_that_the_service_looks_up() -> None:
    [block] = [block for block in PAGE.blocks("sh") if "sha256sum" in block.code]
    code = f'{block.code}\necho "$key"'
    done = subprocess.run(["/bin/sh", "-ec", code], capture_output=True, text=True, check=True)
    digest, key = done.stdout.split()
    assert load("fastapi_app").digest(key) == digest


def test_an_engine_made_from_a_url_has_the_pool_that_is_told(database: Database) -> None:
    pool = PostgresStore(database.app_url)._own.pool  # type: ignore[union-attr]
    assert "up to five connections and opens up to ten more" in PAGE.text
    assert (pool.size(), pool._max_overflow) == (5, 10)  # type: ignore[attr-defined]


async def test_an_engine_set_up_as_the_page_says_plans_as_ours_do(database: Database) -> None:
    [block] = [block for block in PAGE.blocks("python") if "server_settings" in block.code]
    names = names_for(database)
    run(block.code[: block.code.index("service =")], name="fastapi.md", line=1, names=names)
    found = []
    for engine in (names["steered"], open_engine(database.app_url)):
        async with engine.connect() as connection:
            rows = await connection.execute(text(SESSION_SETTINGS))
            found.append(rows.all())
        await engine.dispose()
    assert found[0] == found[1]
    assert ("enable_seqscan", "off") in found[0]


@pytest.fixture
async def page(database: Database) -> Any:
    """What the page defines for an ORM: ``Ticket``, ``sessions`` and ``memory_in``."""
    with psycopg.connect(database.superuser_url, autocommit=True) as superuser:
        superuser.execute(
            "create table public.tickets (ticket_id bigint generated always as identity primary"
            " key, customer text not null, title text)"
        )
        app = database.role("app")
        superuser.execute(f"grant select, insert, delete on public.tickets to {app}")
    names = names_for(database)
    blocks = PAGE.blocks("python")
    [engine] = [block for block in blocks if block.code.startswith("engine =")]
    [models] = [block for block in blocks if "class Ticket" in block.code]
    [joined] = [block for block in blocks if "def memory_in" in block.code]
    [depends] = [block for block in blocks if "Depends" in block.code]
    imports = "from memory import Memory, PostgresStore\n"
    definitions = joined.code[: joined.code.index("async with sessions")]
    imports += "from sqlalchemy.ext.asyncio import create_async_engine\n"
    for code in (imports, engine.code, models.code, definitions, depends.code):
        run(code, name="fastapi.md", line=1, names=names)
    yield SimpleNamespace(**names)
    await names["engine"].dispose()


async def both(session: AsyncSession, page: Any, customer: str, title: str) -> None:
    """Write a row of the host's and a memory."""
    session.add(page.Ticket(customer=customer, title=title))
    await (await page.memory_in(session)).remember(text=title, subject_keys=customer)


async def tickets(superuser: Connection) -> list[str]:
    rows = await superuser.fetch("select t::text as row from public.tickets as t order by 1")
    return [row["row"] for row in rows]


async def held_of(superuser: Connection, needle: str) -> tuple[int, int]:
    """Count the tickets and the memories that say something."""
    found = sum(needle in ticket for ticket in await tickets(superuser))
    return found, (await mentions(superuser, needle)).get("records", 0)


async def test_the_row_of_the_orm_and_the_memory_are_there_together_or_neither(
    page: Any, superuser: Connection
) -> None:
    async with page.sessions.begin() as session:
        await both(session, page, DANA, "moved")
        await session.flush()
        assert await held_of(superuser, "moved") == (0, 0)
    assert await held_of(superuser, "moved") == (1, 1)

    async def host_fails(session: AsyncSession) -> None:
        raise RuntimeError

    async def row_is_refused(session: AsyncSession) -> None:
        session.add(page.Ticket(title="refunded"))
        await session.flush()

    async def memory_is_refused(session: AsyncSession) -> None:
        await (await page.memory_in(session)).remember(text="\0", subject_keys=DANA)

    async def attempt(last: Any) -> None:
        async with page.sessions.begin() as session:
            await both(session, page, DANA, "refunded")
            await session.flush()
            await last(session)

    for last, error in {
        host_fails: RuntimeError,
        row_is_refused: IntegrityError,
        memory_is_refused: InvalidInputError,
    }.items():
        with pytest.raises(error):
            await attempt(last)
    assert await held_of(superuser, "refunded") == (0, 0)


async def test_an_erasure_and_the_rows_of_the_orm_go_together_or_stay(
    page: Any, superuser: Connection
) -> None:
    async with page.sessions.begin() as session:
        await both(session, page, ZOE, "Zoe waits")
        await both(session, page, DANA, "moved")
    before = await image(superuser, "shop"), await tickets(superuser)
    [kept] = [ticket for ticket in before[1] if ZOE in ticket]
    rows = "select r::text as row from memory.records as r where text = 'Zoe waits'"
    [neighbour] = await superuser.fetch(rows)

    async def erase(*, fail: bool) -> Any:
        async with page.sessions.begin() as session:
            await session.execute(delete(page.Ticket).where(page.Ticket.customer == DANA))
            receipt = await (await page.memory_in(session)).forget(subject_key=DANA)
            assert receipt.counts.memories == 1
            if fail:
                raise RuntimeError
        return receipt

    with pytest.raises(RuntimeError):
        await erase(fail=True)
    assert (await image(superuser, "shop"), await tickets(superuser)) == before
    receipt = await erase(fail=False)
    assert await held_of(superuser, "moved") == (0, 0)
    assert await tickets(superuser) == [kept]
    assert await superuser.fetch(rows) == [neighbour]
    stones = await superuser.fetch("select erasure_id from memory.tombstones")
    assert [stone["erasure_id"] for stone in stones] == [receipt.erasure_id]


@pytest.mark.parametrize("caught", ["inside", "outside"])
async def test_a_request_against_a_hold_is_kept_where_the_error_is_caught_inside(
    page: Any, superuser: Connection, caught: str
) -> None:
    async with page.sessions.begin() as session:
        await both(session, page, DANA, "moved")
    service = Memory(PostgresStore(page.engine), subject_pepper=page.pepper)
    await service.hold("shop", subject_key=DANA)
    if caught == "inside":
        async with page.sessions.begin() as session:
            with pytest.raises(LegalHoldError):
                await (await page.memory_in(session)).forget(subject_key=DANA)
    else:
        with pytest.raises(LegalHoldError):
            async with page.sessions.begin() as session:
                await (await page.memory_in(session)).forget(subject_key=DANA)
    requests = "select count(*) from memory.decisions where action = 'request'"
    assert await superuser.fetchval(requests) == (1 if caught == "inside" else 0)


async def test_after_the_commit_a_store_of_its_own_has_the_indexes_purged(page: Any) -> None:
    service = Memory(PostgresStore(page.engine), indexes=[Index()], subject_pepper=page.pepper)
    told = await service.remember("shop", text="moved", subject_keys=DANA)
    await service.register_artefact(
        "shop", adapter="vectors", artefact_id="a1", sources=told.record
    )
    async with page.sessions.begin() as session:
        receipt = await (await page.memory_in(session)).forget(subject_key=DANA)
    assert (receipt.outstanding, receipt.complete) == (("vectors",), False)
    assert (await service.purge_outstanding("shop")).settled == 1


class Index:
    """An index that purges what it is asked to."""

    name = "vectors"

    async def purge(self, artefact_ids: list[str]) -> int:
        return len(artefact_ids)


@pytest.fixture
def commits_fail(page: Any) -> Iterator[None]:
    def refuse(session: Any) -> None:
        raise RuntimeError("refused at commit")

    event.listen(AsyncSession.sync_session_class, "before_commit", refuse)
    yield
    event.remove(AsyncSession.sync_session_class, "before_commit", refuse)


@pytest.mark.parametrize(("scope", "status"), [("function", 500), ("request", 200)])
async def test_a_commit_that_fails_is_known_before_the_answer_with_the_scope_of_the_page(
    page: Any, commits_fail: None, superuser: Connection, scope: Any, status: int
) -> None:
    app = FastAPI()
    [shown] = page.Transaction.__metadata__
    assert shown == Depends(page.transaction, scope="function")
    depends: Any = Depends(page.transaction, scope=scope)

    @app.post("/")
    async def write(session: AsyncSession = depends) -> dict[str, bool]:
        await both(session, page, DANA, "moved")
        return {"stored": True}

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        assert (await client.post("/")).status_code == status
    assert await held_of(superuser, "moved") == (0, 0)
