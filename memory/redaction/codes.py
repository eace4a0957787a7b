"""Identifiers of letters and digits: PAN, GSTIN, IFSC, voter id, passport, licence, IBAN.

Each function states its rule and source. Codes are matched in either case and with separators; the
less a code proves by itself, the more the words around have to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from memory.redaction import checks, context
from memory.redaction.candidate import Candidate
from memory.redaction.view import View

__all__ = ["driving_licences", "gstins", "ibans", "ifscs", "pans", "passports", "voter_ids"]

_GAP = r"[ \-./\t\r\n]{0,2}"
_GAPS = frozenset(" -./\t\r\n")
_REACH = 64
_LONGEST = 48  # characters of a code with its gaps
_EDGE = "(?<![A-Za-z0-9])"
_STOP = "(?![A-Za-z0-9])"
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")


def _spaced(classes: str) -> re.Pattern[str]:
    """Return the pattern of a code with separators anywhere: L a letter, D a digit, X either."""
    names = {"L": "[A-Za-z]", "D": "[0-9]", "X": "[A-Za-z0-9]", "Z": "[Zz]"}
    return re.compile(_EDGE + _GAP.join(names[name] for name in classes) + _STOP)


def _compact(code: str) -> str:
    return (code if code.isalnum() else _SEPARATORS.sub("", code)).upper()


def _before(pattern: re.Pattern[str], text: str, digit: int, letters: int) -> re.Match[str] | None:
    """Match a code whose first digit stands at ``digit``, behind letters and a gap."""
    begin = digit
    while begin > 0 and digit - begin < 2 and text[begin - 1] in _GAPS:
        begin -= 1
    begin -= letters
    if begin < 0 or not text[begin : begin + letters].isalpha():
        return None
    return pattern.match(text, begin)


def _near(view: View, cue: re.Pattern[str], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the matches within reach of a cue, which is far cheaper than all of them."""
    text = view.text
    done = 0
    for word in cue.finditer(view.lowered):
        position = max(done, word.start() - _REACH)
        limit = word.end() + _REACH
        while match := pattern.search(text, position, limit + _LONGEST):
            if match.start() > limit:
                break
            following = text[match.end() : match.end() + 1]
            if not (following.isascii() and following.isalnum()):
                yield match
            position = match.end()
        done = max(position, limit)


def _called_a_thing(said: context.Said) -> bool:
    return said.cue == "reference" and said.binding


_GSTIN = _spaced("DDLLLLLDDDDLXZX")


def gstins(view: View) -> Iterator[Candidate]:
    """GSTN: state code, PAN, entity, Z and a mod-36 check character; the check settles it."""
    for start in view.starts.short:
        match = _GSTIN.match(view.text, start)
        if match and checks.gstin(_compact(match[0])):
            yield Candidate(*match.span(), "gstin")


_PAN = re.compile(
    f"{_EDGE}[A-Za-z]{{3}}[ABCFGHJLPTabcfghjlpt][A-Za-z]({_GAP})[0-9]{{4}}({_GAP})[A-Za-z]{_STOP}"
)
# Apart, because a pattern that begins with letters is searched for much faster than a choice.
_PAN_WORDS = (re.compile("pan(?![b-rt-z])"), re.compile("पैन"))
_ANY_PAN = _spaced("LLLLLDDDDL")
_LIKE_GSTIN = re.compile(r"[ \-]?[0-9A-Za-z][ \-]?[Zz][ \-]?[0-9A-Za-z](?![A-Za-z0-9])")


def pans(view: View) -> Iterator[Candidate]:
    """Income-tax Rules, rule 114: five letters, the fourth the holder's type, four digits, one.

    The check letter's rule is not published, so a spaced or mixed-case one needs more: the word, or
    capitals in a text that is not all capitals. Words that say order or SKU win.
    """
    text = view.text
    seen = set()
    for start in view.starts.fours:
        match = _before(_PAN, text, start, 5)
        if match and checks.pan(_compact(match[0])):
            seen.add(match.span())
            yield Candidate(*match.span(), "pan" if _is_pan(text, match) else "")
    for match in chain.from_iterable(_near(view, word, _ANY_PAN) for word in _PAN_WORDS):
        if match.span() not in seen and checks.pan(_compact(match[0])):
            sure = context.says(text, *match.span(), "pan")
            yield Candidate(*match.span(), "pan" if sure else "")


def _is_pan(text: str, match: re.Match[str]) -> bool:
    code, (start, end) = match[0], match.span()
    said = context.about(text, start, end)
    if said.cue == "pan":
        return True
    if _called_a_thing(said) or context.glued(text, start) == "reference":
        return False
    if text[start - 3 : start - 1].isdigit() and _LIKE_GSTIN.match(text, end):
        return False
    if code.isalnum():
        return code.isupper() or code.islower()
    left, right = match.groups()
    year = left == " " and "1980" <= code[6:10] < "2040"
    if not code.isupper() or year or (right and left.split() != right.split()):
        return False
    return left in {"-", ".", "\n"} or any(map(str.islower, text[max(0, start - 40) : end + 40]))


_BANKS_WORDS = """
    SBIN HDFC ICIC UTIB PUNB KKBK BARB CNRB UBIN IDIB IOBA BKID CBIN UCBA MAHB PSIB YESB INDB IDFB
    FDRL RATN BDBL AUBL KARB KVBL SIBL TMBL CIUB DCBL CSBK DLXB JAKA NKGS SVCB ESFB UJVN USFB ESMF
    JSFB NSPB AIRP PYTM FINO JIOP IPOS CITI HSBC SCBL DEUT BOFA DBSS CORP ORBC ANDB SYNB ALLA VIJB
    BKDN UTBI SBHY SBTR SBMY STBP SBBJ ABHY COSB SRCB TJSB GSCB MSCI NTBL PMCB IBKL LAVB RBIS NBRD
    EQTS FSFB SURY UTKS NESF CLBL ABNA BARC BNPA CRUB
    """
