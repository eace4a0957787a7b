"""What a span, a metric and a line of a log never hold, and an exporter that is broken."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from memory import Finding, MemoryServiceError, PartialErasureError, TenantMemory, telemetry
from plugged import Odd

ANN = "customer:ann"
PLANTED = "planted-7f3a"


class PlantedError(Exception):
    """A host's error that says too much."""

    receipt = sqlstate = PLANTED


class Hostile:
    """A redactor, an embedder and an index that try to get a value into what is said."""

    name = "index"
    model = PLANTED
    fails = False

    def redact(self, text):
        finding = Finding(kind=f"{PLANTED} {text}", start=0, end=0, replacement=text)
        return text, [finding]

    async def embed(self, texts):
        if self.fails:
            raise PlantedError(PLANTED, *texts)
        return [[1.0] for _ in texts]

    async def purge(self, artefact_ids):
        raise type(f"Planted {PLANTED}", (Exception,), {})(PLANTED)


async def test_no_value_is_in_a_span_a_metric_or_a_log_line(memory_factory, observed, logs):
    hostile = Hostile()
    options = {"redactor": hostile, "embedder": hostile, "indexes": [hostile]}
    memory = memory_factory(subject_pepper=PLANTED, **options)
    tenant: TenantMemory = memory.for_tenant(f"tenant {PLANTED}")
    planted = {"text": f"text {PLANTED}", "subject_keys": f"person {PLANTED}"}
    told = await tenant.remember(
        **planted, record_key=PLANTED, metadata={PLANTED: PLANTED}, kind="planted-7f3a"
    )
    await tenant.remember_many(items=[planted])
    await tenant.derive(kind="made", text=PLANTED, sources=told, artefacts=[("index", PLANTED)])
    await tenant.register_artefact(adapter=f"x {PLANTED}", artefact_id=PLANTED, sources=told)
    await tenant.recall(text=PLANTED, subject_keys=f"person {PLANTED}", metadata={PLANTED: 1})
    assert [entry async for entry in tenant.export(subject_key=f"person {PLANTED}")]
    await tenant.lineage(subject_key=f"person {PLANTED}")
    with pytest.raises(MemoryServiceError):
        await tenant.forget(subject_key=f"person {PLANTED}", reason=PLANTED)
    with pytest.raises(PartialErasureError):
        await tenant.forget(subject_key=f"person {PLANTED}")
    hostile.fails = True
    with pytest.raises(PlantedError):
        await tenant.recall(text=PLANTED)
    with pytest.raises(MemoryServiceError):
        await tenant.expire(older_than=timedelta(days=1), kinds=[PLANTED.upper()])
    assert len(observed.spans) == 11
    assert observed.total("redactions", kind="other") >= 3
    lines = [record.getMessage() for record in logs.records if record.name == "memory.calls"]
    assert len(lines) == len(observed.spans)
    assert any(line.startswith("forget ") and "scope=subject" in line for line in lines)
    ours = "\n".join(
        record.getMessage() for record in logs.records if record.name.startswith("memory")
    )
    for said in (observed.everything(), ours):
        assert PLANTED not in said
        assert "person" not in said


FAULTS = [RuntimeError, SystemExit, asyncio.CancelledError, GeneratorExit, Odd]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("broken", ["tracer", "meter"])
async def test_a_broken_exporter_hides_no_receipt(acme, observed, monkeypatch, logs, broken, fault):
    def fail(*args, **kwargs):
        raise fault(PLANTED)

    instruments = telemetry._instruments
    target = instruments.tracer if broken == "tracer" else instruments.duration
    monkeypatch.setattr(target, "start_span" if broken == "tracer" else "record", fail)
    await acme.remember(text="x", subject_keys=ANN)
    receipt = await acme.forget(subject_key=ANN)
    assert receipt.counts.records == 1
    said = [record.getMessage() for record in logs.records]
    assert said.count(f"telemetry failed: {fault.__name__}") == 2
    assert PLANTED not in "\n".join(said)


async def test_an_interrupt_from_the_keyboard_is_not_swallowed(acme, observed, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(telemetry._instruments.duration, "record", interrupted)
    call = acme.remember(text="x", subject_keys=ANN)
    with pytest.raises(KeyboardInterrupt):
        await call
