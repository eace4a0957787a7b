"""What telemetry says, caught by the SDK of OpenTelemetry in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from memory import telemetry

OURS = "erasable_memory."


@dataclass
class Observed:
    """``host`` is a tracer of the application's own, of the same provider."""

    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader
    host: Tracer

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in that order."""
        return list(self.exporter.get_finished_spans())

    @property
    def last(self) -> ReadableSpan:
        return self.spans[-1]

    def named(self, name: str) -> ReadableSpan:
        [span] = [span for span in self.spans if span.name == name]
        return span

    def points(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """By metric, without the prefix: labels, and a counter's value or a histogram's count."""
        found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name.removeprefix(OURS)] = [
                        (
                            {k.removeprefix(OURS): v for k, v in (point.attributes or {}).items()},
                            point.value if isinstance(point, NumberDataPoint) else point.count,
                        )
                        for point in metric.data.data_points
                    ]
        return found

    def total(self, name: str, **labels: str) -> int:
        """Return the sum of a counter over the points that have these labels."""
        points = self.points().get(name, [])
        return sum(value for found, value in points if labels.items() <= found.items())

    def everything(self) -> str:
        """All that an exporter would send."""
        data = self.reader.get_metrics_data()
        metrics = "" if data is None else data.to_json()
        return "\n".join([metrics, *(span.to_json() for span in self.spans)])


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return a span's attributes, without our prefix."""
    return {name.removeprefix(OURS): value for name, value in (span.attributes or {}).items()}


def instruments(tracers: TracerProvider, reader: MetricReader) -> telemetry.Instruments:
    meters = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    return telemetry.Instruments(tracers.get_tracer("ours"), meters.get_meter("ours"))


@contextmanager
def observing(patch: pytest.MonkeyPatch) -> Iterator[Observed]:
    """Catch what this package says, and nothing of what other tests would."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    with patch.context() as patched:
        patched.setattr(telemetry, "_instruments", instruments(tracers, reader))
        yield Observed(exporter, reader, tracers.get_tracer("host"))
