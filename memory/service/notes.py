"""What is said in words: how a recall searched, why it is empty, what stopped an erasure."""

from __future__ import annotations

from memory.ports import Found
from memory.types import Receipt

__all__ = ["NO_TERMS", "kept", "note", "owing"]

NO_TERMS = "nothing found: the text holds no word to search for"


def note(found: Found, *, masked: bool = False) -> str:
    """Return the note, so that a broken pipeline does not look like an honest empty memory.

    ``masked`` is whether redaction changed the metadata that was asked for.
    """
    parts = [found.how]
    if masked:
        parts.append("the metadata was masked before it was compared")
    if found.skipped:
        number = f"at least {found.skipped}" if found.more else f"{found.skipped}"
        parts.append(f"{number} skipped because embedded by another model")
    if not found.hits:
        parts.append(_why_empty(found))
    return "; ".join(parts)


def _why_empty(found: Found) -> str:
    if not found.holds_any:
        return "nothing found: this tenant holds no records"
    return "nothing found: no record matches"


def kept(receipt: Receipt) -> str:
    """Say that a hold stopped an erasure, and what becomes of it."""
    if receipt.deferred:
        after = "the request is recorded, and release completes it"
    else:
        after = "it is not completed by the release: call again then"
    return f"a legal hold keeps what was to be erased; {after}"


def owing(receipt: Receipt) -> str:
    """Say which indexes keep an erasure from being complete; their names are the host's code."""
    names = ", ".join(repr(name) for name in receipt.outstanding)
    return f"not confirmed by {names}; the database is clean: call purge_outstanding"
