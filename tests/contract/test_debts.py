"""What counts as a purge, what stays owed, and whom a failing index may not hurt."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest

from memory import ConflictError, InvalidInputError, PartialErasureError, UnknownSourceError

pytestmark = pytest.mark.usefixtures("bystander")

ANN, BOB = "customer:ann", "customer:bob"
SOON = timedelta(seconds=0.2)


class Odd(BaseException):
    """What no ``except Exception`` catches."""


class Index:
    """Answers as it is told to, and well once ``fault`` is None."""

    def __init__(self, name="odd", fault=None):
        self.name, self.fault, self.asked, self.ended = name, fault, [], 0
        self.called = asyncio.Event()

    async def purge(self, artefact_ids):
        self.asked.append(list(artefact_ids))
        self.called.set()
        match self.fault:
            case BaseException():
                raise self.fault
            case "hangs":
                try:
                    await asyncio.sleep(60)
                finally:
                    self.ended += 1
            case "hangs on":
                for _ in range(30):
                    try:
                        await asyncio.sleep(0.1)
                    except asyncio.CancelledError:
                        self.ended += 1
        return len(artefact_ids)


class Verified(Index):
    """Has ``present``, which gives the answer that is its fault."""

    async def purge(self, artefact_ids):
        self.asked.append(list(artefact_ids))
        return len(artefact_ids)

    async def present(self, artefact_ids):
        if isinstance(self.fault, BaseException):
            raise self.fault
        if self.fault == "hangs":
            await asyncio.sleep(60)
        return [] if self.fault is None else self.fault(artefact_ids)


class Unasked(Verified):
    """Raises when it is asked for ``present`` itself; plugging it in asks a few times too."""

    looks = 0

    @property
    def present(self):
        self.looks += 1
        if self.fault is not None and self.looks > 2:
            raise self.fault
        return self.answer

    async def answer(self, artefact_ids):
        return []


class Unreadable(Collection):
    """An answer that raises when it is read."""

    def __init__(self, asked):
        self.asked = asked

    def __contains__(self, item):
        return True

    def __len__(self):
        return 1

    def __iter__(self):
        raise LookupError(*self.asked)


class Unhashable(str):
    def __hash__(self):
        raise LookupError(self)


class Nameless(type):
    """A metaclass that has no name for its class."""

    @property
    def __name__(cls):
        raise LookupError("of Ann")


class UnnamedError(OSError, metaclass=Nameless):
    pass


FAULTS = {
    "an exception": (Index, ConnectionError("of Ann"), "ConnectionError"),
    "not found": (Index, KeyError("of Ann"), "KeyError"),
    "an exit": (Index, Odd("of Ann"), "Odd"),
    "a cancellation of its own": (Index, asyncio.CancelledError("of Ann"), "CancelledError"),
    "a class without a name": (Index, type("A nn", (OSError,), {})("of Ann"), "Exception"),
    "a class whose name raises": (Index, UnnamedError("of Ann"), "UnnamedError"),
    "an end of the process": (Index, SystemExit("of Ann"), "SystemExit"),
    "no answer": (Index, "hangs", "TimeoutError"),
    "no answer and no end": (Index, "hangs on", "TimeoutError"),
    "present raises": (Verified, OSError("of Ann"), "OSError"),
    "present does not answer": (Verified, "hangs", "TimeoutError"),
    "present finds it": (Verified, list, "NotConfirmed"),
    "present answers nothing": (Verified, lambda ids: None, "TypeError"),
    "present answers a string": (Verified, lambda ids: "none", "TypeError"),
    "present answers false": (Verified, lambda ids: False, "TypeError"),
    "present answers numbers": (Verified, lambda ids: [1], "TypeError"),
    "present answers something else": (Verified, lambda ids: ["of Zoe"], "ValueError"),
    "present is not to be had": (Unasked, OSError("of Ann"), "OSError"),
    "present answers what raises": (Verified, Unreadable, "LookupError"),
    "present answers no real string": (Verified, lambda ids: [Unhashable(ids[0])], "LookupError"),
}


async def told(tenant, *people, **artefacts):
    """Remember something with an artefact in each of the indexes."""
    record = (await tenant.remember(text="called", subject_keys=people)).record
    for adapter, artefact_id in artefacts.items():
        await tenant.register_artefact(adapter=adapter, artefact_id=artefact_id, sources=record)
    return record


async def until(index):
    """Wait for the index to be asked."""
    async with asyncio.timeout(20):
        await index.called.wait()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_purge_that_is_not_confirmed_stays_owed(memory_factory, plugs, logs, fault):
    kind, cause, said = FAULTS[fault]
    odd, sound, sink = kind(fault=cause), plugs.Index("sound"), plugs.Sink()
    acme = memory_factory(indexes=[odd, sound], events=sink, purge_timeout=SOON).for_tenant("acme")
    await told(acme, ANN, odd="of Ann", sound="of Ann")
    with pytest.raises(PartialErasureError) as partial:
        await acme.forget(subject_key=ANN)
    assert partial.value.receipt.outstanding == ("odd",)
    assert [event.outstanding for event in sink.events] == [("odd",)]
    assert (odd.asked, sound.asked) == ([["of Ann"]], [["of Ann"]])
    assert odd.ended == (1 if cause in ("hangs", "hangs on") and kind is Index else 0)
    assert f"index odd did not purge: {said}" in logs.text
    assert "of Ann" not in logs.text
    assert (await acme.purge_outstanding()).outstanding == ("odd",)
    odd.fault = None
    assert (await acme.purge_outstanding()).settled == 1
    assert (await acme.forget(subject_key=ANN)).complete


async def test_an_index_that_hangs_delays_no_other_debt(memory_factory, plugs):
    hanging, sound = Index("hanging", "hangs"), plugs.Index("sound")
    both = memory_factory(indexes=[hanging, sound], purge_timeout=timedelta(minutes=1))
    acme = both.for_tenant("acme")
    await told(acme, ANN, hanging="a", sound="a")
    forgetting = asyncio.create_task(acme.forget(subject_key=ANN))
    other = memory_factory(indexes=[sound]).for_tenant("acme")
    await until(hanging)
    for _ in range(500):
        if (await other.purge_outstanding()).outstanding == ("hanging",):
            break
        await asyncio.sleep(0.01)
    assert (await other.purge_outstanding()).outstanding == ("hanging",)
    # Another person's erasure is whole meanwhile.
    await told(acme, BOB, sound="b")
    assert (await acme.forget(subject_key=BOB)).complete
    forgetting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forgetting
    assert sorted(sound.ids) == ["a", "b"]


async def test_the_caller_may_cancel_and_the_debt_is_free_at_once(memory_factory):
    index = Index(fault="hangs")
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="a")
    forgetting = asyncio.create_task(acme.forget(subject_key=ANN))
    await until(index)
    forgetting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forgetting
    assert index.ended == 1
    index.fault = None
    # The index was not to blame: a worker need not wait.
    assert (await acme.purge_outstanding(due_only=True)).settled == 1


async def test_a_worker_waits_after_a_failure_and_a_call_by_hand_does_not(memory_factory):
    index = Index(fault=OSError())
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="a")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    waiting = await acme.purge_outstanding(due_only=True)
    assert (waiting.settled, waiting.outstanding, len(index.asked)) == (0, ("odd",), 1)
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    await acme.purge_outstanding()
    assert len(index.asked) == 3
    await told(acme, BOB, odd="b")
    index.fault = None
    assert (await acme.forget(subject_key=BOB)).complete
    assert (await acme.purge_outstanding(due_only=True)).outstanding == ("odd",)
    assert (await acme.purge_outstanding()).settled == 1
    with pytest.raises(InvalidInputError):
        await acme.purge_outstanding(due_only="yes")


async def test_what_makes_a_call_fail_does_not_fail_other_debts(memory_factory):
    class Choosy(Index):
        async def purge(self, artefact_ids):
            self.asked.append(list(artefact_ids))
            if "poison" in artefact_ids:
                raise ValueError
            return len(artefact_ids)

    index = Choosy()
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="poison")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    await told(acme, BOB, odd="of Bob")
    assert (await acme.forget(subject_key=BOB)).complete
    await told(acme, BOB, odd="of Bob")
    await memory_forget(memory_factory, BOB)
    done = await acme.purge_outstanding()
    assert (done.settled, done.outstanding) == (1, ("odd",))
    assert index.asked == [["poison"], ["of Bob"], ["of Bob"], ["poison"]]


async def memory_forget(memory_factory, person):
    """Forget by a process that has no index."""
    with pytest.raises(PartialErasureError):
        await memory_factory().for_tenant("acme").forget(subject_key=person)


async def test_an_erasure_answers_for_its_own_people(memory_factory):
    index = Index(fault=OSError())
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="a")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    index.fault = None
    index.asked.clear()
    await told(acme, BOB, odd="b")
    receipt = await acme.forget(subject_key=BOB)
    assert (receipt.complete, index.asked) == (True, [["b"]])
    assert (await acme.purge_outstanding()).settled == 1


async def test_each_debt_is_asked_for_once_in_a_drain(memory_factory):
    index = Verified(fault=lambda ids: [item for item in ids if item < "a1100"])
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    record = await told(acme, ANN)
    ids = [f"a{n:04}" for n in range(2_500)]
    await acme.derive(kind="s", text="s", sources=record, artefacts=[("odd", i) for i in ids])
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    # What the index still has does not keep it from being asked for the rest.
    assert sorted(item for batch in index.asked for item in batch) == ids
    assert max(map(len, index.asked)) <= 1_000
    index.fault = None
    assert (await acme.purge_outstanding()).settled == 1_100


async def test_two_drains_at_once_do_nothing_twice(memory_factory, plugs):
    class Slow(plugs.Index):
        async def purge(self, artefact_ids):
            await asyncio.sleep(0.02)
            return await super().purge(artefact_ids)

    index = Slow("index")
    acme = memory_factory().for_tenant("acme")
    record = await told(acme, ANN)
    ids = [f"a{n:04}" for n in range(3_000)]
    await acme.derive(kind="s", text="s", sources=record, artefacts=[("index", i) for i in ids])
    await memory_forget(memory_factory, ANN)
    drains = [memory_factory(indexes=[index]).purge_outstanding("acme") for _ in range(3)]
    done = await asyncio.gather(*drains)
    assert sum(each.settled for each in done) == 3_000
    assert index.ids == ids
    assert (await acme.purge_outstanding()).adapters == ()


async def test_an_artefact_is_not_registered_while_its_purge_is_owed(memory_factory):
    index = Index(fault=OSError())
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    await told(acme, ANN, odd="digest")
    with pytest.raises(PartialErasureError):
        await acme.forget(subject_key=ANN)
    record = await told(acme, BOB, odd="other")
    with pytest.raises(ConflictError, match="purge"):
        await acme.register_artefact(adapter="odd", artefact_id="digest", sources=record)
    before = await acme.records()
    with pytest.raises(ConflictError):
        await acme.derive(
            kind="s", text="s", sources=record, artefacts=[("odd", "new"), ("odd", "digest")]
        )
    assert await acme.records() == before
    index.fault = None
    await acme.purge_outstanding()
    await acme.register_artefact(adapter="odd", artefact_id="digest", sources=record)
    await acme.register_artefact(adapter="odd", artefact_id="digest", sources=record)
    assert (await acme.forget(subject_key=BOB)).counts.artefacts == 2
    assert index.asked[-1] == ["digest", "other"]


async def test_an_entry_written_after_the_erasure_is_noticed_by_registering_again(
    memory_factory, plugs
):
    index = plugs.Index("odd")
    acme = memory_factory(indexes=[index]).for_tenant("acme")
    record = await told(acme, ANN, odd="late")
    assert (await acme.forget(subject_key=ANN)).complete
    # Here the host writes what it has registered.
    with pytest.raises(UnknownSourceError):
        await acme.register_artefact(adapter="odd", artefact_id="late", sources=record)
    other = await told(acme, BOB, odd="in time")
    await acme.register_artefact(adapter="odd", artefact_id="in time", sources=other)
    assert (await acme.forget(subject_key=BOB)).counts.artefacts == 1


async def test_a_refused_derive_registers_nothing(memory, acme):
    await told(acme, ANN)
    foreign = await told(memory.for_tenant("acme-corp"), BOB)
    with pytest.raises(Exception, match="sources"):
        await acme.derive(kind="s", text="s", sources=foreign, artefacts=[("odd", "a")])
    assert (await acme.forget(subject_key=ANN, dry_run=True)).counts.artefacts == 0
    mine = await told(acme, ANN)
    await acme.derive(kind="s", text="s", sources=mine, artefacts=[("odd", "a")])
    assert (await acme.forget(subject_key=ANN, dry_run=True)).counts.artefacts == 1


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


@pytest.mark.parametrize("timeout", [timedelta(), timedelta(seconds=-1), 30, timedelta(days=2)])
def test_a_timeout_is_a_length_of_time(memory_factory, timeout):
    with pytest.raises(InvalidInputError) as refused:
        memory_factory(purge_timeout=timeout)
    assert refused.value.field == "purge_timeout"
    memory_factory(purge_timeout=timedelta(seconds=30))
