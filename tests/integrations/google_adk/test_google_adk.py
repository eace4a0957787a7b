"""The memory service of Google's ADK: its contract, its own runner, and what erasure leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from google.adk.agents import Agent
from google.adk.agents.callback_context import CallbackContext
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types

from docstrings import examples, run_examples
from memory import InvalidInputError, Memory, SubjectBlockedError, TenantMemory
from memory.integrations.google_adk import ErasableMemoryService
from memory.ports import Embedder
from pages import Page, names_for, run
from servers import ROOT, Database
from stores import broken_rules, image, mentions

ANN, BOB = "ann", "bob"

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:google")


def event(text: str | None, name: str = "e1", author: str = "user") -> Event:
    content = None if text is None else types.Content(role=author, parts=[types.Part(text=text)])
    return Event(id=name, invocation_id="i", author=author, timestamp=12345, content=content)


def session(*events: Event, app: str = "shop_app", user: str = ANN, name: str = "s1") -> Session:
    return Session(id=name, app_name=app, user_id=user, events=list(events))


async def found(
    service: BaseMemoryService, query: str, *, app: str = "shop_app", user: str = ANN
) -> list[str]:
    answer = await service.search_memory(app_name=app, user_id=user, query=query)
    return [str(entry.content.parts[0].text) for entry in answer.memories]


@pytest.fixture
def service(shop: TenantMemory) -> ErasableMemoryService:
    return ErasableMemoryService(shop)


async def test_it_finds_what_was_said_and_by_whom(service: ErasableMemoryService) -> None:
    assert isinstance(service, BaseMemoryService)
    events = (event("I like Python"), event(None, "e2"), event("So do I", "e3", "model"))
    await service.add_session_to_memory(session(*events))
    answer = await service.search_memory(app_name="shop_app", user_id=ANN, query="python?")
    [entry] = answer.memories
    assert (entry.content.role, entry.author) == ("user", "user")
    assert entry.content.parts[0].text == "I like Python"
    assert entry.timestamp == "1970-01-01T03:25:45+00:00"
    assert await found(service, "so") == ["So do I"]
    for nothing in ("java", "", "  \n", "?!"):
        assert await found(service, nothing) == []


async def test_the_parts_of_an_event_are_one_memory(service: ErasableMemoryService) -> None:
    parts = [
        types.Part(text="first"),
        types.Part(function_call=types.FunctionCall(name="f", args={"phone": "98450 12345"})),
        types.Part(inline_data=types.Blob(data=b"x" * 100_000, mime_type="image/png")),
        types.Part(text="second, call 98450 12345"),
    ]
    whole = event("x")
    whole.content = types.Content(role="user", parts=parts)
    await service.add_session_to_memory(session(whole))
    assert await found(service, "second") == ["first\nsecond, call [PHONE:****2345]"]


async def test_adding_again_adds_what_is_new(service: ErasableMemoryService, shop: Any) -> None:
    one, two, three = event("note one", "e1"), event("note two", "e2"), event("note three", "e3")
    await service.add_session_to_memory(session(one, two))
    await service.add_session_to_memory(session(one, two))
    await service.add_session_to_memory(session(one, two, three))
    changed = event("note changed", "e1")
    delta = {"app_name": "shop_app", "user_id": ANN, "session_id": "s1"}
    await service.add_events_to_memory(events=[changed, one, three], **delta)
    assert sorted(await found(service, "note")) == ["note one", "note three", "note two"]
    await service.add_session_to_memory(session(one, name="s2"))
    await service.add_session_to_memory(session())
    assert len(await shop.records(limit=10)) == 4


async def test_a_session_that_is_added_twice_at_once_is_there_once(
    service: ErasableMemoryService, shop: TenantMemory
) -> None:
    events = [event(f"note {number}", f"e{number}") for number in range(10)]
    await asyncio.gather(*(service.add_session_to_memory(session(*events)) for _ in range(4)))
    assert len(await shop.records(limit=100)) == 10


class Counting:
    """An embedder that counts what it is shown."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.texts += texts
        return [[1.0, 2.0] for _ in texts]


async def test_what_is_there_is_not_embedded_again() -> None:
    embedder = Counting()
    plugged: Embedder = embedder
    shop = Memory(embedder=plugged).for_tenant("shop")
    for _ in range(2):
        await ErasableMemoryService(shop).add_session_to_memory(session(event("once")))
    assert embedder.texts == ["once"]


