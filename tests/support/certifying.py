"""A tombstone to certify, a receipt of it, and what is seen on the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

from chains import chain
from memory import Counts, Receipt, Tombstone

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
STONE = chain("shop", ["a" * 64])[0]
# What a page may be made of.
TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th"}
TAGS |= {"td", "code", "ul", "li", "div", "script"}


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
