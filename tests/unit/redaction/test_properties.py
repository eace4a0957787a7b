"""What holds for every text, found by trying to break it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.redaction import PatternRedactor, default_redactor, strict_redactor
from memory.redaction.normalise import normalise

everything = PatternRedactor(
    (r"CASE-\d+", ("badge", r"B\d{3}")),
    bare_account_numbers=True,
    long_hexadecimal=True,
    ip_addresses=True,
)
REDACTORS = (default_redactor, strict_redactor, everything)

# Pieces that detectors react to, glued together in every order.
FRAGMENTS = [
    *("9876543210", "98765 43210", "+91 98765-43210", "2341 2341 2346", "234123412346"),
    *("4111 1111 1111 1111", "ABCPK1234F", "abcpk 1234 f", "27AAPFU0939F1ZV", "HDFC0001234"),
    *("GB82WEST12345698765432", "K1234567", "ABC1234567", "MH1220110012345", "408-586-9001"),
    *("123-45-6789", "50100012345678", "a@example.com", "x (at) y (dot) in", "r@ybl", "://u:pw@h"),
    *("sk-proj-abcdefghij0123456789AB", "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9"),
    *(".eyJzdWIiOiIxIn0.", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
    *("password", "password=", "is ", "hunter2", "secret ", "deadbeefdeadbeefdeadbeefdeadbeef"),
    *("Bearer ", "Authorization: ", "order ", "account ", "A/c ", "aadhaar ", "pan ", "ifsc "),
    *("passport ", "voter ", "DL ", "UPI ", "card ", "phone ", "call ", "id ", "no. ", "ticket #"),
    *("INV-", "Ph-", "paise", "Rs. ", "[PHONE:****3210]", "[PAN]", "CASE-12", "B123", "10.0.0.1"),
    *("fe80::1", "0", "5", "91", "2024", "x", "Z", "\u00e9", "है", "मेरा ", "\u0130", "\ufffc"),
    *(
        "\u200b",
        "\u00a0",
        "\u2013",
        "\u0967\u0968\u0969",
        "\uff19\uff18",
        "\n\n",
        "%2B",
        "%40",
        "\\n",
        "\\u0967",
        *"[]()+-.,/_@:=#| \n\t",
    ),
]
texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=14).map("".join)


@given(texts)
@settings(max_examples=500, deadline=None)
def test_redacting_twice_changes_nothing(text: str) -> None:
    for redactor in REDACTORS:
        once, _ = redactor.redact(text)
        again, findings = redactor.redact(once)
        assert again == once
        assert findings == ()


@given(texts)
@settings(max_examples=300, deadline=None)
def test_findings_cut_the_original_exactly_where_it_was_masked(text: str) -> None:
    for redactor in REDACTORS:
        masked, findings = redactor.redact(text)
        rebuilt, last = "", 0
        for found in findings:
            assert last <= found.start < found.end <= len(text)
            rebuilt += text[last : found.start] + found.replacement
            last = found.end
        assert rebuilt + text[last:] == masked
        assert redactor.scan(text) == findings


@given(st.text(alphabet=st.characters(), max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_text_whatever_makes_it_raise(text: str) -> None:
    for redactor in REDACTORS:
        redactor.redact(text)


@given(st.text(max_size=80))
@settings(max_examples=300, deadline=None)
def test_the_copy_maps_back_to_the_characters_it_was_made_from(text: str) -> None:
    copy = normalise(text)
    starts = [copy.original(at, at + 1)[0] for at in range(len(copy.text))]
    assert starts == sorted(set(starts))
    for at, start in enumerate(starts):
        end = copy.original(at, at + 1)[1]
        assert normalise(text[start]).text == copy.text[at] or text[start] in "%\\"
        assert start < end <= len(text)
