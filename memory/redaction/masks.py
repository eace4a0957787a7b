"""What stands in place of an identifier: the kind, and for some the last four digits.

A mask found in a text is a mask made earlier. Nothing looks inside it or matches across it, which
is why redacting twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["HIDDEN", "LABELS", "hide", "mask", "recognise"]

# Stands for a masked character: no letter, no digit, no separator.
HIDDEN = "\ufffc"

# A label is the kind in capitals, but for these.
LABELS = {"phone_in": "PHONE", "bank_account": "ACCOUNT"}
_TAILED = frozenset({"phone_in", "phone", "card", "bank_account"})
KINDS = (
    "aadhaar",
    "api_key",
    "bank_account",
    "basic_auth",
    "bearer_token",
    "card",
    "driving_licence",
    "email",
    "gstin",
    "iban",
    "ifsc",
    "ip_address",
    "jwt",
    "pan",
    "passport",
    "password",
    "phone",
    "phone_in",
    "private_key",
    "secret",
    "ssn",
    "upi",
    "virtual_id",
    "voter_id",
)


def _label(kind: str) -> str:
    return LABELS.get(kind) or kind.upper()


_WHOLE = {kind: f"[{_label(kind)}]" for kind in KINDS if kind not in _TAILED}
_HEADS = {kind: f"[{_label(kind)}:****" for kind in _TAILED}


def mask(kind: str, matched: str) -> str:
    """Return the mask for a value as it stands in the copy.

    Phone, card and account keep their last four digits, which is how people tell two of them apart;
    the rest keep nothing.
    """
    head = _HEADS.get(kind)
    if head is None:
        return _WHOLE.get(kind) or f"[{_label(kind)}]"
    tail = matched[-4:]
    if not (tail.isascii() and tail.isdigit()):
        tail = "".join([char for char in matched if "0" <= char <= "9"])[-4:]
    return f"{head}{tail}]"


def recognise(kinds: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of the masks of the built-in kinds and of ``kinds``."""
    plain = {re.escape(_label(kind)) for kind in (*KINDS, *kinds) if kind not in _TAILED}
    tailed = {_label(kind) for kind in _TAILED}
    return re.compile(
        rf"\[(?:{'|'.join(sorted(plain))}|(?:{'|'.join(sorted(tailed))}):\*{{4}}[0-9]{{4}})\]"
    )


def hide(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with the spans made unreadable, and of the same length."""
    pieces: list[str] = []
    last = 0
    for start, end in spans:
        pieces += text[last:start], HIDDEN * (end - start)
        last = end
    return "".join((*pieces, text[last:]))
