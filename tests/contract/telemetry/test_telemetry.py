"""Spans and metrics of the verbs: one each, with what was done and what went wrong."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import aclosing, suppress

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from memory import (
    Memory,
    MemoryServiceError,
    PartialErasureError,
    PostgresStore,
    RetryableError,
    UnknownRecordError,
)
from memory import database as borders
from observing import attributes

ANN, BOB = "customer:ann", "customer:bob"
# Nothing is awaited by them, or nothing of the store's.
UNOBSERVED = {"close", "for_tenant", "subject_fingerprint"}


async def every_verb(memory, operator):
    """Call each verb of ``Memory`` once, and return in which order."""
    acme = memory.for_tenant("acme")
    told = await acme.remember(text="Ann's number is 98450 12345", subject_keys=ANN)
    many = await acme.remember_many(items=[{"text": "x", "subject_keys": BOB}] * 3)
    made = await acme.derive(kind="summary", text="a summary", sources=told)
    await acme.supersede(record_id=many[0].record.record_id, text="y")
    await acme.relate(record_id=many[1].record.record_id, subject_keys="customer:cy")
    await acme.register_artefact(adapter="index", artefact_id="a", sources=made)
    await acme.recall(text="summary")
    await acme.get(record_id=made.record.record_id)
    await acme.history(record_key=made.record.record_key)
    await acme.records()
    await acme.lineage(subject_key=ANN)
    assert [entry async for entry in acme.export(subject_key=ANN)]
    await acme.forget(subject_key=ANN)
    await acme.forget_record(record_id=many[1].record.record_id)
    await acme.hold(subject_key=BOB)
    await operator.release(subject_key=BOB)
    await operator.readmit(subject_key=BOB)
    await acme.decisions()
    await acme.purge_outstanding()
    await acme.expire()
    await acme.forget_tenant(confirm="acme")
    await acme.erasure_history()
    await memory.capabilities()
    await memory.ready()
    return [
        "remember",
        "remember_many",
        "derive",
        "supersede",
        "relate",
        "register_artefact",
        "recall",
        "get",
        "history",
        "records",
        "lineage",
        "export",
        "forget",
        "forget_record",
        "hold",
        "release",
        "readmit",
        "decisions",
        "purge_outstanding",
        "expire",
        "forget_tenant",
        "erasure_history",
        "capabilities",
        "ready",
    ]


async def test_each_verb_is_one_span_and_one_duration(memory_factory, operator, plugs, observed):
    memory = memory_factory(indexes=[plugs.Index("index")])
    called = await every_verb(memory, operator)
    verbs = {name for name, _ in inspect.getmembers(Memory, inspect.isfunction) if name[0] != "_"}
    assert set(called) <= verbs
    # A new verb is observed too, or named above.
    assert {name for name in verbs if not hasattr(getattr(Memory, name), "__wrapped__")} == (
        UNOBSERVED
    )
    assert [span.name for span in observed.spans] == called
    system = observed.last.attributes["db.system.name"]
    assert system == ("postgresql" if hasattr(memory._store, "joined") else "in_memory")
    kind = SpanKind.INTERNAL if system == "in_memory" else SpanKind.CLIENT
    for span in observed.spans:
        assert (span.kind, span.parent, span.status.status_code) == (kind, None, StatusCode.UNSET)
        assert span.attributes["db.system.name"] == system
        assert span.attributes["db.operation.name"] == span.name
        assert observed.total("operation.duration", **{"db.operation.name": span.name}) >= 1
    assert observed.total("operation.duration") == len(called)
    said = {span.name: attributes(span) for span in observed.spans}
    assert said["remember"]["redactions"] == 1
    assert said["remember_many"]["db.operation.batch.size"] == 3
    assert said["recall"]["strategy"] == "lexical"
    assert said["recall"]["db.response.returned_rows"] == 1
    assert said["export"]["db.response.returned_rows"] == 2
    forget = said["forget"]
    assert (forget["memories"], forget["derived"], forget["purges_owed"]) == (1, 1, 1)
    assert (forget["scope"], forget["reason"], forget["complete"]) == (
        "subject",
        "subject_request",
        True,
    )


async def test_what_was_done_is_counted_and_a_dry_run_is_not(memory_factory, plugs, observed):
    index = plugs.Index("index", broken=True)
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    told = await acme.remember(text="98450 12345, a@example.org", subject_keys=ANN)
    await acme.derive(kind="summary", text="two", sources=told, artefacts=[("index", "a")])
    await acme.forget(subject_key=ANN, dry_run=True)
    assert observed.total("erasures") == 0
    assert attributes(observed.last)["dry_run"] is True
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    assert observed.total("erasures", outcome="outstanding", scope="subject") == 1
    assert observed.total("records.erased", origin="remembered") == 1
    assert observed.total("records.erased", origin="derived", reason="subject_request") == 1
    assert observed.total("purges.owed") == 1
    failed = {"index": "index", "error.type": "ConnectionError"}
    assert observed.total("purges.failed", **failed) == 1
    assert observed.total("purges.done") == 0
    index.broken = False
    await acme.purge_outstanding()
    assert observed.total("purges.done", index="index") == 1
    assert observed.total("redactions", kind="phone_in") == 1
    assert observed.total("redactions", kind="email") == 1
    await acme.remember(text="on Friday", subject_keys=BOB)
    await acme.derive(kind="summary", text="Friday", sources=await acme.records(subject_keys=BOB))
    await acme.recall(text="Friday")
    await acme.recall(text="nothing of the kind")
    assert observed.total("recall.hits", strategy="lexical") == 2
    assert observed.total("recall.empty", strategy="lexical") == 1
    took = {"db.operation.name": "recall", "strategy": "lexical"}
    assert observed.total("operation.duration", **took) == 2


async def test_a_failure_is_named_by_its_class_and_by_nothing_else(acme, memory, observed):
    async def failing(expected, call):
        with pytest.raises(MemoryServiceError) as caught:
            await call
        span = observed.last
        assert type(caught.value).__name__ == expected
        assert span.attributes["error.type"] == expected
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        assert span.events == ()
        assert observed.total("operation.duration", **{"error.type": expected}) == 1

    await failing("InvalidInputError", acme.remember(text="", subject_keys=ANN))
    await failing("TenantRequiredError", memory.recall("", text="x"))
    await failing("UnknownRecordError", acme.forget_record(record_id=str(UNKNOWN)))
    await acme.remember(text="x", subject_keys=ANN)
    await acme.hold(subject_key=ANN)
    await failing("LegalHoldError", acme.forget(subject_key=ANN))
    assert attributes(observed.last)["held"] == 1
    assert observed.total("erasures", outcome="held") == 1
    assert observed.total("records.erased") == 0
    # The allowed neighbour.
    await acme.recall(text="x")
    assert observed.last.status.status_code is StatusCode.UNSET
    assert "error.type" not in observed.last.attributes


UNKNOWN = "0190a9c0-0000-7000-8000-000000000000"


class Observing:
    """An embedder that opens a span of the host's, and can be made to hang."""

    model = "observing"

    def __init__(self, tracer):
        self.tracer = tracer
        self.hangs = asyncio.Event()
        self.hang = False

    async def embed(self, texts):
        with self.tracer.start_as_current_span("embedding"):
            self.hangs.set()
            if self.hang:
                await asyncio.sleep(60)
            return [[1.0] for _ in texts]


