"""What the soak measured: rates and times by verb and minute, errors by class, memory over time."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from ledger import Account

_CONTENT_WITH = {"ok", "PartialErasureError", "LegalHoldError"}


def figures(found: Account, started: float, seconds: float) -> dict[str, Any]:
    """Add up the calls; a minute is one of the run, counted from 0."""
    by_verb: dict[str, list[float]] = defaultdict(list)
    by_minute: dict[tuple[int, str], list[float]] = defaultdict(list)
    errors: dict[str, Counter[str]] = defaultdict(Counter)
    for at, verb, took, outcome in found.calls:
        if outcome in _CONTENT_WITH:
            by_verb[verb].append(took)
            by_minute[int((at - started) // 60), verb].append(took)
        if outcome != "ok":
            errors[verb][outcome] += 1
    return {
        "calls": len(found.calls),
        "people": len(found.tenants),
        "erased": len(found.erased),
        "texts": len(found.texts),
        "per_second": round(len(found.calls) / seconds, 1),
        "verbs": {verb: times(took) for verb, took in sorted(by_verb.items())},
        "minutes": [
            {"minute": minute, "verb": verb, **times(took)}
            for (minute, verb), took in sorted(by_minute.items())
        ],
        "errors": {verb: dict(count.most_common()) for verb, count in sorted(errors.items())},
        "memory": {
            client: slope(points)
            for client, points in sorted(found.memory.items())
            if len(points) > 10
        },
    }


def times(took: list[float]) -> dict[str, Any]:
    """How many, and the milliseconds that so many per cent of them took at most."""
    if len(took) == 1:
        return {"n": 1, "p50": took[0] * 1e3, "p95": took[0] * 1e3, "p99": took[0] * 1e3}
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return {"n": len(took), **{f"p{q}": round(cuts[q - 1] * 1e3, 1) for q in (50, 95, 99)}}


def slope(points: list[tuple[float, int]]) -> dict[str, Any]:
    """A client's resident megabytes, and by how many a minute they grow once it is warm."""
    warm = points[len(points) // 3 :]
    megabytes = [size / 1e6 for _, size in warm]
    line = statistics.linear_regression([at / 60 for at, _ in warm], megabytes)
    at_minute = {int((at - points[0][0]) // 60): round(size / 1e6, 1) for at, size in points}
    return {
        "mb_at_minute": list(at_minute.values()),
        "minutes": round((points[-1][0] - points[0][0]) / 60, 1),
        "first_mb": round(points[0][1] / 1e6, 1),
        "last_mb": round(points[-1][1] / 1e6, 1),
        "mb_per_minute": round(line.slope, 3),
    }


def table(report: dict[str, Any]) -> Iterator[str]:
    """The report, for people."""
    found = report["figures"]
    yield f"{report['seconds']:.0f} s, {found['calls']:,} calls ({found['per_second']} a second),"
    yield f"  {found['people']:,} people, {found['erased']:,} erased, {found['texts']:,} texts"
    yield f"{'verb':<20}{'calls':>9}{'p50 ms':>10}{'p95 ms':>10}{'p99 ms':>10}"
    for verb, it in found["verbs"].items():
        yield f"{verb:<20}{it['n']:>9,}{it['p50']:>10.1f}{it['p95']:>10.1f}{it['p99']:>10.1f}"
    yield "outcomes other than ok"
    for verb, count in found["errors"].items():
        yield f"  {verb:<18}" + ", ".join(f"{name} {n:,}" for name, n in count.items())
    yield "mishaps"
    for what, n in Counter(it["what"] for it in report["mishaps"]).most_common():
        yield f"  {what:<32}{n:>4}"
    yield from (f"  not simulated: {it}" for it in report["not_simulated"])
    yield "memory of clients, MB"
    for client, it in found["memory"].items():
        yield (
            f"  {client} {it['first_mb']} to {it['last_mb']} in {it['minutes']} minutes,"
            f" {it['mb_per_minute']:+} a minute"
        )
    yield "invariants"
    for name, faults in report["invariants"].items():
        yield f"  {name:<42}{'holds' if not faults else 'BROKEN'}"
        yield from (f"    {fault}" for fault in faults[:10])
