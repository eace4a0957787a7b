"""The comparison runs on whatever is installed, and finds this library's promise kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FIGURES = {"median_us", "quartiles_us", "times_raw", "rounds"}
VERBS = {"remember", "ingest", "recall one person", "recall the tenant", "erase"}


def test_a_quick_run_compares_and_finds_nothing_left(
    quick_run: Callable[..., dict[str, Any]],
) -> None:
    found = quick_run("all.py")
    assert found["speed"]["verbs"].keys() == VERBS
    for verb, by_name in found["speed"]["verbs"].items():
        assert {"ours", "raw"} <= by_name.keys()
        for figures in by_name.values():
            assert figures.keys() == FIGURES | ({"found"} if "recall" in verb else set())
    for verb in ("recall one person", "recall the tenant"):
        assert found["speed"]["verbs"][verb]["ours"]["found"] == 1
    ours = found["erasure"]["ours"]
    assert min(ours["before"][part] for part in ("memories", "summary", "digest")) > 0
    assert set(ours["left"].values()) == {0}
    assert ours["late"] == {
        "written while deleting": "0 of 2 stay",
        "written afterwards": "refused",
    }
    assert ours["evidence"] == {"entries": 3, "with what was deleted": 0}
    assert ours["neighbour"]
    assert ours["files"]["after the deletion"]["neighbour"] == 1
    assert set(found["absent"]) <= {"langgraph", "mem0"}
