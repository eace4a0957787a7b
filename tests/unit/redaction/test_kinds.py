"""A table of cases per detector: what it takes, and the neighbour it leaves alone."""

from __future__ import annotations

import pytest

from memory.redaction import PatternRedactor, default_redactor, strict_redactor

# kind, text, the text masked; where both are equal nothing may be touched.
CASES = [
    ("aadhaar", "my aadhaar is 2341 2341 2346", "my aadhaar is [AADHAAR]"),
    ("aadhaar", "2341-2341-2346 is on file", "[AADHAAR] is on file"),
    ("aadhaar", "invoice total 234567890123 paise", "invoice total 234567890123 paise"),
    ("aadhaar", "UTR 234123412346", "UTR 234123412346"),
    ("aadhaar", "customer 234123412346", "customer [AADHAAR]"),
    ("aadhaar", "customer id 234123412346", "customer id 234123412346"),
    ("aadhaar", "2021 2022 2023 2024", "2021 2022 2023 2024"),
    ("virtual_id", "VID 9876543210987659", "VID [VIRTUAL_ID]"),
    ("virtual_id", "VID 9876543210987650", "VID 9876543210987650"),
    ("pan", "PAN ABCPK1234F", "PAN [PAN]"),
    ("pan", "pan abcpk 1234 f", "pan [PAN]"),
    ("pan", "Permanent account number ABCPK1234F", "Permanent account number [PAN]"),
    ("pan", "total 2024 a new plan", "total 2024 a new plan"),
    ("pan", "SKU ABCPK1234F", "SKU ABCPK1234F"),
    ("gstin", "billed to 27AAPFU0939F1ZV", "billed to [GSTIN]"),
    ("gstin", "27 aapfu 0939 f 1zv", "[GSTIN]"),
    ("gstin", "billed to 27AAPFU0939F1ZX", "billed to 27AAPFU0939F1ZX"),
    ("ifsc", "IFSC hdfc0001234", "IFSC [IFSC]"),
    ("ifsc", "container MSCU0123456", "container MSCU0123456"),
    (
        "phone_in",
        "Ramesh at 9876543210 disputed INV-42",
        "Ramesh at [PHONE:****3210] disputed INV-42",
    ),
    ("phone_in", "(+91) 98765-43210", "[PHONE:****3210]"),
    ("phone_in", "Ph9876543210", "Ph[PHONE:****3210]"),
    ("phone_in", "phone 022-24567890", "phone [PHONE:****7890]"),
    ("phone_in", "order 9876543210", "order 9876543210"),
    ("phone_in", "Order 55, call 9876543210", "Order 55, call [PHONE:****3210]"),
    ("phone_in", "orders 9876543210, 9876543211", "orders 9876543210, 9876543211"),
    ("phone_in", "INV-9876543210", "INV-9876543210"),
    ("phone_in", "scores 65 70 75 80 85", "scores 65 70 75 80 85"),
    ("phone_in", "order_id,city\n9876543210,Pune", "order_id,city\n9876543210,Pune"),
    ("upi", "pay ramesh@okhdfcbank.", "pay [UPI]."),
    ("upi", "9876543210@ybl", "[UPI]"),
    ("upi", "ramesh@nowhere", "ramesh@nowhere"),
    ("voter_id", "EPIC no. ABC1234567", "EPIC no. [VOTER_ID]"),
    ("voter_id", "model ABC1234567", "model ABC1234567"),
    ("passport", "passport K1234567", "passport [PASSPORT]"),
    ("passport", "gate K1234567", "gate K1234567"),
    ("driving_licence", "DL MH12 20110012345", "DL [DRIVING_LICENCE]"),
    ("driving_licence", "part MH1220110012345", "part MH1220110012345"),
    ("bank_account", "A/c no. 50100012345678", "A/c no. [ACCOUNT:****5678]"),
    (
        "bank_account",
        "50100012345678 is my account number",
        "[ACCOUNT:****5678] is my account number",
    ),
    ("bank_account", "50100012345678, IFSC HDFC0001234", "[ACCOUNT:****5678], IFSC [IFSC]"),
    (
        "bank_account",
        f"commit {'ac' * 4}12ac 50100012345678",
        f"commit {'ac' * 4}12ac 50100012345678",
    ),
    ("bank_account", "folio 50100012345678", "folio 50100012345678"),
    ("email", "write to a.b+c@example.co.in, please", "write to [EMAIL], please"),
    ("email", "a.b (at) example (dot) com", "[EMAIL]"),
    ("email", "रमेश@उदाहरण.भारत", "[EMAIL]"),
    ("email", "git@github.com:org/repo.git", "git@github.com:org/repo.git"),
    ("card", "4111 1111 1111 1111", "[CARD:****1111]"),
    ("card", "card 5018 0000 0009", "card [CARD:****0009]"),
    ("card", "total 4111111111111111 units", "total 4111111111111111 units"),
    ("card", "4111 1111 1111 1112", "4111 1111 1111 1112"),
    ("iban", "IBAN gb82 west 1234 5698 7654 32 x", "IBAN [IBAN] x"),
    ("iban", "IBAN GB82 WEST 1234 5698 7654 33", "IBAN GB82 WEST 1234 5698 7654 33"),
    ("phone", "call +44 20 7946 0958", "call [PHONE:****0958]"),
    ("phone", "408-586-9001", "[PHONE:****9001]"),
    ("phone", "+999 20 7946 0958", "+999 20 7946 0958"),
    ("phone", "408-1234567-1234567", "408-1234567-1234567"),
    ("ssn", "078-05-1120", "[SSN]"),
    ("ssn", "666-05-1120", "666-05-1120"),
    ("ssn", "078051120", "078051120"),
    ("api_key", "use sk-proj-abcdefghijklmnopqrst0123.", "use [API_KEY]."),
    ("api_key", "AKIAIOSFODNN7EXAMPLE", "[API_KEY]"),
    ("api_key", "sk-learn-pipeline-v2", "sk-learn-pipeline-v2"),
    ("bearer_token", "Authorization: Bearer abc123def456", "Authorization: Bearer [BEARER_TOKEN]"),
    ("bearer_token", "bearer of bad news", "bearer of bad news"),
    ("basic_auth", "Basic dXNlcjpwYXNz", "Basic [BASIC_AUTH]"),
    ("basic_auth", "basic understanding", "basic understanding"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[JWT]"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn"),
    (
        "private_key",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        "[PRIVATE_KEY]",
    ),
    ("private_key", "-----BEGIN PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----"),
    ("password", "postgres://app:pw@db/x", "postgres://app:[PASSWORD]@db/x"),
    ("password", "password=hunter2 x", "password=[PASSWORD] x"),
    ("password", "my password is hunter2.", "my password is [PASSWORD]."),
    ("password", "mysql -u root --password hunter2 db", "mysql -u root --password [PASSWORD] db"),
    ("phone_in", "call 98765 432 10", "call [PHONE:****3210]"),
    ("phone", "call +33 1 23 45 67 89", "call [PHONE:****6789]"),
    ("password", "password=abc", "password=[PASSWORD]"),
    ("password", "password=ab", "password=ab"),
    ("password", "the password is incorrect", "the password is incorrect"),
    ("password", "password = os.environ['X']", "password = os.environ['X']"),
    ("password", "password: required", "password: required"),
    ("secret", "client_secret=abcdefgh12345678", "client_secret=[SECRET]"),
    ("secret", f"secret {'a1' * 16}", "secret [SECRET]"),
    ("secret", f"commit {'a1' * 20}", f"commit {'a1' * 20}"),
    ("secret", f"public key {'a1' * 20}", f"public key {'a1' * 20}"),
]


