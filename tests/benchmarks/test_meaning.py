"""The benchmark of recall by meaning runs and reports everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CHOSEN = {"recall", "through_index", "ours_ms", "raw_ms", "ratio"}


def test_a_quick_run_reports_every_figure(quick_run: Callable[..., dict[str, Any]]) -> None:
    found = quick_run("meaning.py")
    assert found["by_person"]["growth_buffers"] <= found["by_person"]["at_most"]
    assert found["across"].keys() == {"t0.1", "t1", "t10", "t90"}
    for figures in found["across"].values():
        assert figures.keys() == CHOSEN
        # So few are all compared.
        assert (figures["recall"], figures["through_index"]) == (1, 0)
    for when in ("before", "after", "maintained"):
        assert found["churn"][when].keys() == CHOSEN | {"index_mb"}
    assert {"reindex_s", "vacuum_s"} < found["churn"].keys()
    assert found["build"].keys() == {"seconds", "mb"}
    assert found["insert"].keys() == {"indexed_ms", "plain_ms", "ratio"}
    assert found["plan"]["records"] == 4_000
