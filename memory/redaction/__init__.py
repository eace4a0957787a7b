"""Masks identifiers before anything is embedded, written or logged. Pure and in linear time."""

from __future__ import annotations

from memory.redaction import checks
from memory.redaction.engine import NoRedactor, PatternRedactor
from memory.redaction.walk import Redacted, redact_fields, redact_many
from memory.types import Finding

__all__ = [
    "NoRedactor",
    "PatternRedactor",
    "Redacted",
    "checks",
    "default_redactor",
    "no_redactor",
    "redact_fields",
    "redact_many",
    "scan",
    "strict_redactor",
]

default_redactor = PatternRedactor()
strict_redactor = PatternRedactor(bare_account_numbers=True, long_hexadecimal=True)
no_redactor = NoRedactor()


def scan(text: str) -> tuple[Finding, ...]:
    """Return what the default redactor would mask, without the values.

    >>> from memory import redaction
    >>> [found.kind for found in redaction.scan("Write to dana@example.com")]
    ['email']
    """
    return default_redactor.scan(text)
