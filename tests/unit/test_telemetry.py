"""Telemetry without its package, with the API alone, and wired as a host would."""

from __future__ import annotations

import ast
import asyncio
import inspect
import logging
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from memory import Memory, TenantMemory, telemetry
from memory.outcomes import outcome
from memory.service.reading import Reading


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
import asyncio, logging
from memory import InMemoryStore, Memory, telemetry

async def main():
    memory = Memory(subject_pepper="pepper")
    await memory.remember("planted", text="planted", subject_keys="planted")
    receipt = await memory.forget("planted", subject_key="planted")
    assert receipt.counts.records == 1

assert telemetry._instruments is None
asyncio.run(main())
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(name)s %(message)s")
asyncio.run(main())
"""


def test_without_the_package_every_verb_works_and_is_logged() -> None:
    lines = [line for line in run(WITHOUT).splitlines() if line.startswith("memory.calls")]
    assert len(lines) == 2
    assert lines[0].startswith("memory.calls remember 0.")
    assert " reason=subject_request scope=subject memories=1 derived=0 " in lines[1]
    assert "planted" not in "".join(lines)


LATE = """
import asyncio
from memory import Memory
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
asyncio.run(Memory().get("acme", record_id="0190a9c0-0000-7000-8000-000000000000"))
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
asyncio.run(Memory().records("acme"))
(span,) = exporter.get_finished_spans()
[resource] = reader.get_metrics_data().resource_metrics
[scope] = resource.scope_metrics
print(span.name, span.instrumentation_scope.name, scope.scope.name, scope.scope.version)
"""


def test_providers_that_the_host_sets_later_are_used() -> None:
    release = metadata.version("erasable-memory")
    assert run(LATE).split() == ["records", "erasable-memory", "erasable-memory", release]


def test_the_api_package_reaches_nothing_outside_the_process() -> None:
    files = metadata.files("opentelemetry-api") or []
    sources = [Path(str(file.locate())) for file in files if file.name.endswith(".py")]
    assert len(sources) > 20
    found = set()
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(f"{node.module}")
    assert "contextvars" in found
    ways_out = {"socket", "ssl", "subprocess", "http", "urllib.request", "ctypes", "asyncio"}
    assert not ways_out & (found | {name.partition(".")[0] for name in found})


def test_what_is_observed_keeps_its_signature_and_its_documentation() -> None:
    assert inspect.signature(Memory.get) == inspect.signature(Reading.get)
    assert Memory.get.__doc__ == Reading.get.__doc__
    assert inspect.iscoroutinefunction(Memory.get)
    assert "tenant_key" not in inspect.signature(TenantMemory.get).parameters


def test_a_log_line_is_made_only_where_somebody_listens(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "_instruments", None)
    asked = []
    monkeypatch.setattr(telemetry, "outcome", lambda answer: asked.append(answer) or outcome(0))
    asyncio.run(Memory().records("acme"))
    assert (asked, caplog.records) == ([], [])
    caplog.set_level(logging.DEBUG, "memory.calls")
    asyncio.run(Memory().records("acme"))
    assert len(asked) == 1
    assert [record.name for record in caplog.records] == ["memory.calls"]
