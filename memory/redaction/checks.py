"""Checksum and structure validators, usable on their own.

Each takes the compact form: ASCII, upper case, no separators. None of them raises; anything that
is not of the right form is simply not valid. A valid checksum alone does not make a number an
identifier: 8 % of all 12-digit numbers pass the Aadhaar check, 10 % of all 16-digit numbers Luhn.
"""

from __future__ import annotations

import re
from itertools import cycle

__all__ = ["aadhaar", "gstin", "iban", "ifsc", "luhn", "mod97", "pan", "verhoeff", "virtual_id"]

_BASE36 = {char: value for value, char in enumerate("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
_NUMERALS = {ord(char): str(value) for char, value in _BASE36.items()}

# Holder types: association, body of individuals, company, firm, government, Hindu undivided family,
# artificial juridical person, local authority, person, trust (Income-tax Rules, rule 114).
_PAN = re.compile(r"[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]")
_GSTIN = re.compile(r"[0-9]{2}[A-Z]{5}[0-9]{4}[A-Z][1-9A-Z]Z[0-9A-Z]")
_IFSC = re.compile(r"[A-Z]{4}0[A-Z0-9]{6}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_STATES = frozenset(f"{code:02d}" for code in (*range(1, 39), 97, 99))


def _dihedral(left: int, right: int) -> int:
    """Multiply in the dihedral group of order ten: 0 to 4 are rotations, 5 to 9 reflections."""
    sign = 1 if left < 5 else -1
    return (left + sign * right) % 5 + (5 if (left < 5) != (right < 5) else 0)


def _powers(count: int) -> list[list[int]]:
    """Return the first powers of Verhoeff's permutation; the eighth is the identity again."""
    step = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]
    rows = [list(range(10))]
    while len(rows) < count:
        rows.append([step[digit] for digit in rows[-1]])
    return rows


# One table per position: state and digit to the next state.
_VERHOEFF = [
    [[_dihedral(state, row[digit]) for digit in range(10)] for state in range(10)]
    for row in _powers(8)
]


def _digits(number: str, shortest: int, longest: int) -> bool:
    return shortest <= len(number) <= longest and number.isascii() and number.isdigit()


def verhoeff(number: str) -> bool:
    """Return whether the last digit is the Verhoeff check digit (J. Verhoeff, 1969).

    >>> from memory.redaction.checks import verhoeff
    >>> verhoeff("2363"), verhoeff("2364")
    (True, False)
    """
    if not _digits(number, 2, 64):
        return False
    state = 0
    for table, digit in zip(cycle(_VERHOEFF), number.encode()[::-1]):
        state = table[state][digit - 48]
    return state == 0


# A digit's code to the cross sum of its double.
_DOUBLED = bytes(
    sum(map(int, str(2 * (code - 48)))) if 48 <= code < 58 else 0 for code in range(256)
)


def aadhaar(number: str) -> bool:
    """Return whether this is an Aadhaar number: 12 digits, the first 2 to 9, Verhoeff (UIDAI).

    >>> from memory.redaction.checks import aadhaar
    >>> aadhaar("234123412346"), aadhaar("234123412347")
    (True, False)
    """
    return len(number) == 12 and number[0] >= "2" and verhoeff(number)


def virtual_id(number: str) -> bool:
    """Return whether this is an Aadhaar virtual id: 16 digits from 2 up, Verhoeff (UIDAI).

    >>> from memory.redaction.checks import virtual_id
    >>> virtual_id("2341234123412341"), virtual_id("2341234123412342")
    (True, False)
    """
    return len(number) == 16 and number[0] >= "2" and verhoeff(number)


def luhn(number: str) -> bool:
    """Return whether the last digit is the Luhn check digit (ISO/IEC 7812-1, annex B).

    >>> from memory.redaction.checks import luhn
    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    if not _digits(number, 2, 64):
        return False
    codes = number.encode()
    plain = codes[::-2]
    return (sum(plain) - 48 * len(plain) + sum(codes[-2::-2].translate(_DOUBLED))) % 10 == 0


def pan(number: str) -> bool:
    """Return whether this has the form of a PAN: a holder letter fourth, a serial that is not 0.

    The last letter is a check letter whose rule is not published.

    >>> from memory.redaction.checks import pan
    >>> pan("ABCPE1234F"), pan("ABCPE0000F")
    (True, False)
    """
    return _PAN.fullmatch(number) is not None and number[5:9] != "0000"


def gstin(number: str) -> bool:
    """Return whether this is a GSTIN: state code, PAN, entity, Z, check character (GSTN).

    States are 01 to 38, 97 (other territory) and 99 (centre). The check character is Luhn's scheme
    in base 36.

    >>> from memory.redaction.checks import gstin
    >>> gstin("27AAPFU0939F1ZV"), gstin("27AAPFU0939F1ZW")
    (True, False)
    """
    if _GSTIN.fullmatch(number) is None or number[:2] not in _STATES or not pan(number[2:12]):
        return False
    total = 0
    for position, char in enumerate(number[:14]):
        product = _BASE36[char] * (1 + position % 2)
        total += product // 36 + product % 36
    return (total + _BASE36[number[14]]) % 36 == 0


def ifsc(code: str) -> bool:
    """Return whether this has the form of an IFSC: bank, zero, branch (RBI); no checksum.

    >>> from memory.redaction.checks import ifsc
    >>> ifsc("HDFC0000123"), ifsc("HDFC1000123")
    (True, False)
    """
    return _IFSC.fullmatch(code) is not None


def mod97(number: str) -> bool:
    """Return whether the ISO/IEC 7064 MOD 97-10 check holds, letters counting 10 to 35.

    >>> from memory.redaction.checks import mod97
    >>> mod97("WEST12345698765432GB82"), mod97("WEST12345698765432GB83")
    (True, False)
    """
    if not (number.isascii() and number.isalnum() and number.isupper() and len(number) <= 64):
        return False
    return int(number.translate(_NUMERALS)) % 97 == 1


# Lengths from the SWIFT IBAN registry (ISO 13616), and that of Algeria, which is not in it.
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ DZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}


def iban_length(country: str) -> int:
    """Return how long an IBAN of this country is; 0 for a country that issues none."""
    return _IBAN_LENGTHS.get(country, 0)


def iban(number: str) -> bool:
    """Return whether this is an IBAN: length by country and MOD 97-10 (ISO 13616).

    >>> from memory.redaction.checks import iban
    >>> iban("GB82WEST12345698765432"), iban("GB82WEST12345698765433")
    (True, False)
    """
    if _IBAN.fullmatch(number) is None or len(number) != iban_length(number[:2]):
        return False
    return mod97(number[4:] + number[:4])
