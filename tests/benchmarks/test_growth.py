"""The study of growth runs and reports every verb; how steep is for a person to judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from growing import exponent

EVERYWHERE = {
    "remember_many, a record",
    "expire, a record",
    "remember",
    "derive from 4",
    "recall by person",
    "recall across the tenant by words",
    "export a person of 50",
    "erasure_history",
    "forget a person of 50",
    "verify_install",
    "check",
    "scrub",
}


def test_a_quick_run_reports_every_figure(quick_run: Callable[..., dict[str, Any]]) -> None:
    found = quick_run("growth.py")
    by_name = found["verbs"]
    assert {name for name, points in by_name.items() if len(points) == 2} == EVERYWHERE | {
        "forget, a record of a growing person"
    }
    assert by_name["recall across the tenant by vector, exact"].keys() == {"100"}
    assert by_name["recall across the tenant by vector, HNSW"].keys() == {"500"}
    assert found["exponents"].keys() == by_name.keys()
    assert found["sizes"].keys() == {"100", "500"}
    assert "index_build_us" in found["sizes"]["500"]


def test_an_exponent_is_the_slope_of_the_logarithms() -> None:
    assert exponent([(10, 5), (100, 50), (1_000, 500)]) == pytest.approx(1)
    assert exponent([(10, 5), (1_000, 5)]) == pytest.approx(0)
    assert exponent([(10, 2), (40, 4)]) == pytest.approx(0.5)
    assert exponent([(10, 2)]) is None
