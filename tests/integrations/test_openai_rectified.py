"""Sessions that share people, items that were corrected, and arguments that were masked."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from memory import (
    Memory,
    TenantMemory,
)
from memory.integrations import openai_agents
from sessions import ANN, BOB, neighbours, rows, said, session
from stores import broken_rules, mentions

OVERLAPPING: list[Any] = [ANN, BOB, [ANN, BOB, "customer:cy"], ["customer:cy", ANN]]


@pytest.mark.parametrize("erasure", ["clear", "pop"])
async def test_sessions_with_some_people_in_common_do_not_meet(
    stored: Memory, superuser: Any, erasure: str
) -> None:
    shop = stored.for_tenant("shop")
    for people in OVERLAPPING:
        await session(shop, people=people).add_items(said(f"zebra {people}"))
    # The lengths frame the names: neither an id nor a person can pose as the other.
    await session(shop, f"s1{ANN}", BOB).add_items(said("zebra"))
    [told] = await shop.records(kinds=session(shop).kind)
    await shop.relate(record_id=told.record_id, subject_keys=BOB)
    before = await rows(superuser)
    both = session(shop, people=[ANN, BOB])
    await both.add_items(said("okapi"))
    assert await session(shop, people=[BOB, ANN]).get_items() == said("okapi")
    if erasure == "clear":
        await both.clear_session()
    else:
        assert await both.pop_item() == said("okapi")[0]
        assert await both.pop_item() is None
    assert await mentions(superuser, "okapi") == {}
    assert await rows(superuser) == before
    for people in OVERLAPPING:
        assert await session(shop, people=people).get_items() == said(f"zebra {people}")


@pytest.mark.parametrize("erasure", ["clear", "pop"])
async def test_an_erasure_takes_every_version_and_nothing_of_a_neighbour(
    stored: Memory, superuser: Any, erasure: str
) -> None:
    shop = stored.for_tenant("shop")
    await neighbours(stored)
    both = session(shop, people=[ANN, BOB])
    if erasure == "pop":
        await both.add_items(said("stays"))
    before = await rows(superuser)
    await both.add_items(said("okapi one"))
    [first] = await shop.records(kinds=both.kind, limit=1)
    made = await shop.derive(kind="summary", text="okapi in brief", sources=first)
    second = await shop.supersede(record_id=first.record_id, text="okapi two")
    # Of the last version the first of the people is no part.
    await shop.supersede(record_id=second.record.record_id, text="okapi three", subject_keys=BOB)
    assert (await mentions(superuser, "okapi"))["records"] == 4
    if erasure == "clear":
        await both.clear_session()
    else:
        assert await both.pop_item() == said("okapi three")[0]
    assert await shop.get(record_id=made.record.record_id) is None
    assert await mentions(superuser, "okapi") == {}
    assert await rows(superuser) == before
    assert await broken_rules(superuser) == {}


async def test_a_version_about_others_goes_with_the_session_it_came_from(
    stored: Memory, superuser: Any
) -> None:
    shop = stored.for_tenant("shop")
    await neighbours(stored)
    before = await rows(superuser)
    await session(shop).add_items(said("okapi one"))
    [first] = await shop.records(kinds=session(shop).kind)
    await shop.supersede(record_id=first.record_id, text="okapi two", subject_keys=BOB)
    await session(shop).clear_session()
    assert await mentions(superuser, "okapi") == {}
    assert await rows(superuser) == before


async def test_a_corrected_item_keeps_its_place(
    shop: TenantMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_agents, "_PAGE", 3)
    await session(shop).add_items(said(*"abcdefg"))
    newest = await shop.records(kinds=session(shop).kind)
    for record in (newest[-1], newest[-2], newest[2]):  # a, b, e
        once = await shop.supersede(record_id=record.record_id, text="x")
        await shop.supersede(record_id=once.record.record_id, text=record.text.upper())
    assert await session(shop).get_items() == said(*"ABcdEfg")
    for limit, texts in (
        (1, "g"),
        (2, "fg"),
        (3, "Efg"),
        (5, "cdEfg"),
        (6, "BcdEfg"),
        (9, "ABcdEfg"),
    ):
        assert await session(shop).get_items(limit) == said(*texts)
    popped = [await session(shop).pop_item() for _ in "gfEdcBA"]
    assert popped == said(*"gfEdcBA")
    assert await shop.records(kinds=session(shop).kind, include_superseded=True) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"note": "corrected"},
        {"item": {"role": "unknown"}, "text": ["content", 0, "text"]},
        {"item": {}, "ids": {"id": [1]}},
    ],
)
async def test_what_has_metadata_of_the_hosts_is_a_message_without_what_it_took_out(
    shop: TenantMemory, metadata: dict[str, Any]
) -> None:
    conversation = session(shop)
    await conversation.add_items(
        [{"role": "assistant", "content": "one", "note": "okapi"}, {"role": "user", "content": "2"}]
    )
    first = (await shop.records(kinds=conversation.kind))[-1]
    await shop.supersede(record_id=first.record_id, text="two", metadata=metadata)
    await shop.remember(text="three", subject_keys=ANN, kind=conversation.kind, metadata=metadata)
    assert await conversation.get_items() == [
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "2"},
        {"role": "user", "content": "three"},
    ]
    popped = [await conversation.pop_item() for _ in range(4)]
    assert popped == [
        {"role": "user", "content": "three"},
        {"role": "user", "content": "2"},
        {"role": "assistant", "content": "two"},
        None,
    ]
    assert await shop.records(kinds=conversation.kind, include_superseded=True) == []


async def test_two_who_pop_a_corrected_item_get_it_once(shop: TenantMemory) -> None:
    await session(shop).add_items(said("a"))
    [told] = await shop.records(kinds=session(shop).kind)
    await shop.supersede(record_id=told.record_id, text="b")
    popped = await asyncio.gather(*(session(shop).pop_item() for _ in range(3)))
    assert [item for item in popped if item] == said("b")


PHONE = "[PHONE:****2345]"
TOOL = [
    ('{"n":-9845012345}', {"n": f"-{PHONE}"}),
    ("9845012345", PHONE),
    ("-9845012345", f"-{PHONE}"),
    ('"9845012345"', PHONE),
    ('{"9845012345": 1, "9900012345": 2}', {PHONE: 1, f"{PHONE} (2)": 2}),
    ('{"a": [{"n": [9845012345, -9845012345]}]}', {"a": [{"n": [PHONE, f"-{PHONE}"]}]}),
    (r'{"n": "\u0039845012345"}', {"n": PHONE}),
    (
        json.dumps({"n": -9845012345, "fill": "x" * 50_000}),
        {"n": f"-{PHONE}", "fill": "x" * 50_000},
    ),
]


@pytest.mark.parametrize(("arguments", "masked"), TOOL)
async def test_arguments_are_masked_inside_and_stay_json(
    stored: Memory, superuser: Any, arguments: str, masked: Any
) -> None:
    conversation = session(stored.for_tenant("shop"))
    call: Any = {
        "type": "function_call",
        "call_id": "call_1",
        "name": "dial",
        "arguments": arguments,
    }
    await conversation.add_items([call, *said("zebra")])
    items: list[Any] = await conversation.get_items()
    [found, beside] = items
    assert json.loads(found["arguments"]) == masked
    assert {**found, "arguments": arguments} == call
    assert beside == said("zebra")[0]
    assert await mentions(superuser, "9845012345", "9900012345") == {}


@pytest.mark.parametrize(
    "arguments",
    ["[" * 60_000, "{", "", "[1e400]", '{"a": NaN}', r'{"a": "\ud800"}', "[" * 40 + "]" * 40],
)
async def test_arguments_that_are_no_json_or_not_to_be_stored_as_such_are_text(
    shop: TenantMemory, arguments: str
) -> None:
    call: Any = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": arguments}
    await session(shop).add_items([call, {**call, "arguments": f"{arguments} tel 9845012345"}])
    items: list[Any] = await session(shop).get_items()
    whole, masked = items
    assert (whole, masked["arguments"]) == (call, f"{arguments} tel {PHONE}")


async def test_ids_are_left_alone_where_they_are_ids(stored: Memory, superuser: Any) -> None:
    conversation = session(stored.for_tenant("shop"))
    kept: list[Any] = [
        {"type": "function_call", "id": "fc_9845012345", "call_id": "call_9845012345"},
        {"type": "function_call_output", "call_id": "call_9845012345", "output": "rang"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_9845012345"},
    ]
    await conversation.add_items(kept)
    assert await conversation.get_items() == kept
    told: list[Any] = [
        {"type": "x", "id": "call_990001234x", "name": "call_9900012345"},
        {"type": "x", "id": "call_1 of 9900012345"},
    ]
    await conversation.add_items(told)
    assert "9900012345" not in str(await conversation.get_items())
    assert await mentions(superuser, "9900012345") == {}
