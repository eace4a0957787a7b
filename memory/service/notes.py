"""The note of a recall: how it searched and, for an empty answer, why it is empty."""

from __future__ import annotations

from memory.ports import Found

__all__ = ["NO_TERMS", "note"]

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
