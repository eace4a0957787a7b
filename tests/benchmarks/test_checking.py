"""The benchmark of checking runs, finds nothing wrong, and reports every figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_a_quick_run_reports_every_figure(quick_run: Callable[..., dict[str, Any]]) -> None:
    found = quick_run("checking.py")
    assert found["calls"].keys() == {"verify_install", "check", "check with the pepper"}
    for figures in found["calls"].values():
        assert figures["seconds"] > 0
        assert figures["peak"] > figures["rise"]
    checked = found["calls"]["check with the pepper"]
    assert checked["faults"] == 0
    # Each with about twenty postings and a link.
    assert checked["rows"] > 10 * found["records"]
    assert found["records"] == 910
