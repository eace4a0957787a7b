"""What our drawings share: colours for a light and a dark page, and the card they stand on. Pure.

A drawing brings its own ground, so that it is legible on any page. It is dark where the notebook
says so (JupyterLab, VS Code), else where the reader's system does. Colours are written into the
elements too, for viewers that know no style sheet: there a drawing is light.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final, Literal

__all__ = ["Tone", "card", "clean", "paint", "short", "solid", "width"]

Tone = Literal["red", "blue", "amber", "green", "grey"]

_LIGHT: Final = {
    "card": "#ffffff",
    "rim": "#d1d9e0",
    "ink": "#1f2328",
    "dim": "#59636e",
    "red": "#fde4e1",
    "red-line": "#c0392b",
    "blue": "#eef3f8",
    "blue-line": "#5b7a99",
    "amber": "#fff4d1",
    "amber-line": "#9a6700",
    "green": "#e3f3e7",
    "green-line": "#2e7d46",
    "grey": "#f0f1f3",
    "grey-line": "#6e7781",
}
_DARK: Final = {
    "card": "#0d1117",
    "rim": "#3d444d",
    "ink": "#e6edf3",
    "dim": "#a3abb4",
    "red": "#4b1d1a",
    "red-line": "#ff7b72",
    "blue": "#13243a",
    "blue-line": "#79b0e6",
    "amber": "#3a2d05",
    "amber-line": "#e3b341",
    "green": "#12311d",
    "green-line": "#56d364",
    "grey": "#21262d",
    "grey-line": "#8b949e",
}
_FONT: Final = "font-family='system-ui,Segoe UI,Helvetica,Arial,sans-serif'"
_WIDE: Final = frozenset("mwMW@%…●")
_THIN: Final = frozenset("iljtrI.,:;'|!()[] ")


def _variables(colours: dict[str, str]) -> str:
    return "{" + "".join(f"--em-{name}:{value};" for name, value in colours.items()) + "}"


_STYLE: Final = (
    "<style>"
    f".em{_variables(_LIGHT)}"
    f"@media(prefers-color-scheme:dark){{.em{_variables(_DARK)}}}"
    f"[data-jp-theme-light=true] .em,.vscode-light .em{_variables(_LIGHT)}"
    f"[data-jp-theme-light=false] .em,.vscode-dark .em{_variables(_DARK)}"
    + "".join(
        f".em .f-{name}{{fill:var(--em-{name})}}.em .s-{name}{{stroke:var(--em-{name})}}"
        for name in _LIGHT
    )
    + "</style>"
)


def paint(**parts: str) -> str:
    """Return the attributes that paint an element: ``fill="ink"``, ``stroke="red-line"``."""
    plain = " ".join(f"{part}='{_LIGHT[name]}'" for part, name in parts.items())
    classes = " ".join(f"{part[0]}-{name}" for part, name in parts.items())
    return f"{plain} class='{classes}'"


def solid(tone: Tone) -> tuple[str, str]:
    """Return a tone's fill and line for a light page, where no style sheet is: for Mermaid."""
    return _LIGHT[tone], _LIGHT[f"{tone}-line"]


def card(across: float, down: float, *, title: str, text: str, parts: Iterable[str]) -> str:
    """Return an SVG of this size; ``title`` and ``text`` say to a screen reader what it shows."""
    name = escape(clean(title))
    size = f"width='{across:.0f}' height='{down:.0f}'"
    return "".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' class='em' {size}"
            f" viewBox='0 0 {across:.0f} {down:.0f}' {_FONT} font-size='12' role='img'"
            f" aria-label='{name}'>",
            f"<title>{name}</title><desc>{escape(clean(text))}</desc>{_STYLE}",
            f"<rect x='.5' y='.5' width='{across - 1:.0f}' height='{down - 1:.0f}' rx='6'"
            f" {paint(fill='card', stroke='rim')}/>",
            *parts,
            "</svg>",
        ]
    )


def clean(text: str) -> str:
    """Return the text on one line, without what XML or a terminal could take for a command."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def width(text: str, size: float = 12, *, bold: bool = False) -> float:
    """Return about how wide the text is, in pixels, in a wide font such as DejaVu or Verdana.

    All hexadecimal digits are alike, so that a drawing is not wider for another id.
    """
    ems = sum(0.95 if c in _WIDE else 0.38 if c in _THIN else 0.64 for c in text)
    return ems * size * (1.1 if bold else 1.0)


def short(text: str, room: float, size: float = 12, *, bold: bool = False) -> str:
    """Return the text on one line, cut to so many pixels."""
    line = clean(text)
    if width(line, size, bold=bold) <= room:
        return line
    while line and width(f"{line}…", size, bold=bold) > room:
        line = line[:-1]
    return f"{line.rstrip()}…"
