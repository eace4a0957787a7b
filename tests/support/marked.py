"""Texts in which what is to be masked stands in braces."""

from __future__ import annotations

from memory.redaction import default_redactor


def misread(kind: str, lines: str) -> list[tuple[str, object]]:
    """Return the lines in which something else is masked than what stands in braces."""
    wrong: list[tuple[str, object]] = []
    for line in filter(None, map(str.strip, lines.splitlines())):
        text, spans = _marked(line.replace("\\n", "\n"))
        found = [(one.kind, one.start, one.end) for one in default_redactor.redact(text)[1]]
        if found != [(kind, *span) for span in spans]:
            wrong.append((line, found))
    return wrong


def _marked(line: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without its braces, and the spans they stood around."""
    text, spans = "", []
    for part in line.split("{"):
        inside, closed, after = part.partition("}")
        if closed:
            spans.append((len(text), len(text) + len(inside)))
        text += inside + after
    return text, spans
