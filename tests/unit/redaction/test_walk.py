from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from memory.errors import InvalidInputError, MemoryServiceError
from memory.redaction import (
    PatternRedactor,
    default_redactor,
    no_redactor,
    redact_fields,
    redact_many,
)
from memory.types import Finding


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_text_keys_values_and_numbers_are_masked_with_their_paths() -> None:
    done = redact_fields(
        default_redactor,
        "Ramesh at 9876543210 disputed invoice INV-42",
        {
            "trip": {"contact": ["+91 98765 43210", 9876543210, 5]},
            "9876543210": {"ok": True, "note": "mail a@example.com"},
            "ratio": 0.5,
            "none": None,
        },
    )
    assert done.text == "Ramesh at [PHONE:****3210] disputed invoice INV-42"
    assert done.metadata == {
        "trip": {"contact": ["[PHONE:****3210]", "[PHONE:****3210]", 5]},
        "[PHONE:****3210]": {"ok": True, "note": "mail [EMAIL]"},
        "ratio": 0.5,
        "none": None,
    }
    assert done.paths == (
        "metadata.[PHONE:****3210]",
        "metadata.[PHONE:****3210].note",
        "metadata.trip.contact.0",
        "metadata.trip.contact.1",
        "text",
    )
    assert {found.path for found in done.findings} == set(done.paths)


def test_the_key_above_a_value_counts_as_the_words_before_it() -> None:
    done = redact_fields(
        default_redactor,
        "",
        {
            "order_id": 9876543210,
            "orders": [9876543210],
            "phone": 9876543210.0,
            "accountNumber": "50100012345678",
            "password": "sunshine",
            "aadhaar": 234123412346,
        },
    )
    assert done.metadata == {
        "order_id": 9876543210,
        "orders": [9876543210],
        "phone": "[PHONE:****3210]",
        "accountNumber": "[ACCOUNT:****5678]",
        "password": "[PASSWORD]",
        "aadhaar": "[AADHAAR]",
    }
    offsets = {found.path: (found.start, found.end) for found in done.findings}
    assert offsets["metadata.accountNumber"] == (0, 14)


def test_keys_with_one_mask_lose_no_value_and_a_second_pass_changes_nothing() -> None:
    keys = ("9876543210", "9000003210", "+919876543210", "[PHONE:****3210]")
    done = redact_fields(default_redactor, "", {key: index for index, key in enumerate(keys)})
    assert sorted(done.metadata.values()) == [0, 1, 2, 3]
    assert done.metadata["[PHONE:****3210]"] == 3
    assert {name[16:] for name in done.metadata} == {"", " (2)", " (3)", " (4)"}
    again = redact_fields(default_redactor, "", done.metadata)
    assert again.metadata == done.metadata
    assert again.paths == ()


