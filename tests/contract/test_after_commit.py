"""What fails once an erasure has committed, the host's clock or event sink, hides no receipt."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from memory import ConflictError
from plugged import Odd, told

pytestmark = pytest.mark.usefixtures("bystander")

ANN = "customer:ann"
SOON = timedelta(seconds=0.2)


class Clock:
    """A host's clock, which stops when the index has been asked."""

    def __init__(self, fault):
        self.fault, self.stopped = fault, False

    def __call__(self):
        if self.stopped and isinstance(self.fault, Exception):
            raise self.fault
        return self.fault if self.stopped else datetime.now(UTC)


@pytest.mark.parametrize("fault", [RuntimeError("secret"), datetime(2026, 1, 1), None])  # noqa: DTZ001
async def test_a_clock_that_fails_after_the_commit_hides_no_receipt(
    memory_factory, plugs, logs, fault
):
    clock, sink = Clock(fault), plugs.Sink()

    class Stopping(plugs.Index):
        async def purge(self, artefact_ids):
            clock.stopped = True
            return await super().purge(artefact_ids)

    memory = memory_factory(indexes=[Stopping("odd")], clock=clock, events=sink)
    acme = memory.for_tenant("acme")
    await told(acme, ANN, odd="a")
    receipt = await acme.forget(subject_key=ANN)
    assert receipt.complete
    assert receipt.completed_at >= receipt.erased_at
    assert [event.complete for event in sink.events] == [True]
    assert "secret" not in logs.text


@pytest.mark.parametrize(
    "fault", [RuntimeError("secret"), asyncio.CancelledError("secret"), Odd("secret"), None]
)
async def test_a_sink_that_fails_hides_no_receipt(memory_factory, plugs, logs, fault):
    class Sink(plugs.Sink):
        async def publish(self, event):
            await super().publish(event)
            if fault is None:
                await asyncio.sleep(60)
            raise fault

    sink = Sink()
    acme = memory_factory(events=sink, purge_timeout=SOON).for_tenant("acme")
    record = await told(acme, ANN)
    assert (await acme.forget(subject_key=ANN)).counts.memories == 1
    assert await acme.get(record_id=record.record_id) is None
    assert len(sink.events) == 1
    assert f"the event sink failed: {type(fault).__name__ if fault else 'TimeoutError'}" in (
        logs.text
    )
    assert "secret" not in logs.text


async def test_a_finished_call_publishes_one_event_and_a_refused_one_none(memory_factory, plugs):
    sink = plugs.Sink()
    acme = memory_factory(events=sink).for_tenant("acme")
    record = await told(acme, ANN)
    await acme.forget(subject_key=ANN, dry_run=True)
    with pytest.raises(ConflictError):
        await acme.forget(subject_key=ANN, expect="0" * 64)
    assert sink.events == []
    await acme.forget_record(record_id=record)
    await acme.forget(subject_key=ANN)
    assert [event.memories for event in sink.events] == [1, 0]
