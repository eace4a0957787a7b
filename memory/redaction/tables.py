"""Tables of separated values inside a text: what the first line calls a column."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["column_head"]

_REACH = 512  # characters of the table above the row, and of the row


def column_head(text: str, start: int) -> str:
    """Return the name above the cell at ``start``; empty where there is no table."""
    line = text.rfind("\n", max(0, start - _REACH), start) + 1
    if not line:
        return ""
    end = text.find("\n", line, line + _REACH)
    row = text[line : end if end >= 0 else line + _REACH]
    above = text[max(0, line - _REACH) : line - 1].split("\n")
    for separator in ",|\t;":
        count = row.count(separator)
        head = _first_alike(reversed(above), separator, count) if count else ""
        if head:
            return head.split(separator)[text.count(separator, line, start)].strip()
    return ""


def _first_alike(lines: Iterable[str], separator: str, count: int) -> str:
    """Return the last of the lines up to the first that has another number of separators."""
    head = ""
    for line in lines:
        if line.count(separator) != count:
            break
        head = line
    return head
