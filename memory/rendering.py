"""Small HTML tables for notebooks. Pure; every cell is escaped.

No colours, so that a table is as legible as the page it stands on, light or dark. Texts stand left,
where JupyterLab would put them right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

__all__ = ["facts", "table"]

_LEFT: Final = " style='text-align:left'"
_RIGHT: Final = " style='text-align:right;font-variant-numeric:tabular-nums'"


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    note: str = "",
) -> str:
    """Return an HTML table; ``caption`` stands above it and ``note`` below.

    A number stands right, anything else left. Without rows there is no header either.
    """
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    head = "".join(f"<th scope='col'{_LEFT}>{escape(name)}</th>" for name in header)
    top = f"<thead><tr>{head}</tr></thead>" if body else ""
    foot = (
        f"<tfoot><tr><td colspan='{len(header)}'{_LEFT}><small>{escape(note)}</small></td></tr>"
        "</tfoot>"
        if note
        else ""
    )
    return f"<table>{_caption(caption)}{top}<tbody>{body}</tbody>{foot}</table>"


def facts(rows: Iterable[tuple[str, object]], *, caption: str) -> str:
    """Return an HTML table of labels and what they are of one thing, which ``caption`` names."""
    body = "".join(
        f"<tr><th scope='row'{_LEFT}>{escape(name)}</th><td{_LEFT}>{escape(str(value))}</td></tr>"
        for name, value in rows
    )
    return f"<table>{_caption(caption)}<tbody>{body}</tbody></table>"


def _caption(text: str) -> str:
    if not text:
        return ""
    return f"<caption style='text-align:left;font-weight:600'>{escape(text)}</caption>"


def _cell(cell: object) -> str:
    number = isinstance(cell, int | float) and not isinstance(cell, bool)
    shown = f"{cell:.3f}" if isinstance(cell, float) else str(cell)
    return f"<td{_RIGHT if number else _LEFT}>{escape(shown)}</td>"
