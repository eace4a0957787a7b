from __future__ import annotations

import pytest

from memory.errors import InvalidInputError
from memory.ports import Redactor
from memory.redaction import (
    PatternRedactor,
    default_redactor,
    no_redactor,
    scan,
    strict_redactor,
)
from memory.redaction.linear import objection


def test_a_finding_says_where_and_what_kind_but_never_the_value() -> None:
    text = "Ramesh at 9876543210 disputed invoice INV-42"
    (found,) = scan(text)
    assert (found.kind, found.start, found.end) == ("phone_in", 10, 20)
    assert found.replacement == "[PHONE:****3210]"
    assert found.path == "text"
    assert "9876543210" not in repr(found)
    assert "987654" not in repr(found)


def test_an_identifier_inside_another_is_one_finding() -> None:
    assert [found.kind for found in scan("27AAPFU0939F1ZV")] == ["gstin"]
    assert [found.kind for found in scan("9876543210@example.com")] == ["email"]
    assert [found.kind for found in scan("token=ghp_abcdefghijklmnopqrstuvwxyz0123456789")] == [
        "api_key"
    ]


def test_a_password_that_holds_an_identifier_is_masked_whole() -> None:
    masked, findings = default_redactor.redact("password=x9876543210@ybl!z")
    assert masked == "password=[PASSWORD]"
    assert [found.kind for found in findings] == ["password"]


def test_a_mask_written_by_an_earlier_pass_is_left_alone_and_ends_what_words_say() -> None:
    for text in ("[PHONE:****3210]", "[PAN] [ACCOUNT:****9012] [GSTIN]", "account [CARD:****1111]"):
        assert strict_redactor.redact(text) == (text, ())
    assert default_redactor.redact("account [PAN] 123456789")[0] == "account [PAN] 123456789"
    assert default_redactor.redact("account 123456789")[0] == "account [ACCOUNT:****6789]"


def test_capitals_in_brackets_that_are_no_mask_hide_nothing() -> None:
    assert default_redactor.redact("[ABCPK1234F]")[0] == "[[PAN]]"


def test_patterns_of_the_deployment_come_first_and_carry_their_kind() -> None:
    redactor = PatternRedactor((r"CASE-\d+", ("badge", r"\bB\d{10}\b")))
    masked, findings = redactor.redact("filed under CASE-9876543210 by B9876543210")
    assert masked == "filed under [CUSTOM] by [BADGE]"
    assert [found.kind for found in findings] == ["custom", "badge"]
    assert redactor.redact(masked) == (masked, ())


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a*",
        r"(a+)+b",
        r"\d+x",
        r"x.*y",
        r"(\w)\1",
        r"<[^>]+>",
        r"(?:a{1,64}){1,64}",
        "(?=a)",
        "(",
    ],
)
def test_a_pattern_that_is_not_linear_or_matches_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        PatternRedactor((pattern,))
    assert refused.value.field == "extra_patterns.0"
    assert pattern not in str(refused.value) or not pattern.strip("(a*")


@pytest.mark.parametrize(
    "pattern",
    [
        r"CASE-\d+",
        r"CASE-\d+\b",
        r"(?i)case-\d{1,9}",
        r"(?:INV|PO)/\d{4}/\d+",
        r"[A-Z]{2,5}-[0-9]{1,12}",
    ],
)
def test_a_pattern_that_is_linear_is_taken(pattern: str) -> None:
    assert PatternRedactor((pattern,)).redact("none here")[0] == "none here"


