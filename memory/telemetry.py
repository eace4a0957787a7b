"""One span, one duration and one log line for each verb, and counters of what the verbs did.

OpenTelemetry where its API package is installed (extra ``otel``; the SDK and its exporters are the
host's), and the logger ``memory.calls`` at DEBUG, always. What is said are names of verbs, codes,
counts and classes of errors: never a text, a key, a tenant or a message. Names follow the semantic
conventions for database client spans (https://opentelemetry.io/docs/specs/semconv/db/); what those
do not know begins with ``erasable_memory``. docs/observability.md lists them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar, Token
from importlib.metadata import version
from time import perf_counter
from typing import Any, Final, TypeVar

from memory.calls import class_name
from memory.errors import StoreUnavailableError
from memory.outcomes import OURS, Outcome, Values, outcome

try:
    from opentelemetry import context, metrics, trace
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

__all__ = ["COUNTERS", "DURATION", "Instruments", "observed", "purge_failed", "purged", "retried"]

T = TypeVar("T")
C = TypeVar("C", bound=type)

DURATION: Final = f"{OURS}.operation.duration"
COUNTERS: Final = {
    f"{OURS}.erasures": ("{erasure}", "Erasures that were carried out or deferred by a hold."),
    f"{OURS}.records.erased": ("{record}", "Records that erasures removed."),
    f"{OURS}.purges.owed": ("{artefact}", "Artefacts that erasures left to indexes to purge."),
    f"{OURS}.purges.done": ("{artefact}", "Artefacts whose purge was settled."),
    f"{OURS}.purges.failed": ("{call}", "Calls of an index that did not confirm all."),
    f"{OURS}.recall.hits": ("{record}", "Records that recall found."),
    f"{OURS}.recall.empty": ("{call}", "Recalls that found nothing."),
    f"{OURS}.redactions": ("{finding}", "Identifiers masked in what was stored."),
    f"{OURS}.retries": ("{attempt}", "Transactions begun again after a conflict."),
}
"""The counters by name, each with its unit and what it counts."""

# Seconds; those of the conventions for db.client.operation.duration.
_BOUNDARIES: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
_SYSTEM, _OPERATION, _ERROR = "db.system.name", "db.operation.name", "error.type"
_CODE, _ROWS = "db.response.status_code", "db.response.returned_rows"

_calls = logging.getLogger("memory.calls")
_logger = logging.getLogger("memory")


class Instruments:
    """The tracer, the histogram and the counters of one pair of providers."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter) -> None:
        self.tracer = tracer
        self.duration = meter.create_histogram(
            DURATION,
            unit="s",
            description="How long a verb took: redaction, embedding, retries and purges included.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self.counters = {
            name: meter.create_counter(name, unit=unit, description=description)
            for name, (unit, description) in COUNTERS.items()
        }

    def add(self, name: str, amount: int, labels: Values) -> None:
        """Count, unless there is nothing to."""
        if amount:
            self.counters[name].add(amount, labels)

    def measure(self, found: Outcome, seconds: float, labels: Values) -> None:
        """Record a call: how long it took, and what it did."""
        if found.strategy is not None:
            labels = {**labels, f"{OURS}.strategy": found.strategy}
        self.duration.record(seconds, labels)
        for name, amount, of in found.counts:
            self.add(name, amount, of)


def _of_the_host() -> Instruments | None:
    if not _INSTALLED:
        return None
    # Both forward to the providers of the host, once it has set them.
    scope, release = "erasable-memory", version("erasable-memory")
    return Instruments(trace.get_tracer(scope, release), metrics.get_meter(scope, release))


_instruments = _of_the_host()


def observed(*, streams: tuple[str, ...]) -> Callable[[C], C]:
    """Return a decorator of ``Memory``: every public coroutine, and each stream, is observed.

    What a verb calls through ``super()`` is part of its own call.
    """

    def decorate(cls: C) -> C:
        for name, verb in inspect.getmembers(cls, inspect.isfunction):
            if name.startswith("_") or name == "close":
                continue
            if name in streams:
                setattr(cls, name, _observed_stream(verb))
            elif inspect.iscoroutinefunction(verb):
                setattr(cls, name, _observed_call(verb))
        return cls

    return decorate


