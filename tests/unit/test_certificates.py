"""The printed page: what it says of each kind of erasure, what it refuses, and that it is inert."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from chains import anchor, chain, sealed
from memory import (
    Anchor,
    Counts,
    IndexState,
    InvalidInputError,
    Reason,
    Receipt,
    Scope,
    Tombstone,
    certificate,
    fingerprint,
    prove,
)

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
STONE = chain("shop", ["a" * 64])[0]
WITH_COPIES = sealed(STONE, artefacts=2)


def receipt(stone: Tombstone = STONE, **values: Any) -> Receipt:
    made = Receipt(
        erasure_id=stone.erasure_id,
        tenant_key=stone.tenant_key,
        subject_hashes=(stone.subject_hash,),
        reason=stone.reason,
        scope=stone.scope,
        counts=Counts(memories=stone.memories, artefacts=stone.artefacts),
        kinds={},
        cascade_depth=0,
        bystanders=0,
        complete=True,
        closure="",
        erased_at=NOW,
    )
    return replace(made, **values)


class Seen(HTMLParser):
    """The elements of a page and what is written in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.words)


TAGS = [
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "p",
    "table",
    "tr",
    "th",
    "td",
    "code",
    "ul",
    "li",
    "div",
    "script",
]

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
        "Certificate of erasure",
        ["held nothing that matched", "none had a copy registered"],
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
        {"evidence": sealed(STONE, scope="tenant"), "indexes": [], "remaining": 2},
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
            "remaining": 0,
        },
        "Certificate of erasure",
        ["Complete"],
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
    assert seen.tags <= set(TAGS)


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


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>'\"&"


def test_nothing_that_is_given_becomes_markup() -> None:
    stone = chain(EVIL + "\u202e\n", ["a" * 64])[0]
    page = certificate(
        stone,
        controller=EVIL,
        reference=EVIL,
        indexes=[IndexState(adapter="<b onclick=1>\u202e", purged=None, owed=None)],
    )
    seen = Seen(page)
    assert seen.tags <= set(TAGS)
    assert seen.attributes <= {"lang", "charset", "http-equiv", "content", "class", "type"}
    assert page.count("<script") == page.count("</script") == 1
    assert seen.text.count(EVIL) == 3
    assert "\u202e" not in page
    assert "<b onclick=1>\\u202e" in seen.text
    [line] = [line for line in page.splitlines() if line.startswith('{"type":"tombstone"')]
    assert prove([line], anchor=anchor(stone)).tombstones == (stone,)
    assert "http" not in page.replace("http-equiv", "")


OTHER = chain("other", ["a" * 64])[0]
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "no tombstone": ("evidence", {"evidence": []}),
    "a receipt alone": ("evidence", {"evidence": receipt()}),
    "a receipt among tombstones": ("evidence", {"evidence": [receipt()]}),
    "two people": ("evidence", {"evidence": [STONE, sealed(STONE, seq=2, subject_hash="b" * 64)]}),
    "two tenants": ("evidence", {"evidence": [STONE, sealed(OTHER, seq=2)]}),
    "one twice": ("evidence", {"evidence": [STONE, STONE]}),
    "an edited one": ("evidence", {"evidence": replace(STONE, memories=9)}),
    "a dry run": ("receipt", {"receipt": receipt(dry_run=True, complete=False)}),
    "another erasure's receipt": ("receipt", {"receipt": receipt(OTHER)}),
    "no receipt": ("receipt", {"receipt": "planted"}),
    "an altered one that was digested again": (
        "receipt",
        {"evidence": sealed(STONE, memories=9), "receipt": receipt(anchor=anchor(STONE))},
    ),
    "no count of what is left": ("remaining", {"remaining": -1}),
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


def test_a_receipt_of_several_people_is_every_ones() -> None:
    of_both = receipt(
        scope="record",
        subject_hashes=("a" * 64, "b" * 64),
        counts=Counts(memories=3, derived=1),
        anchor=Anchor(seq=2, digest="0" * 64),
    )
    page = certificate(sealed(STONE, scope="record"), receipt=of_both)
    assert "<h1>Certificate of a limited erasure</h1>" in page


def longest() -> str:
    """A page on which everything is as long as it may be."""
    many = 10**17
    stones = chain("W" * 256, ["f" * 64] * 9)
    one = [
        sealed(
            stone,
            erasure_id=STONE.erasure_id,
            seq=stone.seq + 2**61,
            scope="kinds",
            reason="operator",
            **dict.fromkeys(("memories", "derived", "provenance_edges", "artefacts"), many),
        )
        for stone in stones
    ]
    state = IndexState(adapter="W&" * 128, purged=many, purged_at=NOW, owed=many)
    return certificate(
        one,
        indexes=[state] * 20,
        deferred=True,
        anchor=Anchor(seq=2**62, digest="0" * 64),
        controller="W" * 80,
        reference="M" * 80,
        backups_until=date(2026, 12, 31),
        issued_at=NOW,
    )


def test_the_longest_page_has_no_more_lines_than_the_sheet() -> None:
    """A count by the widest letters; MEMORY_TEST_CHROMIUM has a browser print it below."""
    lines = sum(1 + len(word.strip()) // 100 for word in Seen(longest()).words if word.strip())
    assert 60 < lines <= 110


@pytest.mark.skipif(
    "MEMORY_TEST_CHROMIUM" not in os.environ, reason="MEMORY_TEST_CHROMIUM names no browser"
)
@pytest.mark.parametrize("page", [certificate(STONE), longest()], ids=["plain", "longest"])
def test_it_prints_on_one_sheet(page: str, tmp_path: Path) -> None:
    source, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    source.write_text(page, encoding="utf-8")
    browser = shutil.which(os.environ["MEMORY_TEST_CHROMIUM"])
    assert browser is not None
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer")
    command = [browser, *options, f"--print-to-pdf={printed}", source.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert printed.read_bytes().count(b"/Type /Page\n") == 1
