"""Adversarial input costs in proportion to its length: a rule of the matcher, and a measurement."""

from __future__ import annotations

import re
import time

import pytest

from memory.redaction import PatternRedactor
from memory.redaction.linear import objection

everything = PatternRedactor(
    (r"CASE-\d+",), bare_account_numbers=True, long_hexadecimal=True, ip_addresses=True
)

# Repeated, each is a text on which one detector begins over and over without coming to an end.
UNITS = {
    "email local part": "a",
    "email domain": "a@a.",
    "email in other scripts": "é@é.",
    "spelled email": "a (at) b (dot) ",
    "spelled words": " dot a at ",
    "upi": "a@ybl-",
    "url password": "http://a:b",
    "api key": "sk-",
    "github key": "ghp_a",
    "jwt": "eyJhbGciOiJIUzI1.",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n",
    "assignment": "password=",
    "quoted assignment": 'password="',
    "told password": "password for a b c ",
    "key name": "secret_access_",
    "header": "authorization: ",
    "bearer": "bearer aaaaaaaaaaaaaaaa",
    "basic": "basic dXNlcjpw",
    "hexadecimal": "deadbeef",
    "long secret": "secret a1B2c3D4e5F6g7H8i9J0k1L2m3 ",
    "pan": "pan ABCPK12 ",
    "gstin": "27AAPFU0939F1Z ",
    "ifsc": "ifsc HDFC0 ",
    "iban": "GB82WEST1234",
    "voter id": "voter ABC ",
    "passport": "passport K1",
    "licence": "dl MH12 ",
    "digits": "9",
    "digits apart": "1 ",
    "groups of five": "98765 ",
    "groups of four": "4111 ",
    "numbers on lines": "12345\n",
    "dots": "1.",
    "pluses": "+1 (",
    "cues": "order 9876543210 ",
    "accounts": "A/c 123456789012 ",
    "table": "a,b\n1234567890,",
    "masks": "[PHONE:****",
    "zero width": "9\u200b",
    "ip": "a1:",
    "custom": "CASE-",
    "capital with dot": "\u0130",
    "white space": " ",
}


def seconds(text: str) -> float:
    """Return the best of several runs in the thread's own time: noise only ever adds."""
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        everything.redact(text)
        best = min(best, time.thread_time() - start)
    return best


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_twice_the_text_takes_about_twice_the_time(unit: str) -> None:
    short = unit * (4_096 // len(unit))
    for _ in range(4):
        # A busy machine may spoil a measurement; a detector that is not linear spoils every one.
        if seconds(short * 2) <= 2.3 * seconds(short) + 0.0002:
            return
    pytest.fail("more than 2.3 times the time in each of four measurements")


@pytest.mark.parametrize(
    ("pattern", "bad"),
    [
        (r"\d+x", "1" * 20_000),
        (r"x.*y", "x" * 20_000),
        (r"<[^>]+>", "<" * 20_000),
    ],
)
def test_what_the_rule_refuses_would_really_be_slow(pattern: str, bad: str) -> None:
    assert objection(pattern)
    start = time.thread_time()
    re.search(pattern, bad)
    slow = time.thread_time() - start
    start = time.thread_time()
    re.search(r"CASE-\d+", bad)
    assert slow > 10 * (time.thread_time() - start)
