"""Credentials that show themselves: API keys by prefix, headers, JWTs, private keys.

The prefixes are those the issuers document, or GitHub's and GitLab's secret scanning list. A key
is at least twenty characters in one piece, so only such pieces are looked at.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Iterator

from memory.redaction.candidate import Candidate
from memory.redaction.view import View

__all__ = ["api_keys", "authorization_headers", "jwts", "private_keys"]

_PREFIXED = (
    r"sk-(?:ant|proj|svcacct|admin|or|lf|None)-[A-Za-z0-9_\-]{16,512}",  # Anthropic, OpenAI, others
    r"sk-[A-Za-z0-9]{20,256}",
    r"pplx-[A-Za-z0-9]{32,64}|gsk_[A-Za-z0-9]{32,64}|xai-[A-Za-z0-9]{32,128}|r8_[A-Za-z0-9]{32,48}",
    r"hf_[A-Za-z0-9]{24,64}|api_org_[A-Za-z0-9]{24,64}",  # Hugging Face
    r"pcsk_[A-Za-z0-9_]{24,128}|tvly-[A-Za-z0-9\-]{20,64}|lsv2_(?:pt|sk)_[A-Za-z0-9_]{24,96}",
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA|AIPA)[A-Z0-9]{16}",  # AWS key ids
    r"AIza[A-Za-z0-9_\-]{35}|ya29\.[A-Za-z0-9_\-]{20,512}|GOCSPX-[A-Za-z0-9_\-]{20,40}",  # Google
    r"AQ\.[A-Za-z0-9_\-]{30,128}",
    r"gh[opusr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}",
    r"gl(?:pat|ptt|dt|rt|cbt|ft|imt|agent|soat|sa|ffct|oas)-[A-Za-z0-9_\-.]{20,255}",  # GitLab
    r"xox[abeoprs]-[A-Za-z0-9\-]{10,255}|xapp-[0-9]-[A-Za-z0-9\-]{10,255}",  # Slack
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9+/=]{20,128}",  # Stripe
    r"rzp_(?:live|test)_[A-Za-z0-9]{10,32}|cfsk_ma_(?:prod|test)_[A-Za-z0-9_]{16,128}",  # Razorpay
    r"(?:SK|AC)[0-9a-f]{32}",  # Twilio
    r"SG\.[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{16,64}|xkeysib-[A-Za-z0-9\-]{32,128}",  # SendGrid
    r"key-[0-9a-f]{32}|[0-9a-f]{32}-us[0-9]{1,2}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{16,32}",  # mail
    r"npm_[A-Za-z0-9]{30,64}|pypi-[A-Za-z0-9_\-]{16,512}|rubygems_[0-9a-f]{40,64}",
    r"dckr_[po]at_[A-Za-z0-9_\-]{20,64}|do[opr]_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|sq0(?:atp|csp|idp)-[A-Za-z0-9_\-]{20,64}",
    r"[0-9]{8,10}:AA[A-Za-z0-9_\-]{30,40}",  # Telegram
    r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,38}",  # Discord
    r"hv[sb]\.[A-Za-z0-9_\-]{20,255}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{40,80}",  # HashiCorp
    r"gl(?:sa|c)_[A-Za-z0-9_+/=]{20,128}|NRAK-[A-Z0-9]{27}|sntry[su]_[A-Za-z0-9_+/=]{24,255}",
    r"ATATT3[A-Za-z0-9_=\-]{20,255}|lin_api_[A-Za-z0-9]{32,48}|ntn_[A-Za-z0-9]{32,64}",
    r"secret_[A-Za-z0-9]{40,48}|figd_[A-Za-z0-9_\-]{20,64}|PMAK-[A-Za-z0-9\-]{32,64}",
    r"sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_\-]{20,64}|pscale_(?:tkn|pw)_[A-Za-z0-9_\-.]{20,64}",
    r"dp\.(?:pt|st|ct)\.[A-Za-z0-9.]{20,64}|AGE-SECRET-KEY-1[A-Z0-9]{50,64}",
    r"EAACEdEose0cBA[A-Za-z0-9]{10,255}|vc[pkiar]_[A-Za-z0-9]{20,64}",
)
# The tail ends on a character of its own, so the full stop of a sentence stays outside.
_KEY = re.compile(rf"(?<![A-Za-z0-9_\-])(?:{'|'.join(_PREFIXED)})(?<!\.)(?![A-Za-z0-9])")
_HOOK = re.compile(r"https://hooks\.slack\.com/services/([A-Za-z0-9/]{20,80})")


def api_keys(view: View) -> Iterator[Candidate]:
    """Yield API keys and access tokens with a known prefix."""
    for piece in view.pieces:
        for match in _KEY.finditer(view.text, *piece):
            yield Candidate(*match.span(), "api_key")
        for match in _HOOK.finditer(view.text, *piece):
            yield Candidate(*match.span(1), "api_key")


_JWT = re.compile(
    r"(?<![A-Za-z0-9_-])(eyJ[A-Za-z0-9_-]{8,}+)\.(eyJ[A-Za-z0-9_-]{2,}+|e30)\.([A-Za-z0-9_-]*+)"
)


def jwts(view: View) -> Iterator[Candidate]:
    """RFC 7519: three base64url parts, the first two JSON objects. An unsigned one counts too."""
    for match in _JWT.finditer(view.text):
        if _is_json_object(match[1]) and _is_json_object(match[2]):
            yield Candidate(*match.span(), "jwt")


def _is_json_object(part: str) -> bool:
    try:
        return isinstance(json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4))), dict)
    except (ValueError, RecursionError):
        return False


_BEGIN = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BODY = re.compile(
    r"(?:\s*[A-Za-z-]{3,20}: [^\n]{1,80}\n){0,4}(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,}+)*+"
)


def private_keys(view: View) -> Iterator[Candidate]:
    """RFC 7468, OpenPGP: a private key in its armour; one cut off goes to the end of its body."""
    text = view.text
    position = 0
    closed = True
    while begin := _BEGIN.search(text, position):
        # Once no end was found there is none further on: looking again would be quadratic.
        end = _END.search(text, begin.end()) if closed else None
        closed = end is not None
        body = end or _BODY.match(text, begin.end())
        position = body.end() if body else begin.end()
        yield Candidate(begin.start(), position, "private_key")


_SCHEME = re.compile(r"(bearer|basic|token|apikey|digest)\s{1,3}", re.IGNORECASE)
_HEADER = re.compile(r"authorization[\"']?\s{0,3}[:=,]\s{0,3}[\"']?")
_VALUE = re.compile(r"[A-Za-z0-9._~+/=:\-]{6,4096}")
_BEARER = re.compile(r"(?<![a-z])bearer[ :]{1,3}([a-z0-9._~+/=\-]{16,4096})")
_BASIC = re.compile(r"(?<![a-z])basic[ ]{1,3}([a-z0-9+/]{8,512}={0,2})(?![a-z0-9+/=])")


def authorization_headers(view: View) -> Iterator[Candidate]:
    """RFC 6750 and RFC 7617: the credentials of bearer and basic authentication, not the scheme."""
    text, lowered = view.text, view.lowered
    for match in _HEADER.finditer(lowered):
        scheme = _SCHEME.match(text, match.end())
        value = _VALUE.match(text, scheme.end() if scheme else match.end())
        if value and (scheme or not value[0].isalpha()):
            basic = scheme is not None and scheme[1].lower() == "basic"
            yield Candidate(*value.span(), "basic_auth" if basic else "bearer_token")
    for match in _BEARER.finditer(lowered):
        if any(char.isdigit() for char in match[1]):
            yield Candidate(*match.span(1), "bearer_token")
    for match in _BASIC.finditer(lowered):
        if _is_user_and_password(text[match.start(1) : match.end(1)]):
            yield Candidate(*match.span(1), "basic_auth")


def _is_user_and_password(encoded: str) -> bool:
    try:
        decoded = b64decode(encoded, validate=True)
    except binascii.Error:
        return False
    return b":" in decoded and decoded.isascii()