async def test_apps_users_and_tenants_do_not_meet(memory: Memory) -> None:
    shop = ErasableMemoryService(memory.for_tenant("shop"))
    bank = ErasableMemoryService(memory.for_tenant("bank"))
    by_app = ErasableMemoryService(lambda app_name: memory.for_tenant(f"tenant-of-{app_name}"))
    apart = [(shop, "a", "b:c"), (shop, "a:b", "c"), (shop, "a", ANN), (shop, "b", ANN)]
    apart += [(bank, "a", ANN), (by_app, "a", ANN), (by_app, "b", ANN)]
    for number, (service, app, user) in enumerate(apart):
        told = session(event(f"secret {number}"), app=app, user=user)
        await service.add_session_to_memory(told)
    for number, (service, app, user) in enumerate(apart):
        assert await found(service, "secret", app=app, user=user) == [f"secret {number}"]
    # One app's memories are not another's to delete, nor one user's.
    answer = await shop.search_memory(app_name="a", user_id=ANN, query="secret")
    memory_id = answer.memories[0].id
    await shop.delete_memory(app_name="b", user_id=ANN, memory_id=memory_id)
    await shop.delete_memory(app_name="a", user_id="b:c", memory_id=memory_id)
    await bank.delete_memory(app_name="a", user_id=ANN, memory_id=memory_id)
    assert await found(shop, "secret", app="a") == ["secret 2"]


async def test_what_was_derived_is_found_in_the_app_it_was_derived_for(
    service: ErasableMemoryService, shop: TenantMemory
) -> None:
    await service.add_session_to_memory(session(event("okapi one"), event("okapi two", "e2")))
    sources = await shop.records(subject_keys=ANN)
    kind = service.kind("shop_app")
    await shop.derive(kind=kind, text="okapi in brief", sources=sources, record_key="digest")
    await shop.derive(kind="summary", text="okapi for others", sources=sources)
    assert sorted(await found(service, "okapi")) == ["okapi in brief", "okapi one", "okapi two"]
    assert await found(service, "okapi", app="other_app") == []
    await shop.forget(subject_key=ANN, kinds=kind)
    assert await found(service, "okapi") == []


async def neighbours(service: ErasableMemoryService, bank: ErasableMemoryService) -> None:
    await service.add_session_to_memory(session(event("zebra"), user=BOB))
    await bank.add_session_to_memory(session(event("zebra")))


async def rows(superuser: Any) -> set[str]:
    """Every row that holds content, as it is."""
    tenants = [await image(superuser, tenant) for tenant in ("shop", "bank")]
    kept = ("records", "record_subjects", "provenance", "postings")
    return {row for tables in tenants for name in kept for row in tables[name]}


@pytest.mark.parametrize("erasure", ["delete", "forget"])
async def test_an_erasure_leaves_nothing_of_it_nor_of_what_was_made_from_it(
    stored: Memory, superuser: Any, erasure: str
) -> None:
    shop = stored.for_tenant("shop")
    service = ErasableMemoryService(shop)
    await neighbours(service, ErasableMemoryService(stored.for_tenant("bank")))
    before = await rows(superuser)
    whole = session(event("okapi"))
    await service.add_session_to_memory(whole)
    [told] = await shop.records(subject_keys=ANN)
    await shop.derive(kind="summary", text="okapi in brief", sources=told)
    # A newer version, as a host may write: all of them are the memory.
    await shop.supersede(record_id=told.record_id, text="okapi again")
    if erasure == "forget":
        await shop.forget(subject_key=ANN)
        left = []
    else:
        answer = await service.search_memory(app_name="shop_app", user_id=ANN, query="okapi")
        for entry in answer.memories:
            await service.delete_memory(app_name="shop_app", user_id=ANN, memory_id=entry.id)
        await service.add_session_to_memory(whole)
        left = await shop.records(subject_keys=ANN)
        # What keeps it from coming back with its session.
        assert {(record.text, record.kind) for record in left} == {
            ("deleted", f"{service.kind('shop_app')}-deleted")
        }
    assert await found(service, "okapi") == []
    assert await mentions(superuser, "okapi") == {}
    assert before <= await rows(superuser)
    if not left:
        assert await rows(superuser) == before
    assert await found(service, "zebra", user=BOB) == ["zebra"]
    assert await broken_rules(superuser) == {}
    if erasure == "delete":
        await shop.forget(subject_key=ANN)
        assert await rows(superuser) == before


async def test_somebody_who_is_barred_does_not_come_back_with_a_session(
    service: ErasableMemoryService, shop: TenantMemory
) -> None:
    await service.add_session_to_memory(session(event("okapi")))
    await shop.forget(subject_key=ANN, block_future=True)
    with pytest.raises(SubjectBlockedError):
        await service.add_session_to_memory(session(event("okapi")))
    assert await found(service, "okapi") == []
    await service.add_session_to_memory(session(event("okapi"), user=BOB))
    assert await found(service, "okapi", user=BOB) == ["okapi"]


