"""The MCP server, by the SDK's own client over a real process, and what it leaves."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client

from memory import InMemoryStore, Memory, PostgresStore
from memory.integrations.mcp_server import _content_free, main, memory_server
from memory.integrations.mcp_tools import ANNOTATIONS
from pages import Page
from servers import ROOT, Database
from stores import broken_rules, image, mentions

ANN, BOB = "customer:ann", "customer:bob"
# What the console script does.
COMMAND = [sys.executable, "-c", "from memory.integrations.mcp_server import main; main()"]


def environment(database: Database, **more: str) -> dict[str, str]:
    given = {k: v for k, v in os.environ.items() if not k.startswith("MEMORY_")}
    return {
        **given,
        "PYTHONPATH": str(ROOT),
        "MEMORY_DATABASE_URL": database.app_url,
        "MEMORY_SUBJECT_PEPPER": "pepper",
        **more,
    }


def configured() -> dict[str, Any]:
    """What the page tells a client to start."""
    [block] = Page(ROOT / "docs" / "agents.md").blocks("json")
    server: dict[str, Any] = json.loads(block.code)["mcpServers"]["memory"]
    return server


def test_the_page_starts_what_is_installed_with_what_it_reads(database: Database) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts[Path(configured()["command"]).name] == "memory.integrations.mcp_server:main"
    assert configured()["env"].keys() == {
        name for name in environment(database) if name.startswith("MEMORY_")
    }


@asynccontextmanager
async def serving(database: Database, log: Path) -> AsyncIterator[Client]:
    """A client of a server process of its own; what the process logs is in the file."""
    parameters = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], *configured()["args"]],
        env=environment(database),
    )
    with log.open("w") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    # For whoever reads the text it is the same.
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert answer.structured_content is None
    [content] = answer.content
    return str(content.text)


async def rows(superuser: Any) -> dict[str, list[str]]:
    """What the neighbours hold: another tenant, and another person of this one."""
    found = await image(superuser, "bank")
    here = await image(superuser, "shop")
    found["neighbour"] = [row for row in here["records"] if "zebra" in row]
    return found


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("remember", {"text": "secret"}, "subject_keys"),
    ("remember", {"text": "secret", "subject_keys": []}, "subject_keys"),
    ("remember", {"text": "secret", "subject_keys": "secret"}, "subject_keys"),
    ("remember", {"text": "", "subject_keys": [ANN]}, "text"),
    ("remember", {"text": {"secret": 1}, "subject_keys": [ANN]}, "text"),
    ("remember", {"text": "secret\0", "subject_keys": [ANN]}, "text"),
    ("remember", {"text": "secret" * 20_000, "subject_keys": [ANN]}, "text"),
    ("remember", {"text": "t", "subject_keys": ["secret" * 400]}, "subject_keys.0"),
    ("remember", {"text": "t", "subject_keys": [ANN], "kind": "Secret!"}, "kind"),
    ("remember", {"text": "t", "subject_keys": [ANN], "metadata": ["secret"]}, "metadata"),
    ("remember", {"text": "t", "subject_keys": [ANN], "occurred_at": "secret"}, "occurred_at"),
    ("remember", {"text": "t", "subject_keys": [ANN], "occurred_at": "2026-01-01"}, "occurred_at"),
    ("remember", {"text": "t", "subject_keys": [ANN], "tenant_key": "secret"}, "nothing else"),
    ("remember", {"text": "t", "subject_keys": [ANN], "secret": "x"}, "nothing else"),
    ("recall", {"text": "secret"}, "subject_keys"),
    ("recall", {"subject_keys": [ANN], "limit": 1_001}, "limit"),
    ("recall", {"subject_keys": [ANN], "limit": "secret"}, "limit"),
    ("forget", {"subject_key": ANN}, "expect"),
    ("forget", {"subject_key": ANN, "expect": "secret"}, "expect"),
    ("forget", {"subject_key": ANN, "expect": "0" * 64}, "dry run"),
    ("forget", {"subject_key": ""}, "subject_key"),
    ("export", {"subject_key": ANN, "skip": -1}, "skip"),
    ("secret", {}, "no such tool"),
]


async def at_once(client: Client) -> None:
    """Many calls at a time are all answered, each with its own answer."""
    keys = [f"customer:{number}" for number in range(24)]
    await asyncio.gather(
        *(call(client, "remember", text=f"of {key}", subject_keys=[key]) for key in keys)
    )
    plans = await asyncio.gather(*(call(client, "forget_dry_run", subject_key=k) for k in keys))
    await asyncio.gather(
        *(
            call(client, "forget", subject_key=key, expect=plan["closure"])
            for key, plan in list(zip(keys, plans, strict=True))[:12]
        ),
        *(call(client, "recall", subject_keys=[key]) for key in keys),
    )
    left = [await call(client, "recall", subject_keys=[key]) for key in keys]
    found = [[hit["text"] for hit in answer["hits"]] for answer in left]
    assert found == [[]] * 12 + [[f"of {key}"] for key in keys[12:]]


async def test_the_whole_life_over_a_process(
    database: Database, superuser: Any, stored: Memory, tmp_path: Path
) -> None:
    await stored.remember("bank", text="okapi of the bank", subject_keys=ANN)
    async with serving(database, tmp_path / "log") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(ANNOTATIONS)
        for tool, arguments, field in WRONG:
            assert field in await refused(client, tool, **arguments)
        for asked in (client.get_prompt("secret"), client.read_resource("memory://secret")):
            with pytest.raises(MCPError, match="there are no"):
                await asked
        told = await call(client, "remember", text="okapi at 98450 12345", subject_keys=[ANN])
        assert told["text"] == "okapi at [PHONE:****2345]"
        assert told["masked"] == {"phone_in": 1}
        both = {"text": "okapi and Bob", "subject_keys": [ANN, BOB], "metadata": {"order": 7}}
        await call(client, "remember", **both)
        await call(client, "remember", text="zebra", subject_keys=[BOB])
        await stored.derive("shop", kind="summary", text="okapi", sources=told["record_id"])
        before = await rows(superuser)
        found = await call(client, "recall", text="okapi Bob", subject_keys=[ANN], limit=2)
        assert found["strategy"] == "lexical"
        assert found["hits"][0]["text"] == "okapi and Bob"
        assert (found["hits"][0]["metadata"], len(found["hits"])) == ({"order": 7}, 2)
        assert (await call(client, "recall", subject_keys=["nobody"]))["hits"] == []
        held = await call(client, "export", subject_key=ANN, limit=2)
        rest = await call(client, "export", subject_key=ANN, limit=2, skip=2)
        assert (held["more"], rest["more"]) == (True, False)
        assert [len(held["entries"]), len(rest["entries"])] == [2, 1]
        plan = await call(client, "forget_dry_run", subject_key=ANN)
        assert (plan["memories"], plan["derived"], plan["bystander_keys"]) == (2, 1, [BOB])
        done = await call(client, "forget", subject_key=ANN, expect=plan["closure"])
        assert (done["memories"], done["derived"], done["complete"]) == (2, 1, True)
        assert (done["bystanders"], done["bystander_keys"]) == (1, [])
        history = await call(client, "erasure_history", subject_key=ANN)
        assert [stone["erasure_id"] for stone in history["tombstones"]] == [done["erasure_id"]]
        assert "shop" not in str(history)
        assert (await call(client, "export", subject_key=ANN))["entries"][0]["type"] == "tombstone"
        await at_once(client)
    shop = await image(superuser, "shop")
    assert [row for table in shop.values() for row in table if "okapi" in row or ANN in row] == []
    assert await mentions(superuser, "98450", "12345") == {}
    assert await rows(superuser) == before
    assert await broken_rules(superuser) == {}
    assert (tmp_path / "log").read_text() == ""


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


REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def test_a_client_that_goes_in_the_middle_of_calls_ends_the_server(database: Database) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--tenant", "shop"],
        env=environment(database),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(json.dumps(REQUEST).encode() + b"\n")
    process.stdin.flush()
    assert b"erasable-memory" in process.stdout.readline()
    arguments = {"text": "a secret", "subject_keys": [ANN]}
    for number in range(2, 40):
        params = {"name": "remember", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    # What the death of a client does to its ends of the pipes.
    process.stdout.close()
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_killed_client_ends_the_server(database: Database, tmp_path: Path) -> None:
    line = json.dumps(REQUEST).encode() + b"\n"
    program = (
        "import os, signal, subprocess, sys\n"
        f"server = subprocess.Popen({[*COMMAND, '--tenant', 'shop']!r}, stdin=subprocess.PIPE,"
        " stdout=subprocess.PIPE)\n"
        f"server.stdin.write({line!r}); server.stdin.flush()\n"
        "server.stdout.readline()\n"
        "print(server.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    client = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(database),
        stdout=subprocess.PIPE,
        timeout=60,
    )
    assert client.returncode == -9
    try:
        server = psutil.Process(int(client.stdout))
    except psutil.NoSuchProcess:
        return
    server.wait(timeout=30)


@pytest.mark.parametrize(
    ("missing", "code", "said"),
    [
        ("MEMORY_DATABASE_URL", 2, "MEMORY_DATABASE_URL"),
        ("MEMORY_SUBJECT_PEPPER", 2, "MEMORY_SUBJECT_PEPPER"),
        ("MEMORY_TENANT", 2, "MEMORY_TENANT"),
        ("pepper", 3, "pepper"),
    ],
)
def test_a_wrong_start_ends_at_once_and_says_why(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
    code: int,
    said: str,
) -> None:
    for name, value in environment(database, MEMORY_TENANT="shop").items():
        monkeypatch.setenv(name, value)
    if missing == "pepper":
        asyncio.run(claimed(database))
        monkeypatch.setenv("MEMORY_SUBJECT_PEPPER", "another secret")
    else:
        monkeypatch.delenv(missing)
    with pytest.raises(SystemExit) as ended:
        main([])
    output = capsys.readouterr()
    assert (ended.value.code, output.out) == (code, "")
    assert output.err.startswith("memory-mcp: ")
    assert said in output.err
    assert "another secret" not in output.err


async def claimed(database: Database) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        await memory.remember("shop", text="x", subject_keys=ANN)