@pytest.mark.parametrize(("kind", "text", "masked"), CASES)
def test_each_kind_is_masked_and_its_neighbour_is_not(kind: str, text: str, masked: str) -> None:
    result, findings = default_redactor.redact(text)
    assert result == masked
    assert bool(findings) == (text != masked)
    assert kind in {found.kind for found in findings} or text == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("host 10.1.2.3 up", "host [IP_ADDRESS] up"),
        ("from fe80::1ff:fe23:4567:890a", "from [IP_ADDRESS]"),
        ("version 10.1.2.300", "version 10.1.2.300"),
        ("std::vector at 10:15:20", "std::vector at 10:15:20"),
    ],
)
def test_ip_addresses_are_masked_only_where_asked_for(text: str, masked: str) -> None:
    assert PatternRedactor(ip_addresses=True).redact(text)[0] == masked
    assert default_redactor.redact(text)[0] == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("order 9876543210", "order [ACCOUNT:****3210]"),
        ("total 123456789012345678", "total [ACCOUNT:****5678]"),
        ("total 12345678", "total 12345678"),
        ("total 501000123", "total [ACCOUNT:****0123]"),
        ("total 5010001234567890123", "total 5010001234567890123"),
        (f"commit {'a1' * 20}", "commit [SECRET]"),
        ("call 9876543210", "call [PHONE:****3210]"),
    ],
)
def test_the_strict_preset_masks_bare_numbers_and_long_hexadecimal_too(
    text: str, masked: str
) -> None:
    assert strict_redactor.redact(text)[0] == masked


@pytest.mark.parametrize(
    "text",
    [
        "order 9876543210",
        "ticket 234123412346",
        "SKU 4111111111111111",
        "SKU ABCPK1234F",
        "ticket no. 9876543210987659",
    ],
)
def test_the_words_win_over_every_checksum(text: str) -> None:
    assert default_redactor.redact(text)[0] == text
    _, _, number = text.rpartition(" ")
    assert default_redactor.redact(number)[0] != number


@pytest.mark.parametrize("mark", ["\u200b", "\u200c", "\u2060", "\ufeff", "\u00ad"])
def test_an_invisible_character_inside_belongs_to_the_span(mark: str) -> None:
    text = f"é{mark}call 98765{mark}43210{mark} now"
    masked, (found,) = default_redactor.redact(text)
    assert masked == f"é{mark}call [PHONE:****3210]{mark} now"
    assert text[found.start : found.end] == f"98765{mark}43210"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (r'{"t": "call\n9876543210"}', r'{"t": "call\n[PHONE:****3210]"}'),
        (r"line\tABCPK1234F\n", r"line\t[PAN]\n"),
        (r"call 987654321\u0966.", "call [PHONE:****3210]."),
        ("call%209876543210%20x", "call%20[PHONE:****3210]%20x"),
        ("To=%2B919876543210&x=1", "To=[PHONE:****3210]&x=1"),
        ("mail=ramesh%40example.com", "mail=[EMAIL]"),
        (r"call \u0967\u096f 9876543210", r"call \u0967\u096f [PHONE:****3210]"),
        (r"\u096f\u096e\u096d\u096c\u096b\u096a\u0969\u0968\u0967\u0966", "[PHONE:****3210]"),
        ("a rise of 5 %20 people", "a rise of 5 %20 people"),
        (r"C:\new\table", r"C:\new\table"),
    ],
)
def test_identifiers_in_escaped_text_are_found_and_the_escapes_stay(text: str, masked: str) -> None:
    assert default_redactor.redact(text)[0] == masked