# Two that differ where the rule ends: the first is taken, the second is not.
NEIGHBOURS = [
    (r"a{1,10}b{1,10}a{1,10}x", r"a{1,10}a{1,10}a{1,10}x"),
    (r"a{1000}", r"a{1001}"),
    (r"a{1,999}b", r"a{1,1000}b"),
    (r"(?:ab){1,1000}", r"(?:ab){1,1001}"),
    (r"(?:ab?){1,5}", r"(?:ab?){1,6}"),
    (r"(?:ab|cd|ef){1,5}", r"(?:ab|cd|ef){1,6}"),
    (r"(?!a{1,10})b", r"(?!a{1,1001})b"),
    (r"-a+b", r"-a+a"),
    (r"-a+b?c", r"-a+b?a"),
    (r"-a+(?=b)", r"-a+a?b"),
    (r"-{1,2}a+", r"-{0,2}a+"),
    (r"-(?>a+)b", r"(?:-b)+"),
    (r"-\w+\W", r"-\w+\d"),
    (r"-\d+\D", r"é\w+"),
    (r"-\s+\S", r"-\S+\s"),
    (r"-[a-c]+d", r"-[a-c]+c"),
    (r"(?i)-A+b", r"(?i)-A+a"),
    (r"-a{2,}?b", r"(?:-a+)?b"),
]


@pytest.mark.parametrize(("taken", "refused"), NEIGHBOURS)
def test_the_rule_for_patterns_ends_where_it_says(taken: str, refused: str) -> None:
    assert objection(taken) == ""
    assert objection(refused)


@pytest.mark.parametrize("joint", ["", ".", "-", "::"])
def test_what_was_glued_to_a_finding_is_read_again_without_it(joint: str) -> None:
    redactor = PatternRedactor((r"CASE-[0-9]{2}",))
    for text in (f"CASE-12{joint}ABCPK1234F", f"ABCPK1234F{joint}CASE-12"):
        masked = text.replace("CASE-12", "[CUSTOM]").replace("ABCPK1234F", "[PAN]")
        assert redactor.redact(text)[0] == masked


def test_a_password_takes_the_place_of_what_it_covers_and_of_nothing_as_long() -> None:
    for covering in ("9876543210@ybl!z", "z!9876543210@ybl"):
        assert default_redactor.redact(f"password={covering}")[0] == "password=[PASSWORD]"
    assert default_redactor.redact("password={9876543210}")[0] == "password={[PHONE:****3210]}"
    key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    for covering in (f"{key}!z", f"z!{key}"):
        assert default_redactor.redact(f"token={covering}")[0] == "token=[SECRET]"
    redactor = PatternRedactor((r"d=a", r"CASE-[0-9]{2}"))
    crossed = redactor.redact("password=abCASE-12zzzz")[0]
    assert crossed == "passwor[CUSTOM]b[CUSTOM]zzzz"


def test_a_number_is_looked_at_again_when_the_word_that_kept_it_is_masked() -> None:
    text = "order 9876543210 and order 9876543211"
    assert default_redactor.redact(text) == (text, ())
    redactor = PatternRedactor((r"order",))
    masked, _ = redactor.redact(text)
    assert masked == "[CUSTOM] [PHONE:****3210] and [CUSTOM] [PHONE:****3211]"
    assert redactor.redact(masked) == (masked, ())


def test_an_identifier_found_elsewhere_does_not_change_what_words_say_of_a_number() -> None:
    text = "a@example.com: order 9876543210, b@example.com"
    assert default_redactor.redact(text)[0] == "[EMAIL]: order 9876543210, [EMAIL]"


def test_texts_of_different_sorts_do_not_disturb_each_other() -> None:
    redactor = PatternRedactor()
    texts = ("call 9876543210", "write to a@example.com", "nothing at all", "PAN ABCPK1234F")
    expected = ["call [PHONE:****3210]", "write to [EMAIL]", "nothing at all", "PAN [PAN]"]
    for _ in range(2):
        assert [redactor.redact(text)[0] for text in texts] == expected


def test_a_kind_that_is_no_short_name_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        PatternRedactor((("Not A Kind", r"CASE-\d+"),))
    for kind in ("a_kind", "cleared", "settled", "none"):
        masked = PatternRedactor(((kind, r"CASE-\d+"),)).redact("CASE-1")[0]
        assert masked == f"[{kind.upper()}]"


def test_no_redactor_masks_nothing_and_all_three_fit_the_port() -> None:
    assert no_redactor.redact("9876543210") == ("9876543210", ())
    for redactor in (default_redactor, strict_redactor, no_redactor):
        assert isinstance(redactor, Redactor)
