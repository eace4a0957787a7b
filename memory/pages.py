"""One sheet of A4 as HTML: rows, notes and a place to sign. Pure; everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

__all__ = [
    "Code",
    "Rows",
    "few",
    "limits",
    "listed",
    "page",
    "plural",
    "short",
    "verifying",
    "visible",
]


class Code(str):
    """A value to be compared letter by letter."""

    __slots__ = ()


Rows = list[tuple[str, str]]

_SHOWN: Final = 3
_NAME: Final = 28
_STYLE: Final = """
@page { size: A4; margin: 11mm 15mm }
* { box-sizing: border-box }
body { font: 8.4pt/1.28 "DejaVu Sans", Verdana, Arial, sans-serif; color: #111; background: #fff;
  max-width: 180mm; margin: 0 auto }
h1 { font-size: 15pt; margin: 0 0 2mm }
h2 { font-size: 9.5pt; margin: 2.6mm 0 .8mm; border-bottom: .3mm solid #111 }
.verdict { border: .5mm solid #111; padding: 1.8mm 3mm; font-weight: bold }
.open { border: 1mm double #111; background: #eee }
table { border-collapse: collapse; table-layout: fixed; width: 100% }
th { text-align: left; font-weight: normal; color: #444; width: 48mm; padding: .2mm 3mm .2mm 0;
  overflow-wrap: anywhere; vertical-align: top }
td { padding: .2mm 0; overflow-wrap: anywhere; vertical-align: top }
code { font: 7.2pt/1.2 "DejaVu Sans Mono", Consolas, monospace; overflow-wrap: anywhere }
ul { margin: 0; padding-left: 4.5mm }
.sign { display: flex; gap: 6mm; margin-top: 11mm }
.sign div { flex: 1; border-top: .3mm solid #111; padding-top: .8mm; color: #444 }
@media print { body { -webkit-print-color-adjust: exact; print-color-adjust: exact } }
""".strip()


def page(
    title: str,
    verdict: str,
    *,
    fine: bool,
    sections: Sequence[tuple[str, Rows]],
    notes: Sequence[tuple[str, Sequence[str]]],
    issued: str,
    data: str,
) -> str:
    """Return the page; ``data`` is a line of JSON that it carries for programs, on its own."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
        " style-src 'unsafe-inline'\">",
        f"<title>{escape(title)}</title>",
        f"<style>\n{_STYLE}\n</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="verdict{"" if fine else " open"}">{escape(verdict)}</p>',
        *(_section(name, rows) for name, rows in sections),
        *(_note(name, lines) for name, lines in notes),
        _signature(issued),
        # No character of it ends the element, whatever the keys in it are.
        f'<script type="application/x-ndjson">\n{_inert(data)}\n</script>',
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _section(name: str, rows: Rows) -> str:
    cells = "\n".join(
        f"<tr><th>{escape(label)}</th><td>{_cell(value)}</td></tr>" for label, value in rows
    )
    return f"<h2>{escape(name)}</h2>\n<table>{cells}</table>"


def _cell(value: str) -> str:
    return f"<code>{escape(value)}</code>" if isinstance(value, Code) else escape(value)


def _note(name: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_cell(line)}</li>" for line in lines)
    return f"<h2>{escape(name)}</h2>\n<ul>{items}</ul>"


def _signature(issued: str) -> str:
    when = f"Issued {escape(issued)}" if issued else "Place, date"
    places = (when, "Name, function", "Signature")
    return f'<div class="sign">{"".join(f"<div>{place}</div>" for place in places)}</div>'


def _inert(data: str) -> str:
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def verifying(anchor: str) -> list[str]:
    """Return how to verify what a certificate says, without the database."""
    return [
        'The file of this page has a line that begins with {"type":"tombstone". Its digest is that'
        " of its fields; a few lines of Python compute it: docs/verify.md in the source of the"
        " package erasable-memory.",
        "Kept outside the database, position and digest vouch for the whole chain up to here: give"
        " them with an exported stream of tombstones to",
        Code(f"memory tombstones verify FILE --anchor {anchor}"),
    ]


def limits(backups_until: str) -> list[str]:
    """Return what a certificate does not say, in plain words."""
    backups = (
        f"Backups made before may hold the data until {backups_until}, when the last is deleted."
        if backups_until
        else "Backups made before may hold the data; until when is not stated here."
    )
    return [
        "It states what the database recorded. Whether a law was met is not for it to say, and"
        " whether the data were linked to the person in the first place it cannot know.",
        backups,
        "Copies that nobody registered (logs, exports, providers of models) are not covered.",
        "Deleted bytes stay in the server's files until they are overwritten or scrubbed.",
        "A superuser who switched off the database's triggers could have written other counts or"
        " times before this page was made; afterwards, whoever keeps the page can tell.",
        "The hash stands for the person only to who holds the key and the secret it was made with.",
    ]


def plural(count: int, one: str, many: str) -> str:
    """Return a number with its words."""
    return f"{count} {one if count == 1 else many}"


def few(rows: Rows) -> Rows:
    """Return the first rows of a list that may be too long, and how many more there are."""
    more = len(rows) - _SHOWN
    return rows if more <= 0 else [*rows[:_SHOWN], ("", f"and {more} more: see the database")]


def short(name: str, most: int = _NAME) -> str:
    """Return a name that may be too long for its place, with what nobody would see spelt out."""
    seen = visible(name)
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


def visible(text: str, *, kept: str = "") -> str:
    """Return a text with what commands a terminal, or nobody would see, spelt out."""
    return "".join(c if c.isprintable() or c in kept else f"\\u{ord(c):04x}" for c in text)


def listed(names: Sequence[str]) -> str:
    """Return the last few of many, and how many there are besides."""
    shown = ", ".join(names[-_SHOWN:])
    rest = len(names) - _SHOWN
    return shown if rest <= 0 else f"{shown}, and {rest} before"