async def test_spans_nest_in_the_hosts_and_the_hosts_in_them(memory_factory, observed):
    embedder = Observing(observed.host)
    acme = memory_factory(embedder=embedder).for_tenant("acme")
    with observed.host.start_as_current_span("request") as request:
        await asyncio.gather(*(acme.remember(text="x", subject_keys=p) for p in (ANN, BOB)))
        assert trace.get_current_span() is request
        async with aclosing(acme.export(subject_key=ANN)) as stream:
            async for _ in stream:
                assert trace.get_current_span() is request
                break
        with suppress(UnknownRecordError):
            await acme.forget_record(record_id=UNKNOWN)
        assert trace.get_current_span() is request
    host = observed.named("request")
    ours = [span for span in observed.spans if span.name in ("remember", "export")]
    assert [span.parent.span_id for span in ours] == [host.context.span_id] * 3
    inner = [span.parent.span_id for span in observed.spans if span.name == "embedding"]
    assert sorted(inner) == sorted(span.context.span_id for span in ours[:2])
    # Who leaves a stream early has not failed.
    assert observed.named("export").status.status_code is StatusCode.UNSET
    assert {span.context.trace_id for span in observed.spans} == {host.context.trace_id}


async def test_a_cancelled_call_ends_its_span(memory_factory, observed):
    embedder = Observing(observed.host)
    embedder.hang = True
    acme = memory_factory(embedder=embedder).for_tenant("acme")
    task = asyncio.ensure_future(acme.remember(text="x", subject_keys=ANN))
    await embedder.hangs.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    span = observed.named("remember")
    assert span.end_time is not None
    assert span.attributes["error.type"] == "CancelledError"
    embedder.hang = False
    await acme.remember(text="x", subject_keys=ANN)
    assert observed.last.status.status_code is StatusCode.UNSET


async def test_a_transaction_that_is_begun_again_is_counted_for_its_verb(
    database, observed, monkeypatch
):
    conflicts = iter([RetryableError("planted"), RetryableError("planted")])
    bordered = borders._bordered

    async def conflicting(work):
        for error in conflicts:
            raise error
        return await bordered(work)

    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        await memory.remember("acme", text="x", subject_keys=BOB)
        assert observed.total("retries") == 0
        monkeypatch.setattr(borders, "_bordered", conflicting)
        await memory.forget("acme", subject_key=ANN)
    assert observed.total("retries", **{"db.operation.name": "forget"}) == 2
    assert attributes(observed.last)["retries"] == 2
    assert observed.last.status.status_code is StatusCode.UNSET
