"""Numbering plans: card issuers' ranges, telephone country codes."""

from __future__ import annotations

import re

__all__ = ["NORTH_AMERICAN", "country_code", "issued_card"]

# American Express, Diners Club, JCB, Visa, Mastercard, Discover, UnionPay, RuPay (ISO/IEC 7812
# issuer identification numbers as the schemes publish them).
_CARD = re.compile(
    r"3[47][0-9]{13}"
    r"|3(?:0[0-5]|[689][0-9])[0-9]{11}"
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|4[0-9]{15}"
    r"|5[1-5][0-9]{14}"
    r"|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}"
    r"|62[0-9]{14}(?:[0-9]{3})?"
    r"|(?:508[0-9]|353[0-9]|356[0-9]|60[0-9]{2}|8[12][0-9]{2})[0-9]{12}"
)
_CARD_IF_NAMED = re.compile(
    r"4[0-9]{12}(?:[0-9]{6})?|(?:5[0678]|6[0-9])[0-9]{10,17}|62[0-9]{15,16}"
)

NORTH_AMERICAN = re.compile(r"[2-9][0-9]{2}[2-9][0-9]{6}")

# ITU-T E.164 country codes in use.
_CODES_WORDS = """
    1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63
    64 65 66 81 82 84 86 90 91 92 93 94 95 98 211 212 213 216 218 220 221 222 223 224 225 226 227
    228 229 230 231 232 233 234 235 236 237 238 239 240 241 242 243 244 245 246 247 248 249 250 251
    252 253 254 255 256 257 258 260 261 262 263 264 265 266 267 268 269 290 291 297 298 299 350 351
    352 353 354 355 356 357 358 359 370 371 372 373 374 375 376 377 378 379 380 381 382 383 385 386
    387 389 420 421 423 500 501 502 503 504 505 506 507 508 509 590 591 592 593 594 595 596 597 598
    599 670 672 673 674 675 676 677 678 679 680 681 682 683 685 686 687 688 689 690 691 692 800 808
    850 852 853 855 856 870 878 880 881 882 883 886 888 960 961 962 963 964 965 966 967 968 970 971
    972 973 974 975 976 977 979 992 993 994 995 996 998
    """
_CODES = frozenset(_CODES_WORDS.split())


def issued_card(digits: str, *, named: bool) -> bool:
    """Return whether an issuer gives out such numbers; ``named`` adds the ambiguous ranges."""
    if _CARD.fullmatch(digits):
        return True
    return named and _CARD_IF_NAMED.fullmatch(digits) is not None


def country_code(digits: str) -> str:
    """Return the country code the digits begin with; empty if there is no such code."""
    return next((digits[:size] for size in (1, 2, 3) if digits[:size] in _CODES), "")
