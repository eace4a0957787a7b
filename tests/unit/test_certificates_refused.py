"""What would certify something else than the evidence says is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import pytest

from certifying import NOW, STONE, receipt
from chains import anchor, chain, sealed
from memory import Anchor, Counts, IndexState, InvalidInputError, Remaining, certificate

OTHER = chain("other", ["a" * 64])[0]
LATER = chain("shop", ["a" * 64, "a" * 64])[1]
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "no tombstone": ("evidence", {"evidence": []}),
    "a receipt alone": ("evidence", {"evidence": receipt()}),
    "a receipt among tombstones": ("evidence", {"evidence": [receipt()]}),
    "two people": ("evidence", {"evidence": [STONE, sealed(STONE, seq=2, subject_hash="b" * 64)]}),
    "two tenants": ("evidence", {"evidence": [STONE, sealed(OTHER, seq=2)]}),
    "two erasures": ("evidence", {"evidence": chain("shop", ["a" * 64, "a" * 64])}),
    "one of two that was edited": (
        "evidence",
        {"evidence": [STONE, replace(LATER, memories=9)], "receipt": receipt()},
    ),
    "two people and the receipt of one": (
        "evidence",
        {"evidence": [STONE, sealed(LATER, subject_hash="b" * 64)], "receipt": receipt()},
    ),
    "a receipt of neither": ("receipt", {"evidence": [STONE, LATER], "receipt": receipt(OTHER)}),
    "one twice": ("evidence", {"evidence": [STONE, STONE]}),
    "an edited one": ("evidence", {"evidence": replace(STONE, memories=9)}),
    "a dry run": ("receipt", {"receipt": receipt(dry_run=True, complete=False)}),
    "another erasure's receipt": ("receipt", {"receipt": receipt(OTHER)}),
    "no receipt": ("receipt", {"receipt": "planted"}),
    "an altered one that was digested again": (
        "receipt",
        {"evidence": sealed(STONE, memories=9), "receipt": receipt(anchor=anchor(STONE))},
    ),
    "no count of what is left": ("remaining", {"remaining": Remaining(due=-1)}),
    "a number for what is left": ("remaining", {"remaining": 1}),
    "other counts": ("receipt", {"receipt": receipt(counts=Counts(memories=2))}),
    "other counts of a record's": (
        "receipt",
        {
            "evidence": sealed(STONE, scope="record"),
            "receipt": receipt(scope="record", counts=Counts()),
        },
    ),
    "another reason": ("receipt", {"receipt": receipt(reason="operator")}),
    "another scope": ("receipt", {"receipt": receipt(scope="tenant")}),
    "another person's receipt": ("receipt", {"receipt": receipt(subject_hashes=("b" * 64,))}),
    "a receipt of no counts": ("receipt", {"receipt": receipt(counts="planted")}),
    "a receipt that names no indexes": ("receipt", {"receipt": receipt(outstanding="planted")}),
    "a count in words": ("evidence", {"evidence": replace(STONE, memories=cast("int", "1"))}),
    "an unknown reason": ("evidence", {"evidence": sealed(STONE, reason="planted")}),
    "an id in words": (
        "evidence",
        {"evidence": sealed(STONE, erasure_id="planted")},
    ),
    "nothing before a later one": (
        "evidence",
        {"evidence": replace(STONE, previous=cast("str", None))},
    ),
    "a naive time of erasure": (
        "evidence.erased_at",
        {"evidence": replace(STONE, erased_at=datetime(2026, 1, 1))},  # noqa: DTZ001
    ),
    "indexes by name": ("indexes.0", {"indexes": ["planted"]}),
    "one name for indexes": ("indexes", {"indexes": "planted"}),
    "a number of copies in words": (
        "indexes.0.purged",
        {"indexes": [IndexState(adapter="vec", purged=cast("int", "planted"), owed=0)]},
    ),
    "fewer than none owed": (
        "indexes.0.owed",
        {"indexes": [IndexState(adapter="vec", purged=0, owed=-1)]},
    ),
    "a naive time of purging": (
        "indexes.0.purged_at",
        {
            "indexes": [
                IndexState(adapter="vec", purged=1, purged_at=datetime(2026, 1, 1), owed=0)  # noqa: DTZ001
            ]
        },
    ),
    "an older anchor": ("anchor", {"anchor": Anchor(seq=0, digest=STONE.digest)}),
    "an anchor that differs": ("anchor", {"anchor": Anchor(seq=1, digest="0" * 64)}),
    "a long line": ("controller", {"controller": "planted" * 20}),
    "two lines": ("reference", {"reference": "planted\nplanted"}),
    "a moment for a day": ("backups_until", {"backups_until": NOW}),
    "a naive time": ("issued_at", {"issued_at": datetime(2026, 1, 1)}),  # noqa: DTZ001
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_certify_something_else_is_refused(name: str) -> None:
    field, given = REFUSED[name]
    with pytest.raises(InvalidInputError) as caught:
        certificate(**{"evidence": STONE, **given})
    assert caught.value.field == field
    assert "planted" not in str(caught.value)
    # The allowed neighbour.
    assert certificate(STONE, receipt=receipt(anchor=anchor(STONE)), anchor=anchor(STONE))
