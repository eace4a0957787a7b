"""Which kind of identifier a run of digit groups is: one function per kind, tried in order.

A rule sees the digits, how they are grouped and what the words around say. Where it returns False
the next one is asked; a number that no rule takes stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from memory.redaction import checks
from memory.redaction.context import Said
from memory.redaction.plans import NORTH_AMERICAN, country_code, issued_card

__all__ = ["LEADS", "Number", "classify"]

# What may be glued to a number without making it part of a longer word: ``Ph9876543210``.
LEADS = frozenset({"phone", "aadhaar", "account", "card", "upi"})


class Number:
    """A candidate: its digits, and how they stand in the text.

    ``lengths`` are those of its groups, ``joints`` the separators between them, ``plus`` whether a
    plus sign leads, ``prefix`` what a word glued to it (``INV-``) makes of it. ``said`` is what the
    words around it say, ``cue`` what it is said to be. ``bare`` are digits without a separator,
    ``ragged`` is a number with a single digit among longer groups, behind the first. ``thing`` is
    whether the words call it an order, a ticket, an amount: then they win.
    """

    __slots__ = (
        "bare",
        "cue",
        "digits",
        "joints",
        "lengths",
        "plus",
        "ragged",
        "said",
        "thing",
    )

    def __init__(
        self,
        digits: str,
        lengths: tuple[int, ...],
        said: Said,
        *,
        joints: str = "",
        plus: bool = False,
        prefix: str = "",
    ) -> None:
        self.digits = digits
        self.lengths = lengths
        self.joints = joints
        self.plus = plus
        self.said = said
        self.cue = prefix or said.cue
        self.bare = len(lengths) == 1
        self.ragged = not self.bare and 1 in lengths[1:] and max(lengths) > 1
        if prefix:
            self.thing = prefix in _THINGS
        elif said.cue == "weak":
            self.thing = self.bare
        else:
            self.thing = said.cue in _THINGS and said.binding

    @property
    def regular(self) -> bool:
        """Whether it is grouped as people group such numbers, not a row of other numbers."""
        lengths = self.lengths
        if len(lengths) == 2:
            return "\n" in self.joints or lengths in _HALVES
        if self.bare or lengths == (3, 3, 3, 3):
            return True
        return set(lengths[:-1]) == {4} and 2 <= lengths[-1] <= 4


_THINGS = frozenset({"reference", "amount"})
_HALVES = {(6, 6), (4, 8), (8, 4), (8, 8)}
_CARD_SHAPES = {(4, 6, 5), (4, 6, 4), (6, 10), (6, 13)}  # beside the regular ones


def aadhaar(number: Number) -> bool:
    """UIDAI: twelve digits, the first 2 to 9, Verhoeff; usually written 4-4-4."""
    if not checks.aadhaar(number.digits):
        return False
    if number.cue in {"aadhaar", "virtual_id"}:
        return True
    if number.thing or number.cue in {"upi", "account"} or not number.regular or _years(number):
        return False
    dialled = number.digits[:2] == "91" and _mobile(number.digits[2:])
    return number.lengths == (4, 4, 4) or not dialled


def virtual_id(number: Number) -> bool:
    """UIDAI: a revocable stand-in for an Aadhaar number; sixteen digits, Verhoeff."""
    if not checks.virtual_id(number.digits):
        return False
    if number.cue in {"aadhaar", "virtual_id"}:
        return True
    return not number.thing and number.cue not in {"account", "card"} and number.regular


def card(number: Number) -> bool:
    """ISO/IEC 7812: an issuer's range, its lengths, and Luhn.

    Lengths and ranges that collide with everyday numbers (13-digit Visa and EAN, Maestro) need the
    word.
    """
    digits = number.digits
    named = number.cue == "card"
    if not issued_card(digits, named=named) or not checks.luhn(digits):
        return False
    if named:
        return True
    regular = number.regular or number.lengths in _CARD_SHAPES
    return not number.thing and number.cue not in {"account", "virtual_id", "aadhaar"} and regular


def account(number: Number) -> bool:
    """RBI: Indian bank accounts have 9 to 18 digits and no common checksum: the word is needed."""
    if number.cue not in {"account", "ifsc"} or not _grouped_as_account(number.lengths):
        return False
    if number.cue == "account":
        return number.said.gap <= 4 and (not _mobile(number.digits) or number.said.gap == 0)
    return not _mobile(number.digits)


def _grouped_as_account(lengths: tuple[int, ...]) -> bool:
    """Return whether it is in one piece, or in a few of which only the last may be short."""
    return len(lengths) == 1 or min(lengths[:-1]) >= 3


def _mobile(digits: str) -> bool:
    return len(digits) == 10 and digits[0] >= "6"


_LEADS = frozenset({"", "0", "91", "091", "0091"})
_SHAPES = {(10,), (5, 5), (3, 3, 4), (4, 3, 3), (3, 4, 3), (4, 6), (6, 4), (2, 4, 4), (3, 7)}


def mobile(number: Number) -> bool:
    """DoT numbering plan: ten digits from 6 up; 0, 91, +91 or 0091 may lead."""
    digits = number.digits
    country = digits[:-10]
    if country not in _LEADS or not _mobile(digits[-10:]):
        return False
    if number.plus and country not in {"91", "091"}:
        return False
    if number.plus:
        return True
    if number.cue in {"phone", "upi"}:
        return True
    if number.thing or number.cue in {"card", "aadhaar", "ssn", "passport", "pan"}:
        return False
    if number.bare and not country:
        return True
    if country and (number.said.cue in {"account", "ifsc"} or number.joints[:1] == "."):
        return False
    return _national(number.lengths, len(country)) in _SHAPES or (
        len(number.lengths) == 2 and "\n" in number.joints
    )


def _national(lengths: tuple[int, ...], lead: int) -> tuple[int, ...]:
    """Return the groups without the country code, which may stand alone or begin the first."""
    if not lead:
        return lengths
    first = lengths[0] - lead
    return lengths[1:] if not first else (first, *lengths[1:])


def landline(number: Number) -> bool:
    """Other Indian numbers, only where the words say phone: STD code and subscriber number."""
    if number.cue != "phone" or number.said.gap > 2:
        return False
    return (number.digits[0] == "0" and len(number.digits) == 11) or _indian_landline(number)


def _indian_landline(number: Number) -> bool:
    digits = number.digits
    return number.plus and digits[:2] == "91" and len(digits) == 12


def north_american(number: Number) -> bool:
    """NANP: area code and exchange from 200 up, written 3-3-4, with a 1 in front or not."""
    digits = number.digits
    lead = len(digits) - 10
    if number.thing or lead not in {0, 1} or (lead and digits[0] != "1"):
        return False
    if not NORTH_AMERICAN.fullmatch(digits[lead:]):
        return False
    if number.cue == "phone" and number.said.gap <= 3:
        return True
    shaped = number.lengths == ((1, 3, 3, 4) if lead else (3, 3, 4))
    return shaped and any(joint in number.joints for joint in "-.)")


def international(number: Number) -> bool:
    """ITU-T E.164: a plus sign, a country code in use, at most fifteen digits."""
    if not number.plus or len(number.digits) > 15 or not country_code(number.digits):
        return False
    return len(number.digits) >= (10 if number.bare else 9) and number.lengths[1:].count(1) <= 1


def social_security(number: Number) -> bool:
    """SSA: area, group and serial, none of them zero, area not 666 or from 900; 3-2-4."""
    digits = number.digits
    if len(digits) != 9 or number.plus or digits[:3] in {"000", "666"} or digits[0] == "9":
        return False
    if digits[3:5] == "00" or digits[5:] == "0000":
        return False
    if number.cue == "ssn":
        return True
    return number.lengths == (3, 2, 4) and number.joints == "--" and not number.thing


def _years(number: Number) -> bool:
    """Return whether the groups read as a row of years: ``2021 2022 2023``."""
    if set(number.lengths) != {4}:
        return False
    groups = (number.digits[at : at + 4] for at in range(0, len(number.digits), 4))
    return all("1900" <= group < "2100" for group in groups)


_Rule = Callable[[Number], bool]
_RULES: tuple[tuple[str, _Rule, range], ...] = (
    ("aadhaar", aadhaar, range(12, 13)),
    ("card", card, range(12, 20)),
    ("virtual_id", virtual_id, range(16, 17)),
    ("bank_account", account, range(9, 19)),
    ("phone_in", mobile, range(10, 15)),
    ("phone_in", landline, range(11, 13)),
    ("phone", north_american, range(10, 12)),
    ("phone", international, range(8, 16)),
    ("ssn", social_security, range(9, 10)),
)
_NAMED = {
    "aadhaar": {"aadhaar"},
    "card": {"card"},
    "virtual_id": {"virtual_id", "aadhaar"},
    "bank_account": {"account"},
    "phone_in": {"phone"},
    "phone": {"phone"},
    "ssn": {"ssn"},
}
_DIALLED = frozenset({"phone", "phone_in"})
_BY_LENGTH = {
    length: tuple((kind, rule) for kind, rule, lengths in _RULES if length in lengths)
    for length in range(8, 20)
}


def classify(number: Number) -> str:
    """Return the kind of the first rule that takes the number; empty if none does."""
    plus, ragged = number.plus, number.ragged
    for kind, rule in _BY_LENGTH[len(number.digits)]:
        if plus and kind not in _DIALLED:
            continue
        if ragged and not (plus or number.cue in _NAMED[kind]):
            continue
        if rule(number):
            return kind
    return ""
