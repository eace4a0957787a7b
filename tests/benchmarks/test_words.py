"""The benchmark of recall by words runs and reports everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_a_quick_run_reports_every_figure(quick_run: Callable[..., dict[str, Any]]) -> None:
    found = quick_run("words.py")
    assert found["sizes"] == {"small": 60, "middle": 90, "large": 0}
    asked = {
        f"{tenant} {kind} {strategy}"
        for tenant in ("small", "middle")
        for kind in ("natural", "common")
        for strategy in ("lexical", "keyword")
    }
    for when in ("before_vacuum", "after_vacuum"):
        assert found[when].keys() == {"postings_bytes_a_record", "all_visible"} | asked
    assert found["after_vacuum"]["all_visible"] == 1
    assert found["writing"].keys() == {"one_us", "one_ratio", "bulk_us_a_record", "bulk_ratio"}