def test_the_callers_metadata_is_copied_and_left_as_it_is() -> None:
    inner = ["9876543210"]
    metadata = MappingProxyType({"a": inner, "t": (1, 2)})
    done = redact_fields(default_redactor, "", metadata)
    assert inner == ["9876543210"]
    assert done.metadata == {"a": ["[PHONE:****3210]"], "t": [1, 2]}


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (b"9876543210", "must be a JSON value"),
        ({1, 2}, "must be a JSON value"),
        (float("nan"), "must be a finite number"),
        (float("inf"), "must be a finite number"),
        (2**2000, "must be an integer of at most 1,024 bits"),
        ("a\x00b", "must not hold NUL or a lone surrogate"),
        ("a\ud800b", "must not hold NUL or a lone surrogate"),
        ({1: 2}, "keys must be strings"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_path_and_rule_only(value: Any, rule: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        redact_fields(default_redactor, "", {"9876543210": {"k": [0, value]}})
    assert refused.value.field == "metadata.[PHONE:****3210].k.1"
    assert refused.value.rule == rule
    assert "98765" not in str(refused.value)


def test_metadata_may_be_nested_32_deep_and_no_deeper() -> None:
    assert redact_fields(default_redactor, "", nested(32)).metadata == nested(32)
    with pytest.raises(InvalidInputError, match="deeper than 32"):
        redact_fields(default_redactor, "", nested(33))


def test_metadata_that_holds_itself_or_unfolds_without_end_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = [loop]
    with pytest.raises(InvalidInputError, match="contain itself"):
        redact_fields(default_redactor, "", loop)
    wide: Any = ["x"]
    for _ in range(30):
        wide = [wide, wide]
    with pytest.raises(InvalidInputError, match="64 KiB"):
        redact_fields(default_redactor, "", {"a": wide})
    twice = ["x"]
    assert redact_fields(default_redactor, "", {"a": twice, "b": twice}).metadata["b"] == ["x"]


def test_metadata_over_64_kib_is_refused_and_just_under_is_not() -> None:
    assert redact_fields(no_redactor, "", {"a": "x" * 65_000}).metadata["a"]
    with pytest.raises(InvalidInputError, match="64 KiB"):
        redact_fields(no_redactor, "", {"a": "x" * 65_536})


@pytest.mark.parametrize(
    ("most", "made"),
    [(65_529, lambda size: {"a": "x" * size}), (32_764, lambda size: {"a": [None] * size})],
    ids=["one text", "many values"],
)
def test_each_key_value_and_container_counts_for_two_characters_more(
    most: int, made: Callable[[int], dict[str, Any]]
) -> None:
    assert redact_fields(no_redactor, "", made(most)).metadata == made(most)
    with pytest.raises(InvalidInputError, match="64 KiB"):
        redact_fields(no_redactor, "", made(most + 1))


class Host:
    """A redactor of the host's that gives what it is told to."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def redact(self, text: str) -> Any:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def test_a_redactor_of_the_hosts_may_return_lists_and_gets_its_paths() -> None:
    found = Finding(kind="name", start=0, end=6, replacement="[NAME]")
    done = redact_fields(Host(("[NAME]", [found])), "Ramesh", {})
    assert done.text == "[NAME]"
    assert [one.path for one in done.findings] == ["text"]


@pytest.mark.parametrize(
    "result", [None, "x", ("x",), (1, ()), ("x", None), ("x", [{"kind": "a"}])]
)
def test_a_redactor_that_returns_something_else_is_an_error_without_the_text(result: Any) -> None:
    with pytest.raises(MemoryServiceError, match="the redactor must return") as refused:
        redact_fields(Host(result), "Ramesh 9876543210", {})
    assert "Ramesh" not in str(refused.value)


def test_a_redactor_that_raises_leaves_no_trace_of_the_text() -> None:
    with pytest.raises(MemoryServiceError, match="raised KeyError") as refused:
        redact_fields(Host(KeyError("Ramesh 9876543210")), "Ramesh 9876543210", {})
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None
    assert "Ramesh" not in str(refused.value)


async def test_redacting_many_gives_what_redacting_each_gives() -> None:
    items: list[tuple[str, Mapping[str, Any]]] = [
        (f"call 98765432{index:02d}", {"n": index, "mail": "a@example.com"}) for index in range(40)
    ]
    for redactor in (default_redactor, no_redactor, PatternRedactor((r"CASE-\d+",))):
        expected = [redact_fields(redactor, *item) for item in items]
        assert await redact_many(redactor, items) == expected


async def longest_pause(items: list[tuple[str, Mapping[str, Any]]]) -> float:
    """Return the longest time the loop was kept from running something else."""
    pauses = []
    stop = asyncio.Event()

    async def watch() -> None:
        while not stop.is_set():
            # The thread's own time: what other programs take from it is no fault of ours.
            before = time.thread_time()
            await asyncio.sleep(0)
            pauses.append(time.thread_time() - before)

    watcher = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await redact_many(default_redactor, items)
    stop.set()
    await watcher
    return max(pauses)


DENSE = "Ramesh 9876543210, ABCPK1234F, a@example.com, order 9876543210, A/c 50100012345678; " * 800


@pytest.mark.parametrize(
    ("items", "most"),
    [
        ([(DENSE[:2_000], {})] * 100, 0.010),
        ([("", {"a": [DENSE[:500]] * 100})], 0.010),
        # The longest text there may be: 5 to 9 ms here, more where the processor is slower.
        ([(DENSE[:65_536], {})], 0.030),
    ],
    ids=["100 texts of 2 kB", "many values", "one text of 64 KiB"],
)
async def test_the_event_loop_is_never_held_for_long(
    items: list[tuple[str, Mapping[str, Any]]], most: float
) -> None:
    assert min([await longest_pause(items) for _ in range(5)]) < most
