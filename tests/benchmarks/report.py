"""Times by round, and what is made of them: figures, ratios, a table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Times:
    """Seconds by round under a name."""

    by_name: dict[str, list[float]] = field(default_factory=dict)

    async def take(self, name: str, call: Awaitable[Any]) -> Any:
        start = time.perf_counter()
        answer = await call
        self.by_name.setdefault(name, []).append(time.perf_counter() - start)
        return answer

    def median(self, name: str) -> float:
        return statistics.median(self.by_name[name])

    def ratio(self, name: str, beside: str) -> float:
        pairs = zip(self.by_name[name], self.by_name[beside], strict=True)
        return statistics.median(a / b for a, b in pairs)


def small(times: Times, verb: str, most: float) -> dict[str, Any]:
    """Return the figures of one verb beside raw, and how both grow with others' records."""
    few, many = f"{verb} few", f"{verb} many"
    alike = f"{few}, tables alike"
    beside_alike = {}
    if alike in times.by_name:
        beside_alike["ratio_tables_alike"] = times.ratio(alike, f"{alike}: raw")
    return beside_alike | {
        "ours_us": times.median(few) * 1e6,
        "raw_us": times.median(f"{few}: raw") * 1e6,
        "ratio": times.ratio(few, f"{few}: raw"),
        "at_most": most,
        "ratio_beside_many": times.ratio(many, f"{many}: raw"),
        "growth": times.ratio(many, few),
        "raw_growth": times.ratio(f"{many}: raw", f"{few}: raw"),
    }


def large(
    times: Times, *, terms: int, bulk: int, erased: int, least_rate: float, most_us: float
) -> Any:
    """Return the figures of the bulk write and of the large erasure at one number of terms."""
    write, gone = f"remember_many {terms} terms", f"forget {terms} terms"
    rows = erased * 5 // 4
    return {
        write: {
            "ours_us_per_row": times.median(write) / bulk * 1e6,
            "raw_us_per_row": times.median(f"{write}: raw") / bulk * 1e6,
            "share_of_raw_rate": times.ratio(f"{write}: raw", write),
            "at_least": least_rate,
        },
        gone: {
            "ours_us_per_row": times.median(gone) / rows * 1e6,
            "raw_us_per_row": times.median(f"{gone}: raw") / erased * 1e6,
            "ratio": times.ratio(gone, f"{gone}: raw"),
            "at_most_us_per_row": most_us,
        },
    }


def table(found: dict[str, Any]) -> Iterator[str]:
    others = found["others"]
    yield f"beside {others['few']:,} records of others" + 18 * " " + "ours      raw   ratio   aim"
    for verb in ("remember", "recall", "forget"):
        it = found[verb]
        label = f"{verb}, us" if verb != "forget" else "forget 40 + 10 derived, us"
        figures = f"{it['ours_us']:>9,.0f}{it['raw_us']:>9,.0f}{it['ratio']:>8.2f}"
        yield f"{label:<40}{figures} <= {it['at_most']}"
        if "ratio_tables_alike" in it:
            yield f"{'  beside the same rows in tables alike':<58}{it['ratio_tables_alike']:>8.2f}"
    for name, it in found.items():
        if name.startswith("remember_many"):
            share = it["share_of_raw_rate"]
            figures = f"{it['ours_us_per_row']:>9,.1f}{it['raw_us_per_row']:>9,.1f}{share:>8.2f}"
            yield f"{name + ', us a row':<40}{figures} >= {it['at_least']:.2f} (of raw's rate)"
        elif name.startswith("forget "):
            figures = f"{it['ours_us_per_row']:>9,.1f}{it['raw_us_per_row']:>9,.1f}"
            aim = f"<= {it['at_most_us_per_row']:.0f} us"
            yield f"{name + ', us a row':<40}{figures}{it['ratio']:>8.2f} {aim}"
    yield f"beside {others['many']:,}: ratio, growth of ours, growth of raw"
    for verb in ("remember", "recall", "forget"):
        it = found[verb]
        figures = f"{it['ratio_beside_many']:>9.2f}{it['growth']:>9.2f}{it['raw_growth']:>8.2f}"
        yield f"{verb:<40}{figures}"
    megabytes = {how: size / 1e6 for how, size in found["peak_bytes"].items()}
    yield f"peak of remember_many: {megabytes['rss']:.0f} MB resident above its items,"
    yield f"  {megabytes['tracemalloc']:.0f} MB by tracemalloc"
    machine = found["machine"]
    loads = [f"{machine[when][0]:.2f}" for when in ("load_before", "load_after")]
    yield f"PostgreSQL {machine['server']}, Python {machine['python']}, {machine['cpus']} CPUs,"
    yield f"  load {loads[0]} before and {loads[1]} after"
