"""How much is found, per kind and per way of writing, on seeded texts made for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from identifiers import SENTENCES
from memory.redaction import default_redactor

EACH = 60

SEPARATED = {
    "aadhaar": [(4, 4, 4)],
    "virtual_id": [(4, 4, 4, 4)],
    "pan": [(5, 4, 1)],
    "gstin": [(2, 10, 3), (2, 5, 4, 1, 3)],
    "ifsc": [(4, 7), (4, 1, 6)],
    "phone_in": [(5, 5), (3, 3, 4), (4, 3, 3), (4, 6)],
    "voter_id": [(3, 7)],
    "passport": [(1, 7), (3, 5)],
    "driving_licence": [(4, 11), (2, 2, 11), (2, 2, 4, 7)],
    "bank_account": [(4, 4, 20), (5, 20)],
    "card": [(4, 4, 4, 4)],
    "iban": [(4, 4, 4, 4, 4, 4, 4)],
    "phone": [(3, 3, 8), (4, 4, 8)],
    "ssn": [(3, 2, 4)],
}
CASED = {"pan", "gstin", "ifsc", "voter_id", "iban", "email", "upi", "driving_licence"}
SCRIPTS = (0x0966, 0x09E6, 0x0AE6, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0A66, 0x0660, 0xFF10)


def pieces(value: str, sizes: tuple[int, ...]) -> list[str]:
    parts, at = [], 0
    for size in sizes:
        parts.append(value[at : at + size])
        at += size
    parts.append(value[at:])
    return [part for part in parts if part]


def reformatted(maker: Any, kind: str, value: str) -> str:
    """Write the value with separators, a prefix, in the other case, or over two lines."""
    if kind == "phone_in" and maker.random.random() < 0.4:
        lead = maker.one("+91 ", "+91-", "0", "91 ", "(+91) ", "+91", "0091 ")
        return lead + maker.one(" ", "-", "").join(pieces(value, (5, 5)))
    if kind == "email":
        local, domain = value.split("@")
        spelled = f"{local} (at) {domain.replace('.', ' (dot) ')}"
        return str(maker.one(value.upper(), value.title(), spelled))
    if kind in CASED and (kind not in SEPARATED or maker.random.random() < 0.4):
        return str(value.lower() if value.isupper() or kind != "upi" else value.upper())
    sizes = maker.random.choice(SEPARATED[kind])
    if kind == "card" and len(value) != 16:
        sizes = (4, 6, 5)
    joint = maker.one(" ", "-", " ", "-", ".", "\n")
    if kind in {"iban", "phone"}:
        joint = maker.one(" ", "-")
    parts = pieces(value, sizes)
    if joint == "\n":
        return f"{joint.join(parts[:2])}{' '.join(['', *parts[2:]])}"
    return str(joint.join(parts))


def disguised(maker: Any, kind: str, value: str) -> str:
    """Write the value with characters that only look like, or show, nothing."""
    ways = ["zero width", "wide"]
    if kind in SEPARATED:
        ways += ["no-break", "dash"]
    if value.isdigit():
        ways += ["script", "script", "script", "spaced script"]
    way = maker.one(*ways)
    if way == "zero width":
        at = maker.random.randrange(1, len(value))
        return value[:at] + maker.one("\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad") + value[at:]
    if way == "wide":
        return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in value)
    if way.endswith("script"):
        zero = maker.random.choice(SCRIPTS)
        digits = "".join(chr(zero + int(char)) for char in value)
        spaced = way.startswith("spaced") and kind in SEPARATED and kind != "bank_account"
        return " ".join(pieces(digits, SEPARATED[kind][0])) if spaced else digits
    joint = (
        maker.one("\u00a0", "\u202f", "\u2009")
        if way == "no-break"
        else maker.one("\u2013", "\u2010")
    )
    return str(joint.join(pieces(value, SEPARATED[kind][0])))


WRITINGS: dict[str, Callable[[Any, str, str], str]] = {
    "plain": lambda maker, kind, value: value,
    "reformatted": reformatted,
    "disguised": disguised,
}
GOALS = {"plain": 1.0, "reformatted": 0.98, "disguised": 0.95}
# A secret that is written otherwise is another secret.
ONLY_PLAIN = {"bearer_token", "basic_auth", "jwt", "private_key", "password", "secret"}


def found(kind: str, before: str, written: str, after: str) -> bool:
    """Return whether exactly the value is masked, as its kind, and nothing else is touched."""
    masked, findings = default_redactor.redact(before + written + after)
    spans = [(one.kind, one.start, one.end) for one in findings]
    whole = (kind, len(before), len(before) + len(written))
    return spans == [whole] and masked == before + findings[0].replacement + after


def count(maker: Any, kind: str, writing: str) -> tuple[int, list[str]]:
    missed = []
    for index in range(EACH):
        value = getattr(maker, kind)()
        sentence = SENTENCES[kind][index % len(SENTENCES[kind])]
        before, after = sentence.format("\0").split("\0")
        if kind == "password" and "://" in before:
            value = value.replace("#", "!")
        written = WRITINGS[writing](maker, kind, value)
        if not found(kind, before, written, after):
            missed.append(before + written + after)
    return EACH - len(missed), missed


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("writing", WRITINGS)
def test_identifiers_are_found_however_they_are_written(
    maker: Any, report: Callable[[str], None], writing: str, seed: int
) -> None:
    source = maker(seed)
    figures: Counter[str] = Counter()
    missed = []
    kinds = [kind for kind in SENTENCES if writing == "plain" or kind not in ONLY_PLAIN]
    if writing == "reformatted":
        kinds = [kind for kind in kinds if kind in SEPARATED or kind in CASED]
    for kind in kinds:
        figures[kind], misses = count(source, kind, writing)
        missed += misses
    report(f"{writing}: " + ", ".join(f"{kind} {figures[kind]}/{EACH}" for kind in kinds))
    assert sum(figures.values()) >= GOALS[writing] * EACH * len(kinds), missed
