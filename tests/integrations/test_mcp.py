"""The tools of the MCP server: what they say, refuse and answer, and nothing that they quote."""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

import pytest
from mcp import Client

from memory import InMemoryStore, Memory
from memory.integrations.mcp_server import _content_free, memory_server
from stores import image
from toolcalls import ANN, BOB, WRONG, call, refused


async def test_the_tools_say_what_they_take_and_what_they_do() -> None:
    async with Client(memory_server(Memory().for_tenant("shop"))) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {
        "remember",
        "recall",
        "export",
        "forget_dry_run",
        "forget",
        "erasure_history",
    }
    required = {name: tool.input_schema.get("required", []) for name, tool in tools.items()}
    assert required == {
        "remember": ["text", "subject_keys"],
        "recall": ["subject_keys"],
        "export": ["subject_key"],
        "forget_dry_run": ["subject_key"],
        "forget": ["subject_key", "expect"],
        "erasure_history": [],
    }
    for tool in tools.values():
        assert tool.input_schema["additionalProperties"] is False
        assert not {"tenant", "tenant_key", "url"} & tool.input_schema["properties"].keys()
        assert tool.output_schema
        assert tool.description
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.read_only_hint is (tool.name not in {"remember", "forget"})
    assert tools["forget"].annotations.destructive_hint is True
    assert tools["remember"].annotations.destructive_hint is False


async def test_what_is_wrong_is_named_by_field_and_never_quoted(
    stored: Memory, superuser: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(memory_server(stored.for_tenant("shop"))) as client:
        await call(client, "remember", text="kept", subject_keys=[ANN])
        before = await image(superuser, "shop")
        for tool, arguments, field in WRONG:
            message = await refused(client, tool, **arguments)
            assert field in message, (tool, field, message)
            assert "secret" not in message.lower()
        assert await image(superuser, "shop") == before
        assert len((await call(client, "recall", subject_keys=[ANN]))["hits"]) == 1
    assert "secret" not in caplog.text.lower()


async def test_a_server_for_one_person_refuses_every_other(memory: Memory) -> None:
    server = memory_server(memory.for_tenant("shop"), subject_keys=ANN)
    async with Client(server) as client:
        await call(client, "remember", text="of Ann", subject_keys=[ANN])
        for tool, arguments in (
            ("remember", {"text": "t", "subject_keys": [ANN, BOB]}),
            ("recall", {"subject_keys": [BOB]}),
            ("export", {"subject_key": BOB}),
            ("forget_dry_run", {"subject_key": BOB}),
            ("forget", {"subject_key": BOB, "expect": "0" * 64}),
            ("erasure_history", {"subject_key": BOB}),
            ("erasure_history", {}),
        ):
            assert "this server is for" in await refused(client, tool, **arguments)
        assert len((await call(client, "recall", subject_keys=[ANN]))["hits"]) == 1
        assert (await call(client, "erasure_history", subject_key=ANN))["tombstones"] == []


async def test_a_server_for_one_person_counts_the_others_and_names_none(memory: Memory) -> None:
    shop = memory.for_tenant("shop")
    await shop.remember(text="okapi of two", subject_keys=[ANN, BOB])
    for people, named, others in ((ANN, [ANN], 1), (None, [ANN, BOB], 0)):
        async with Client(memory_server(shop, subject_keys=people)) as client:
            [hit] = (await call(client, "recall", subject_keys=[ANN]))["hits"]
            assert (hit["subject_keys"], hit["other_people"]) == (named, others)
            plan = await call(client, "forget_dry_run", subject_key=ANN)
            assert (plan["bystanders"], plan["bystander_keys"]) == (1, named[1:])
            [entry] = (await call(client, "export", subject_key=ANN))["entries"]
            assert (entry["subject_key"], entry["other_people"]) == (ANN, 1)
            assert (BOB in str([hit, plan])) == (people is None)
            assert BOB not in str(entry)


async def test_a_server_that_only_reads_offers_nothing_else() -> None:
    shop = Memory(InMemoryStore(), subject_pepper="pepper").for_tenant("shop")
    await shop.remember(text="kept", subject_keys=ANN)
    async with Client(memory_server(shop, read_only=True)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"recall", "export", "forget_dry_run", "erasure_history"}
        plan = await call(client, "forget_dry_run", subject_key=ANN)
        await refused(client, "forget", subject_key=ANN, expect=plan["closure"])
        assert len((await call(client, "recall", subject_keys=[ANN]))["hits"]) == 1


async def test_an_erasure_under_hold_answers_that_it_is_not_complete(stored: Memory) -> None:
    shop = stored.for_tenant("shop")
    await shop.remember(text="kept", subject_keys=ANN)
    await shop.hold(subject_key=ANN)
    async with Client(memory_server(shop)) as client:
        plan = await call(client, "forget_dry_run", subject_key=ANN)
        done = await call(client, "forget", subject_key=ANN, expect=plan["closure"])
    assert (done["complete"], done["deferred"], done["held"], done["memories"]) == (
        False,
        True,
        1,
        0,
    )


class Leaking:
    """An embedder whose error quotes what it was given."""

    async def embed(self, texts: list[str]) -> list[list[float]]:
        raise RuntimeError(f"cannot embed {texts}")


async def test_an_unforeseen_error_is_named_by_its_class(caplog: pytest.LogCaptureFixture) -> None:
    shop = Memory(embedder=Leaking(), subject_pepper="pepper").for_tenant("shop")
    async with Client(memory_server(shop)) as client:
        told = await refused(client, "remember", text="a secret", subject_keys=[ANN])
    assert told == "unforeseen: RuntimeError"
    assert "secret" not in caplog.text
    assert "a tool failed: RuntimeError" in caplog.text


@pytest.mark.parametrize(
    ("name", "said"),
    [("mcp.shared.dispatcher", r"mcp\.shared\.dispatcher:\d+ ValueError"), ("memory", ".*Value.*")],
)
def test_a_line_that_is_not_ours_says_where_and_what_class_alone(name: str, said: str) -> None:
    try:
        raise ValueError("a secret")
    except ValueError:
        raised = sys.exc_info()
    record = logging.LogRecord(
        name, logging.ERROR, "file", 7, "%r raised ValueError", ("secret",), raised
    )
    assert _content_free(record)
    lines = logging.Formatter().format(record)
    assert re.match(said, lines)
    assert ("secret" in lines) == (name == "memory")