async def test_entries_are_added_as_they_are(service: ErasableMemoryService) -> None:
    content = types.Content(role="model", parts=[types.Part(text="prefers tea")])
    entry = MemoryEntry(
        content=content,
        id="m1",
        author="agent",
        timestamp="2026-01-02T03:04:05+00:00",
        custom_metadata={"source": "form"},
    )
    who = {"app_name": "shop_app", "user_id": ANN}
    for _ in range(2):
        await service.add_memory(memories=[entry], custom_metadata={"by": "us"}, **who)
    await service.add_memory(memories=[MemoryEntry(content=content)], **who)
    answer = await service.search_memory(query="tea", **who)
    assert len(answer.memories) == 2
    [stored] = [memory for memory in answer.memories if memory.author]
    assert stored == entry.model_copy(
        update={"id": stored.id, "custom_metadata": {"by": "us", "source": "form"}}
    )
    for wrong in ("yesterday", "2026-01-02T03:04:05"):
        late = entry.model_copy(update={"id": "m2", "timestamp": wrong})
        with pytest.raises(InvalidInputError) as refused:
            await service.add_memory(memories=[late], **who)
        assert wrong not in str(refused.value)


async def test_what_is_no_id_deletes_nothing(service: ErasableMemoryService) -> None:
    await service.add_session_to_memory(session(event("okapi")))
    for wrong in ("abc", "", "\0", "x" * 5_000, "00000000-0000-0000-0000-000000000000"):
        await service.delete_memory(app_name="shop_app", user_id=ANN, memory_id=wrong)
    assert await found(service, "okapi") == ["okapi"]


@pytest.mark.parametrize("moment", [float("inf"), float("-inf"), float("nan"), -1e14, 1e300])
async def test_a_time_that_is_none_is_refused_by_name(
    service: ErasableMemoryService, shop: TenantMemory, moment: float
) -> None:
    wrong = event("okapi", "e2").model_copy(update={"timestamp": moment})
    with pytest.raises(InvalidInputError, match=r"^events\.1\.timestamp"):
        await service.add_session_to_memory(session(event("zebra"), wrong))
    assert await shop.records() == []
    await service.add_session_to_memory(session(event("zebra")))
    assert await found(service, "zebra") == ["zebra"]


async def test_an_event_that_is_too_long_is_left_out_and_counted(
    service: ErasableMemoryService, caplog: pytest.LogCaptureFixture
) -> None:
    events = (event("okapi"), event("secret " + "\u00e9" * 32_768, "e2"), event("zebra", "e3"))
    await service.add_session_to_memory(session(*events))
    assert await found(service, "okapi zebra secret") in (["okapi", "zebra"], ["zebra", "okapi"])
    assert [
        record.getMessage() for record in caplog.records if "64 KiB" in record.getMessage()
    ] == ["events over 64 KiB were left out: 1"]
    long = MemoryEntry(content=types.Content(parts=[types.Part(text="x" * 65_537)]))
    with pytest.raises(InvalidInputError):
        await service.add_memory(app_name="shop_app", user_id=ANN, memories=[long])


class Scripted(BaseLlm):
    """A model that repeats what it was told and keeps what it was sent."""

    model: str = "scripted"
    sent: list[str] = []  # noqa: RUF012 - a field of pydantic's

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        texts = [p.text for c in llm_request.contents for p in c.parts or () if p.text]
        self.sent.append("\n".join(texts))
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="noted")]))


async def remember_session(callback_context: CallbackContext) -> None:
    await callback_context.add_session_to_memory()


async def test_their_runner_preloads_what_an_earlier_session_said(
    service: ErasableMemoryService, shop: TenantMemory
) -> None:
    model = Scripted()
    agent = Agent(
        name="clerk",
        model=model,
        tools=[PreloadMemoryTool()],
        after_agent_callback=remember_session,
    )
    runner = Runner(
        app_name="shop_app",
        agent=agent,
        session_service=InMemorySessionService(),
        memory_service=service,
        auto_create_session=True,
    )
    for name, text in (("s1", "my okapi is called Zed"), ("s2", "what is my okapi called?")):
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id=ANN, session_id=name, new_message=message):
            pass
    assert "called Zed" not in model.sent[0].replace("my okapi is called Zed", "", 1)
    assert "user: my okapi is called Zed" in model.sent[1]
    await shop.forget(subject_key=ANN)
    assert await found(service, "okapi") == []
    await runner.close()


def test_the_example_of_the_class_runs() -> None:
    assert examples(ErasableMemoryService)
    run_examples(ErasableMemoryService, "ErasableMemoryService", {})


def test_the_page_shows_what_works(database: Database) -> None:
    [block] = Page(ROOT / "docs" / "agents.md").blocks("py")
    run(block.code, name="agents.md", line=block.line, names=names_for(database))