_BANKS = frozenset(_BANKS_WORDS.split())
_IFSC = re.compile(f"{_EDGE}([A-Za-z]{{4}})({_GAP})0({_GAP})[A-Za-z0-9]{{6}}{_STOP}")
_IFSC_WORD = re.compile("ifs")
_ANY_IFSC = _spaced("LLLLDXXXXXX")


def ifscs(view: View) -> Iterator[Candidate]:
    """RBI: four letters of the bank, a zero, six characters of the branch; there is no checksum.

    The bank's code or the word settles it; other capitals pass where at least three digits follow
    and nothing says order or container.
    """
    text = view.text
    for digit in view.starts.zeros:
        match = _before(_IFSC, text, digit, 4)
        if match is None:
            continue
        start, end = match.span()
        code = _compact(match[0])
        known = code[:4] in _BANKS and sum(map(str.isdigit, code)) > 3
        sure = known or _is_ifsc(text, match[0], start, end)
        yield Candidate(start, end, "ifsc" if sure else "")
    for match in _near(view, _IFSC_WORD, _ANY_IFSC):
        if checks.ifsc(_compact(match[0])):
            sure = context.says(text, *match.span(), "ifsc")
            yield Candidate(*match.span(), "ifsc" if sure else "")


def _is_ifsc(text: str, code: str, start: int, end: int) -> bool:
    said = context.about(text, start, end)
    if said.cue == "ifsc":
        return True
    if not code.isalnum() or not code.isupper() or sum(map(str.isdigit, code)) < 4:
        return False
    return not (said.thing and said.binding) and context.glued(text, start) != "reference"


_VOTER_WORD = re.compile("voter|epic|elect|मतद|वोट")
_EPIC = _spaced("LLLDDDDDDD")


def voter_ids(view: View) -> Iterator[Candidate]:
    """Election Commission of India: three letters and seven digits, next to the word."""
    yield from _named(view, _VOTER_WORD, _EPIC, "voter_id", "voter")


_PASSPORT_WORD = re.compile("passport|पासपोर्ट")
_PASSPORTS = (
    _spaced("LDDDDDDD"),
    re.compile(f"{_EDGE}(?:[A-Za-z]{{1,2}}{_GAP}[0-9]{{6,8}}|[0-9]{{8,9}}){_STOP}"),
)


def passports(view: View) -> Iterator[Candidate]:
    """ICAO Doc 9303 numbers (Indian: a letter and seven digits), next to the word."""
    for pattern in _PASSPORTS:
        yield from _named(view, _PASSPORT_WORD, pattern, "passport", "passport")


_LICENCE_WORD = re.compile("licen|dl|driv|लाइसेंस")
_LICENCE = re.compile(
    f"{_EDGE}[A-Za-z]{{2}}{_GAP}[0-9]{{1,2}}[A-Za-z]{{0,2}}{_GAP}"
    f"(?:(?:19|20)[0-9]{{2}}{_GAP}[0-9]{{6,7}}|[0-9]{{7,11}}){_STOP}"
)


def driving_licences(view: View) -> Iterator[Candidate]:
    """Sarathi: state, office, year of issue and seven digits, next to the word."""
    yield from _named(view, _LICENCE_WORD, _LICENCE, "driving_licence", "licence")


def _named(
    view: View, word: re.Pattern[str], pattern: re.Pattern[str], kind: str, cue: str
) -> Iterator[Candidate]:
    """Yield the matches of a kind that the words have to call by name."""
    for match in _near(view, word, pattern):
        said = context.about(view.text, *match.span())
        sure = said.cue == cue and said.gap <= 4
        yield Candidate(*match.span(), kind if sure else "")


_IBAN_START = re.compile(f"{_EDGE}[A-Za-z]{{2}}[0-9]{{2}}(?=[ \\-.\n]{{0,2}}[A-Za-z0-9])")
_IBAN_BODY = re.compile(r"[A-Za-z0-9](?:[ \-.\t\r\n]{0,2}[A-Za-z0-9]){14,33}")
_ALNUM = re.compile(r"[A-Za-z0-9]")


def ibans(view: View) -> Iterator[Candidate]:
    """ISO 13616: country, two check digits (MOD 97-10), and exactly the country's length."""
    for digit in view.starts.glued:
        if digit > 1 and _begins(view.text, digit - 2):
            start = _IBAN_START.match(view.text, digit - 2)
            candidate = _iban_at(view.text, start) if start else None
            if candidate:
                yield candidate


def _begins(text: str, start: int) -> bool:
    """Return whether two letters begin here that are no part of a hyphenated code."""
    if not text[start : start + 2].isalpha():
        return False
    return text[start - 1 : start] != "-" or not text[max(0, start - 2) : start - 1].isalnum()


def _iban_at(text: str, head: re.Match[str]) -> Candidate | None:
    start = head.start()
    length = checks.iban_length(head[0][:2].upper())
    piece = text[start : start + length]
    if len(piece) == length > 0 and piece.isalnum() and piece.isascii():
        return _checked_iban(text, start, start + length)
    body = _IBAN_BODY.match(text, start) if length else None
    if body is None:
        return None
    kept = [match.end() for match in _ALNUM.finditer(body[0])]
    if len(kept) < length:
        return None
    return _checked_iban(text, start, start + kept[length - 1])


def _checked_iban(text: str, start: int, end: int) -> Candidate | None:
    following = text[end : end + 1]
    if (following.isascii() and following.isalnum()) or not checks.iban(_compact(text[start:end])):
        return None
    return Candidate(start, end, "iban")
