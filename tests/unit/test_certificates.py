"""The printed page: what it says of each kind of erasure, and that it proves what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from certifying import STONE, TAGS, Seen, receipt
from chains import anchor, chain, sealed
from memory import (
    Anchor,
    Counts,
    IndexState,
    Reason,
    Remaining,
    Scope,
    Tombstone,
    certificate,
    fingerprint,
    prove,
)

WITH_COPIES = sealed(STONE, artefacts=2)


CASES: dict[str, tuple[dict[str, Any], str, Sequence[str]]] = {
    "complete": ({"evidence": STONE, "receipt": receipt()}, "Certificate of erasure", ["Complete"]),
    "complete by the database alone": (
        {
            "evidence": WITH_COPIES,
            "indexes": [IndexState(adapter="vec", purged=2, owed=0)],
            "deferred": False,
        },
        "Certificate of erasure",
        ["Complete", "vec", "2 purged"],
    ),
    "nothing was held": (
        {"evidence": sealed(STONE, memories=0), "deferred": False, "indexes": []},
        "Certificate that nothing was found",
        ["held nothing that matched", "misspelt", "none had a copy registered"],
    ),
    "nothing of these kinds was held": (
        {"evidence": sealed(STONE, memories=0, scope="kinds"), "deferred": False, "indexes": []},
        "Certificate that nothing was found",
        ["held nothing that matched", "some kinds of memory"],
    ),
    "nothing was held, by a tombstone alone": (
        {"evidence": sealed(STONE, memories=0)},
        "Certificate of a recorded erasure",
        ["Recorded by the database, which found nothing to remove. Not stated here"],
    ),
    "of single records": (
        {"evidence": sealed(STONE, scope="record"), "deferred": False, "indexes": []},
        "Certificate of a limited erasure",
        ["not everything about the person", "single records about the person, not all"],
    ),
    "outstanding": (
        {"evidence": WITH_COPIES, "indexes": [IndexState(adapter="vec", purged=1, owed=1)]},
        "Certificate of an incomplete erasure",
        ["Not complete: 1 external index has not confirmed", "1 outstanding; 1 purged"],
    ),
    "outstanding by a receipt": (
        {
            "evidence": WITH_COPIES,
            "receipt": receipt(
                WITH_COPIES, adapters=("a", "b"), outstanding=("b", "earlier"), complete=False
            ),
        },
        "Certificate of an incomplete erasure",
        ["2 external indexes have not confirmed", "earlier", "purged, as it confirmed"],
    ),
    "held": (
        {"evidence": STONE, "receipt": receipt(held=3, complete=False)},
        "Certificate of an incomplete erasure",
        ["Not complete: 3 records are kept by a legal hold"],
    ),
    "deferred": (
        {"evidence": STONE, "deferred": True, "indexes": []},
        "Certificate of an incomplete erasure",
        ["records are kept by a legal hold, or wait for the end of one"],
    ),
    "kept by a hold that a sweep passed by": (
        {"evidence": sealed(STONE, scope="tenant"), "indexes": [], "remaining": Remaining(due=2)},
        "Certificate of an incomplete erasure",
        ["Not complete: 2 records of before it are there"],
    ),
    "of a sweep of which nobody says what a hold kept": (
        {"evidence": sealed(STONE, scope="tenant"), "indexes": [], "deferred": False},
        "Certificate of a recorded erasure",
        ["Not stated here: whether a legal hold keeps more."],
    ),
    "of a sweep that left nothing": (
        {
            "evidence": sealed(STONE, scope="tenant"),
            "indexes": [],
            "deferred": False,
            "remaining": Remaining(due=0),
        },
        "Certificate of erasure",
        ["Complete"],
    ),
    "of records of which the evidence does not tell": (
        {
            "evidence": STONE,
            "indexes": [],
            "deferred": False,
            "remaining": Remaining(due=0, unclear=1),
        },
        "Certificate of a recorded erasure",
        ["Not stated here: whether 1 record of before it that is there was to go with it."],
    ),
    "of a sweep that may have passed by more": (
        {
            "evidence": sealed(STONE, scope="retention"),
            "indexes": [],
            "deferred": False,
            "remaining": Remaining(due=0, unclear=2),
        },
        "Certificate of a recorded erasure",
        ["Not stated here: whether 2 records of before it that are there were to go with it."],
    ),
    "by a tombstone alone": (
        {"evidence": WITH_COPIES},
        "Certificate of a recorded erasure",
        ["Not stated here: whether a legal hold keeps more, or external indexes have purged"],
    ),
    "by a tombstone without copies": (
        {"evidence": STONE},
        "Certificate of a recorded erasure",
        # An index may owe what an earlier erasure left, of which this tombstone counts nothing.
        ["whether a legal hold keeps more, or external indexes have purged", "not stated here"],
    ),
    "by indexes that say nothing of the copies": (
        {"evidence": WITH_COPIES, "indexes": [], "deferred": False},
        "Certificate of a recorded erasure",
        ["Not stated here: whether external indexes have purged", "not stated here"],
    ),
    "by a receipt that says nothing of the copies": (
        {"evidence": WITH_COPIES, "receipt": receipt(WITH_COPIES)},
        "Certificate of a recorded erasure",
        ["Not stated here: whether external indexes have purged", "not stated here"],
    ),
    "outstanding by a receipt and not by the indexes": (
        {
            "evidence": WITH_COPIES,
            "receipt": receipt(WITH_COPIES, outstanding=("earlier",), complete=False),
            "indexes": [IndexState(adapter="vec", purged=2, owed=0)],
        },
        "Certificate of an incomplete erasure",
        ["1 external index has not confirmed", "earlier", "2 purged"],
    ),
    "purged after its receipt": (
        {
            "evidence": WITH_COPIES,
            "receipt": receipt(WITH_COPIES, outstanding=("vec",), complete=False),
            "indexes": [IndexState(adapter="vec", purged=2, owed=0)],
        },
        "Certificate of erasure",
        ["Complete", "2 purged"],
    ),
    "by a tombstone and its indexes": (
        {"evidence": WITH_COPIES, "indexes": [IndexState(adapter="vec", purged=2, owed=0)]},
        "Certificate of a recorded erasure",
        ["Not stated here: whether a legal hold keeps more."],
    ),
    "by a tombstone of nobody held": (
        {"evidence": WITH_COPIES, "deferred": False},
        "Certificate of a recorded erasure",
        ["Not stated here: whether external indexes have purged their copies."],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_erasure_is_called_what_it_is(name: str) -> None:
    given, title, words = CASES[name]
    page = certificate(**given)
    seen = Seen(page)
    assert f"<h1>{title}</h1>" in page
    for word in words:
        assert word in seen.text
    complete = title in ("Certificate of erasure", "Certificate of a limited erasure")
    assert ("verdict open" in page) is not complete
    assert seen.tags <= TAGS


def test_the_page_has_all_that_verifying_takes() -> None:
    page = certificate(
        STONE, controller="Acme & Co", reference="4711", backups_until=date(2026, 12, 31)
    )
    [line] = [line for line in page.splitlines() if line.startswith('{"type":"tombstone"')]
    assert prove([line], anchor=anchor(STONE)).tombstones == (STONE,)
    text = Seen(page).text
    for value in ("Acme & Co", "4711", "until 2026-12-31", STONE.digest, STONE.subject_hash):
        assert value in text
    assert f"--anchor {STONE.seq}:{STONE.digest}" in text
    assert "Place, date" in text
    assert "until when is not stated" in Seen(certificate(STONE)).text
    later = Anchor(seq=9, digest="0" * 64)
    assert f"--anchor 9:{later.digest}" in Seen(certificate(STONE, anchor=later)).text


def test_what_is_printed_is_enough_to_compute_the_digest() -> None:
    stone = sealed(STONE, derived=3, provenance_edges=4, artefacts=5)
    cells = re.findall(r"<tr><th>(.*?)</th><td>(.*?)</td></tr>", certificate(stone))
    said = {label: re.sub(r"</?code>", "", value) for label, value in cells}
    typed = Tombstone(
        tenant_key=said["Tenant"],
        seq=int(said["Position in its chain"].split(" (format ")[0]),
        erasure_id=UUID(said["Erasure"]),
        subject_hash=said["Person, by hash"],
        reason=cast("Reason", said["Reason"].split("[")[1].rstrip("]")),
        scope=cast("Scope", said["Scope"].split("[")[1].rstrip("]")),
        memories=int(said["Memories removed"]),
        derived=int(said["Derived records removed"]),
        provenance_edges=int(said["Links of derivation removed"]),
        artefacts=int(said["Copies elsewhere"]),
        erased_at=datetime.fromisoformat(said["When"].replace(" UTC", "+00:00")),
        format=int(said["Position in its chain"].split(" (format ")[1].rstrip(")")),
        previous="" if said["Digest before it"].startswith("none") else said["Digest before it"],
        digest=said["Digest"],
    )
    assert typed == stone
    assert fingerprint.tombstone_digest(typed) == said["Digest"]


def test_tombstones_of_several_transactions_are_added_up() -> None:
    stones = chain("shop", ["a" * 64] * 6)
    one = [sealed(stone, erasure_id=STONE.erasure_id) for stone in stones]
    text = Seen(certificate(one[::-1])).text
    assert "in 6 transactions" in text
    assert "\n21\n" in text
    assert "3, 4, 5, and 2 before" in text
    assert text.count(one[5].digest) >= 1


def test_a_receipt_of_several_people_is_every_ones() -> None:
    of_both = receipt(
        scope="record",
        subject_hashes=("a" * 64, "b" * 64),
        counts=Counts(memories=3, derived=1),
        anchor=Anchor(seq=2, digest="0" * 64),
    )
    page = certificate(sealed(STONE, scope="record"), receipt=of_both)
    assert "<h1>Certificate of a limited erasure</h1>" in page
