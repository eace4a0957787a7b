"""Addresses with an @ in them: e-mail, UPI, and the password in a URL.

Found from the @ outwards, so that text without one costs nothing and a run of letters is read once.

- ``email``: RFC 5322 as people use it: a dot-atom, and a domain whose last label
  begins with a letter; with ``(at)`` and ``(dot)`` spelled out, and in other scripts (RFC 6531).
- ``upi``: a virtual payment address of NPCI. Only with a provider's handle: not any ``x@y``.
- ``password``: RFC 3986, section 3.2.1, ``scheme://user:password@host``; only the password goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.redaction import context
from memory.redaction.candidate import Candidate
from memory.redaction.view import View

__all__ = ["emails_and_handles", "spelled_emails", "url_passwords"]

# Read from the @ backwards, on a reversed slice.
_LOCAL = re.compile(r"[ \n]?[A-Za-z0-9._%+'-]{1,128}")
_ANY_LOCAL = re.compile(
    r"[^\s@<>()\[\]{}\"',;:|\\/=\x00-\x7f\ufffc][^\s@<>()\[\]{}\"',;:|\\/=\ufffc]{0,63}"
)
_DOMAIN = re.compile(
    r"[ ]?\n?(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.(?:\n(?=(?:com|in|org|net|co|io|edu|gov)\b))?){1,8}"
    r"[A-Za-z][A-Za-z0-9-]{1,23}(?![A-Za-z0-9])"
)
_ANY_DOMAIN = re.compile(
    r"(?:[^\s@<>()\[\]{}\"',;:|\\/=.\ufffc]{1,63}\.){1,8}[^\s@<>()\[\]{}\"',;:|\\/=.!?\u0964\ufffc]{2,24}"
)
_HANDLE = re.compile(r"[ ]?\n?([A-Za-z][A-Za-z0-9]{1,24})(?![A-Za-z0-9-]|\.[A-Za-z0-9])")
_PIXELS = re.compile(r"[1-9]x\.(?:png|jpe?g|gif|webp|svg)\b", re.IGNORECASE)
_PROVIDERS = re.compile(
    r"\s*(?:gmail|googlemail|yahoo|ymail|hotmail|outlook|live|rediffmail|icloud|proton|protonmail|zoho)\b",
    re.IGNORECASE,
)

_HANDLES_WORDS = """
    abfspay abcdicici airtel airtelpaymentsbank allbank amazonpay apb apl aubank axisb
    axisbank axisgo axl bajaj bandhan barodampay barodapay bhim bisb boi bpunity cboi cbin
    centralbank citi citibank citigold cmsidfc cnrb cred csbcash csbpay cub dbs dcb dcbbank
    denabank digibank dlb eazypay equitas esaf ezeepay fam fampay fbl federal finobank
    freecharge freoicici goaxb hdfcbank hdfcbankjd hsbc ibl icici idbi idbibank idfc
    idfcbank idfcfirst idfcnetc ikwik imobile inhdfc indbank indianbank indus indusind iob
    jio jkb jsb jsbp jupiteraxis kaypay kbl kmb kmbl kotak kotakmahindra kvb kvbank lvb mahb
    mairtel mbk mobikwik myicici naviaxis niyoicici nsdl obc okaxis okbizaxis okhdfcbank
    okicici okpayaxis oksbi oneyes payu payzapp paytm pingpay pnb pockets postbank psb
    ptaxis pthdfc ptsbi ptyes rajgovhdfcbank rapl rbl rblbank rmhdfcbank s2b sbi sbin sc sib
    sliceaxis slc spicepay superyes shriramhdfcbank srcb tapicici tjsb timecosmos trans tpay
    ubi uboi uco ucobank unionbank unionbankofindia united upi utbi utib vjb waaxis
    wahdfcbank waicici wasbi yapl yesbank yesbankltd yesfam yespay yespop ybl yesg yespsp
    zoicici seyes
    """
_HANDLES = frozenset(_HANDLES_WORDS.split())


def emails_and_handles(view: View) -> Iterator[Candidate]:
    """Yield e-mail addresses and UPI addresses."""
    text = view.text
    at = text.find("@")
    while at >= 0:
        found = _around(text, at)
        if found:
            yield found
        at = text.find("@", at + 1)


def _around(text: str, at: int) -> Candidate | None:
    reversed_local = text[max(0, at - 130) : at][::-1]
    local = _LOCAL.match(reversed_local)
    if local is None:
        return _international(text, at, reversed_local)
    spaced = reversed_local[:1].isspace() or text[at + 1 : at + 2] == " "
    name = local[0].strip()[::-1].lstrip(".'-+%")
    if not name:
        return None
    start = at - len(local[0].rstrip()) + (len(local[0].strip()) - len(name))
    domain = _DOMAIN.match(text, at + 1)
    if domain is not None and name != "git" and not _PIXELS.match(domain[0]):
        sure = not spaced or _is_mail(text, domain, start)
        return Candidate(start, domain.end(), "email" if sure else "")
    handle = _HANDLE.match(text, at + 1)
    if handle is None or handle[1].lower() not in _HANDLES or len(name) < 2:
        return None
    sure = not spaced or name.isdigit() or context.says(text, start, handle.end(), "upi")
    return Candidate(start, handle.end(), "upi" if sure else "")


def _is_mail(text: str, domain: re.Match[str], start: int) -> bool:
    """Return whether ``a @ b.c`` is an address for its domain or for the words around it."""
    if _PROVIDERS.match(domain[0]):
        return True
    return context.says(text, start, domain.end(), "email")


def _international(text: str, at: int, reversed_local: str) -> Candidate | None:
    local = _ANY_LOCAL.match(reversed_local)
    domain = _ANY_DOMAIN.match(text, at + 1)
    if local is None or domain is None:
        return None
    return Candidate(at - local.end(), domain.end(), "email")


_BRACKETED = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64} ?[(\[{<] ?(?:at|@) ?[)\]}>] ?"
    r"[A-Za-z0-9-]{1,63}(?:(?: ?[(\[{<] ?(?:dot|\.) ?[)\]}>] ?|\.| dot )[A-Za-z0-9-]{2,63}){1,4}",
    re.IGNORECASE,
)
_SPELLED = re.compile(
    r"(?<![A-Za-z0-9._%+-])([A-Za-z0-9._%+-]{1,64}) (?:at|@) "
    r"([A-Za-z0-9-]{1,63}(?: dot [A-Za-z0-9-]{2,63}){1,4})",
    re.IGNORECASE,
)


def spelled_emails(view: View) -> Iterator[Candidate]:
    """Yield e-mail addresses spelled out: ``ramesh (at) example (dot) com``, ``at gmail dot com``.

    Without the brackets it takes a mail provider, the word, or a name that is no word.
    """
    text = view.text
    for match in _BRACKETED.finditer(text):
        yield Candidate(*match.span(), "email")
    for match in _SPELLED.finditer(text):
        plain = match[1].isalpha() and not _PROVIDERS.match(match[2])
        sure = not plain or context.says(text, *match.span(), "email")
        yield Candidate(*match.span(), "email" if sure else "")


_AUTHORITY = re.compile(r"[^\s/@:?#\"'<>]{0,128}:([^\s/\"'<>\ufffc]{1,256})@(?=[A-Za-z0-9\[])")


def url_passwords(view: View) -> Iterator[Candidate]:
    """Yield the passwords in URLs."""
    text = view.text
    at = text.find("://")
    while at >= 0:
        match = _AUTHORITY.match(text, at + 3)
        if match and not match[1].startswith(("${", "{", "$", "<", "***")):
            yield Candidate(*match.span(1), "password")
        at = text.find("://", at + 3)
