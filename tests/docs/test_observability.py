"""What the page of telemetry lists is what is emitted, as a host that wires it sees it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "observability.md")
SCOPE = {"otel_scope_name", "otel_scope_version", "otel_scope_schema_url"}

HOST = """
import asyncio
import socket
import urllib.request

from memory import InMemoryStore, LegalHoldError, Memory, PartialErasureError, telemetry


class Index:
    name = "vectors"
    broken = True

    async def purge(self, artefact_ids):
        if self.broken:
            raise ConnectionError
        return len(artefact_ids)


async def main():
    index = Index()
    shop = Memory(subject_pepper="pepper", indexes=[index]).for_tenant("shop")
    told = await shop.remember(text="98450 12345", subject_keys="ana")
    await shop.derive(kind="summary", text="one", sources=told, artefacts=[("vectors", "a")])
    await shop.recall(text="one")
    await shop.recall(text="two")
    try:
        await shop.forget(subject_key="ana")
    except PartialErasureError:
        index.broken = False
    await shop.purge_outstanding()
    telemetry.retried()


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
observe(port)
asyncio.run(main())
with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
    print(answer.read().decode())
"""


def exposed(text: str) -> dict[str, tuple[str, set[str]]]:
    """Each family of ours: its type, and the labels that are on it."""
    kinds = dict(re.findall(r"^# TYPE (erasable_memory\w+) (\w+)$", text, re.MULTILINE))
    found = {}
    for name, kind in kinds.items():
        labels = re.findall(rf"^{name}(?:_\w+)?{{(.*)}} ", text, re.MULTILINE)
        names = {label for line in labels for label in re.findall(r"(\w+)=", line)}
        found[name] = (kind, names - SCOPE - {"le"})
    return found


def test_the_metrics_of_the_page_are_those_a_host_exports(tmp_path: Path) -> None:
    [wiring] = [block for block in PAGE.blocks("python") if "def observe" in block.code]
    program = tmp_path / "host.py"
    program.write_text(f"{wiring.code}\n{HOST}")
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=60
    )
    rows = re.findall(
        r"^\| `(erasable_memory\w+)` \| (\w+) \| \w+ \| ([^|]*) \|", PAGE.text, re.MULTILINE
    )
    listed = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert len(listed) == 10
    retried = {"erasable_memory_retries_total": ("counter", {"db_operation_name"})}
    # Outside a verb a retry has no label.
    assert exposed(done.stdout) | retried == listed


def test_an_alert_names_metrics_that_there_are() -> None:
    [alerts] = PAGE.blocks("promql")
    code = re.sub(r"by \([^)]*\)", "", alerts.code)
    named = set(re.findall(r"\b((?:erasable_)?memory_\w+)(?:{|\[| >|\))", code))
    listed = set(re.findall(r"^\| `(erasable_memory\w+)`", PAGE.text, re.MULTILINE))
    listed |= {f"{name}_{part}" for name in listed for part in ("count", "bucket", "sum")}
    [job] = [block for block in PAGE.blocks("python") if "Gauge(" in block.code]
    gauges = set(re.findall(r'Gauge\("(\w+)"', job.code))
    assert len(named) >= 8
    assert named <= listed | gauges


def logged() -> set[tuple[str, str, str]]:
    """Every line the package can log: logger, level and message, read from the source."""
    found = set()
    for file in (ROOT / "memory").rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        loggers = {
            node.targets[0].id: node.value.args[0].value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == "getLogger"
            and isinstance(node.value.args[0], ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = node.func.value
                if isinstance(of, ast.Name) and of.id in loggers and node.func.attr in LEVELS:
                    [message, *_] = node.args
                    assert isinstance(message, ast.Constant), "messages are constants"
                    line = (loggers[of.id], node.func.attr.upper(), message.value)
                    found.add(line)
    return found


LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def test_the_log_lines_of_the_page_are_those_of_the_source() -> None:
    rows = re.findall(r"^\| `(memory[\w.]*)` \| ([A-Z]+) \| `([^`]+)` \|", PAGE.text, re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == logged()