def _observed_call(verb: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    @functools.wraps(verb)
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> T:
        running = _Call(verb.__name__, self._store)
        try:
            with running:
                answer = await verb(self, *args, **kwargs)
        except BaseException as error:
            running.end(error=error)
            raise
        running.end(answer)
        return answer

    return call


def _observed_stream(
    verb: Callable[..., AsyncGenerator[T, None]],
) -> Callable[..., AsyncGenerator[T, None]]:
    @functools.wraps(verb)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> AsyncGenerator[T, None]:
        return _steps(verb.__name__, self._store, verb(self, *args, **kwargs))

    return call


async def _steps(name: str, store: object, stream: AsyncGenerator[T, None]) -> AsyncGenerator[T]:
    """Yield what the stream yields; between two steps the span is nobody's current one."""
    running = _Call(name, store)
    try:
        while True:
            with running:
                try:
                    item = await anext(stream)
                except StopAsyncIteration:
                    break
            running.rows += 1
            yield item
    except BaseException as error:
        # Who leaves the loop early has not failed.
        running.end(error=None if isinstance(error, GeneratorExit) else error)
        raise
    else:
        running.end()
    finally:
        await stream.aclose()


class _Call:
    """One call of a verb; as a context it is the current one, for as long as the verb's code runs.

    Nothing that a host's tracer or meter raises reaches the caller: what it did may be committed.
    """

    def __init__(self, verb: str, store: object) -> None:
        self.verb = verb
        self.rows = 0
        self.retries = 0
        system = getattr(store, "system", None)
        self._labels: Values = {
            _SYSTEM: system if isinstance(system, str) else "other",
            _OPERATION: verb,
        }
        self._started = perf_counter()
        self._span: trace.Span | None = None
        self._token: Token[context.Context] | None = None
        if _instruments is not None:
            _safely(functools.partial(self._open, _instruments))

    def _open(self, instruments: Instruments) -> None:
        within = self._labels[_SYSTEM] == "in_memory"
        self._span = instruments.tracer.start_span(
            self.verb,
            kind=trace.SpanKind.INTERNAL if within else trace.SpanKind.CLIENT,
            attributes=self._labels,
        )

    def __enter__(self) -> None:
        self._outer = _running.set(self)
        _safely(self._attach)

    def _attach(self) -> None:
        if self._span is not None:
            self._token = context.attach(trace.set_span_in_context(self._span))

    def _detach(self) -> None:
        if self._token is not None:
            context.detach(self._token)
            self._token = None

    def __exit__(self, *raised: object) -> None:
        _safely(self._detach)
        # A coroutine that was left behind is closed in whatever context there is.
        with contextlib.suppress(ValueError):
            _running.reset(self._outer)

    def end(self, answer: object = None, *, error: BaseException | None = None) -> None:
        """Say what came of it; an erasure that ended incomplete has a receipt too."""
        seconds = perf_counter() - self._started
        _safely(functools.partial(self._tell, answer, error, seconds))
        if self._span is not None:
            _safely(self._span.end)

    def _tell(self, answer: object, error: BaseException | None, seconds: float) -> None:
        recording = self._span is not None and self._span.is_recording()
        logged = _calls.isEnabledFor(logging.DEBUG)
        if _instruments is None and not logged:
            return
        found = outcome(answer if error is None else getattr(error, "receipt", None))
        if error is not None:
            self._labels[_ERROR] = class_name(error)
        said = {**found.attributes, **self._more(error)} if recording or logged else {}
        if self._span is not None and recording:
            self._span.set_attributes(said)
            if error is not None:
                # Without a description: a message may be a host's.
                self._span.set_status(trace.StatusCode.ERROR)
        if logged:
            _log(self.verb, seconds, said)
        if _instruments is not None:
            _instruments.measure(found, seconds, self._labels)

    def _more(self, error: BaseException | None) -> Values:
        """Return what the answer does not say."""
        found: Values = {}
        if self.rows:
            found[_ROWS] = self.rows
        if self.retries:
            found[f"{OURS}.retries"] = self.retries
        if error is not None:
            found[_ERROR] = self._labels[_ERROR]
        if isinstance(error, StoreUnavailableError) and error.sqlstate is not None:
            found[_CODE] = error.sqlstate
        return found


_running: ContextVar[_Call | None] = ContextVar("memory_call", default=None)


def retried() -> None:
    """Say that a transaction is begun again."""
    running = _running.get()
    labels: Values = {}
    if running is not None:
        running.retries += 1
        labels[_OPERATION] = running.verb
    _count("retries", 1, labels)


def purged(index: str, artefacts: int) -> None:
    """Say that purges of an index were settled."""
    _count("purges.done", artefacts, {f"{OURS}.index": index})


def purge_failed(index: str, error: str) -> None:
    """Say that an index did not confirm what it was asked; ``error`` is the name of a class."""
    _count("purges.failed", 1, {f"{OURS}.index": index, _ERROR: error})


def _count(name: str, amount: int, labels: Values) -> None:
    if _instruments is not None:
        _safely(functools.partial(_instruments.add, f"{OURS}.{name}", amount, labels))


def _log(verb: str, seconds: float, said: Values) -> None:
    words = (f" {name.removeprefix(OURS + '.')}={value}" for name, value in said.items())
    _calls.debug("%s %.6f s%s", verb, seconds, "".join(words))


def _safely(work: Callable[[], object]) -> None:
    # What runs here awaits nothing, so that even a cancellation is the host's own doing.
    try:
        work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _logger.error("telemetry failed: %s", class_name(error))  # noqa: TRY400 - a traceback may quote
