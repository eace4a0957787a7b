"""The MCP server as a process: its whole life over the SDK's own client, its start and its end."""

from __future__ import annotations

import asyncio
import json
import os
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

from memory import Memory, PostgresStore
from memory.integrations.mcp_server import main
from memory.integrations.mcp_tools import ANNOTATIONS
from pages import Page
from servers import ROOT, Database
from stores import broken_rules, image, mentions
from toolcalls import ANN, BOB, WRONG, call, refused

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


async def rows(superuser: Any) -> dict[str, list[str]]:
    """What the neighbours hold: another tenant, and another person of this one."""
    found = await image(superuser, "bank")
    here = await image(superuser, "shop")
    found["neighbour"] = [row for row in here["records"] if "zebra" in row]
    return found


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
