"""A string that is a member of an ``Enum`` stands for its characters, wherever it is given."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

from memory import Memory, tombstones
from memory.redaction import default_redactor, redact_fields


class Code(str, Enum):  # noqa: UP042 - StrEnum is the one whose str is its characters
    """As hosts write them: ``str`` of a member is its name, not its characters."""

    TENANT = "acme"
    PERSON = "customer:dana"
    KIND = "summary"
    KEY = "status"
    VALUE = "open"
    LINE = "line"
    REASON = "operator"
    EQUAL = "=="


class Sly(str):
    """Says of itself what is not so."""

    __slots__ = ()

    def __str__(self) -> str:
        return "98450 12345"

    def __contains__(self, item: object) -> bool:
        return False

    def encode(self, *args: Any, **options: Any) -> bytes:
        return b""


def strings(value: Any) -> list[str]:
    """All strings of a value in JSON types, keys too."""
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


async def test_a_member_is_stored_and_found_as_its_characters(memory: Memory) -> None:
    told = await memory.remember(
        Code.TENANT,
        text="green tea",
        subject_keys=Code.PERSON,
        kind=Code.KIND,
        record_key=Code.LINE,
        metadata={Code.KEY: Code.VALUE, "of": [Code.VALUE]},
    )
    assert told.record.metadata == {"status": "open", "of": ["open"]}
    assert await memory.get("acme", record_id=told.record) == told.record
    for where in (
        {"metadata": {"status": "open"}},
        {"where": [(Code.KEY, Code.EQUAL, Code.VALUE)]},
    ):
        [hit] = (await memory.recall("acme", **where)).hits
        assert hit.record == told.record
    await memory.derive(Code.TENANT, kind="note", text=Code.VALUE, sources=told)
    shown = [entry.to_dict() async for entry in memory.export(Code.TENANT, subject_key=Code.PERSON)]
    assert len(shown) == 2
    assert {type(text) for text in strings(shown)} == {str}


async def test_the_evidence_of_an_erasure_that_a_member_asked_for_verifies(memory: Memory) -> None:
    await memory.remember(Code.TENANT, text="green tea", subject_keys=Code.PERSON)
    receipt = await memory.forget(Code.TENANT, subject_key=Code.PERSON, reason=Code.REASON)
    assert receipt.counts.memories == 1
    [stone] = await memory.erasure_history("acme")
    assert receipt.anchor is not None
    lines = [tombstones.header(), tombstones.line(stone)]
    lines += [tombstones.head("acme", receipt.anchor), tombstones.footer(1)]
    assert tombstones.verify(lines).anchors == {"acme": receipt.anchor}
    assert json.loads(lines[1])["reason"] == "operator"


async def test_what_is_stored_is_what_was_checked(memory: Memory) -> None:
    told = await memory.remember(
        "acme", text="tea", subject_keys=Sly("dana"), metadata={Sly("key"): Sly("value")}
    )
    assert told.record.metadata == {"key": "value"}
    assert type(told.record.subject_keys[0]) is str
    masked = redact_fields(default_redactor, Sly("tea"), {Sly("key"): Sly("value")})
    assert (masked.text, masked.metadata) == ("tea", {"key": "value"})
    assert type(masked.text) is str
