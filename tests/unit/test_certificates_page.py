"""The printed page is inert, whatever is given, and fits a sheet."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import date
from pathlib import Path

import pytest

from certifying import NOW, STONE, TAGS, Seen
from chains import anchor, chain, sealed
from memory import Anchor, IndexState, certificate, prove

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
    assert seen.tags <= TAGS
    assert seen.attributes <= {"lang", "charset", "http-equiv", "content", "class", "type"}
    assert page.count("<script") == page.count("</script") == 1
    assert seen.text.count(EVIL) == 3
    assert "\u202e" not in page
    assert "<b onclick=1>\\u202e" in seen.text
    [line] = [line for line in page.splitlines() if line.startswith('{"type":"tombstone"')]
    assert prove([line], anchor=anchor(stone)).tombstones == (stone,)
    assert "http" not in page.replace("http-equiv", "")


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
