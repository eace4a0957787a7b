from __future__ import annotations

from memory.redaction import default_redactor, redact_fields, redact_many


def test_a_phone_number_stored_as_an_integer_key_or_nested_string_is_masked_with_its_path() -> None:
    done = redact_fields(
        default_redactor,
        "Ramesh at 9876543210 disputed invoice INV-42",
        {"trip": {"contact": ["+91 98765 43210", 9876543210, 5]}, "9876543210": {"ok": True}},
    )
    assert done.text == "Ramesh at [PHONE:****3210] disputed invoice INV-42"
    assert done.metadata == {
        "trip": {"contact": ["[PHONE:****3210]", "[PHONE:****3210]", 5]},
        "[PHONE:****3210]": {"ok": True},
    }
    assert done.paths == (
        "metadata.[PHONE:****3210]",
        "metadata.trip.contact.0",
        "metadata.trip.contact.1",
        "text",
    )


def test_two_keys_with_one_mask_lose_no_value_and_a_second_pass_changes_nothing() -> None:
    done = redact_fields(
        default_redactor, "", {"9876543210": 1, "9000003210": 2, "+919876543210": 3}
    )
    assert sorted(done.metadata.values()) == [1, 2, 3]
    again = redact_fields(default_redactor, "", done.metadata)
    assert again.metadata == done.metadata
    assert again.paths == ()


async def test_redacting_many_gives_what_redacting_each_gives() -> None:
    items = [("call 9876543210", {"n": index}) for index in range(5)]
    assert await redact_many(default_redactor, items) == [
        redact_fields(default_redactor, *item) for item in items
    ]
