"""The benchmark runs and reports everything; how fast is for a person to judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SMALL = {"ours_us", "raw_us", "ratio", "at_most", "ratio_beside_many", "growth", "raw_growth"}
BULK = {"ours_us_per_row", "raw_us_per_row", "share_of_raw_rate", "at_least"}
LARGE = {"ours_us_per_row", "raw_us_per_row", "ratio", "at_most_us_per_row"}


def test_a_quick_run_reports_every_figure(quick_run: Callable[..., dict[str, Any]]) -> None:
    found = quick_run("core.py", own_server=True)
    for verb in ("remember", "recall", "forget"):
        alike = {"ratio_tables_alike"} if verb != "recall" else set()
        assert found[verb].keys() == SMALL | alike
    for terms in (5, 20):
        assert found[f"remember_many {terms} terms"].keys() == BULK
        assert found[f"forget {terms} terms"].keys() == LARGE
    assert found["peak_bytes"].keys() == {"rss", "tracemalloc"}
    assert found["others"] == {"few": 100, "many": 200}
    assert found["machine"].keys() == {"cpus", "load_before", "load_after", "python", "server"}
