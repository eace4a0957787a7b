"""The benchmark of a replica's lag runs: every erasure arrives, idle and under load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_a_quick_run_sees_every_erasure_arrive(quick_run: Callable[..., dict[str, Any]]) -> None:
    found = quick_run("lag.py")
    assert found.keys() == {"idle", "writing"}
    for figures in found.values():
        assert 0 < figures["median_ms"] <= figures["most_ms"]
