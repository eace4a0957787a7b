"""Sessions of the OpenAI Agents SDK: its own protocol, its own runner, and what erasure leaves."""

from __future__ import annotations

import asyncio
import json
import secrets
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.memory import Session, SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import (
    InvalidInputError,
    LegalHoldError,
    Memory,
    SubjectBlockedError,
    TenantMemory,
)
from memory.integrations import openai_agents
from memory.integrations.openai_agents import MemorySession
from sessions import ANN, BOB, neighbours, rows, said, session
from stores import broken_rules, mentions

ITEMS: list[Any] = [
    {"role": "user", "content": "Where is my parcel?"},
    {"role": "user", "content": ""},
    {"role": "user", "content": "  two\tblanks  \n"},
    {
        "role": "user",
        "content": [
            {
                "type": "input_image",
                "image_url": "data:image/png;base64,iVBORw0KGgo=",
                "text": None,
            },
            {"type": "input_text", "text": "and this?"},
            {"type": "input_text", "text": "\u6771\u4eac \U0001f600"},
        ],
    },
    {
        "id": "rs_68af4e3f",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "She asks for a parcel"}],
        "encrypted_content": "gAAAAABo-w_x7==",
    },
    {"id": "rs_1", "type": "reasoning", "summary": []},
    {
        "id": "fc_1",
        "call_id": "call_1",
        "type": "function_call",
        "name": "find",
        "arguments": '{"b":1.0, "a": [true,null]}',
        "status": "completed",
    },
    {"call_id": "call_1", "type": "function_call_output", "output": "in Pune"},
    {
        "call_id": "call_2",
        "type": "function_call_output",
        "output": [{"type": "input_text", "text": "in Pune"}],
    },
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "In Pune.", "annotations": [], "logprobs": []}],
    },
    {"type": "item_reference", "id": "msg_1"},
    {"text": ["a key of ours"], "item": {"content": "nested"}, "content": {"text": "a mapping"}},
]


async def run(agent: Agent, text: str, conversation: MemorySession) -> str:
    untraced = RunConfig(tracing_disabled=True)
    result = await Runner.run(agent, text, session=conversation, run_config=untraced)
    return str(result.final_output)


@function_tool
def find(parcel: str) -> str:
    """Find a parcel."""
    return f"{parcel} is in Pune"


async def test_a_runner_sees_the_turns_of_an_earlier_process_in_order(shop: TenantMemory) -> None:
    model = ScriptedModel()
    agent = Agent(name="clerk", model=model, tools=[find])
    for step in (
        assistant_message("Which one?"),
        function_call("find", {"parcel": "P7"}, call_id="call_7"),
        assistant_message("In Pune."),
        assistant_message("Tomorrow."),
    ):
        model.enqueue([step])
    assert await run(agent, "Where is it?", session(shop)) == "Which one?"
    assert await run(agent, "P7", session(shop)) == "In Pune."
    assert await run(agent, "And when?", session(shop)) == "Tomorrow."
    sent = model.calls[-1].input
    assert isinstance(sent, list)
    spoken = [item.get("content") or item.get("output") or item.get("name") for item in sent]
    texts = [part if isinstance(part, str) else part[0]["text"] for part in spoken]
    assert texts == [
        "Where is it?",
        "Which one?",
        "P7",
        "find",
        "P7 is in Pune",
        "In Pune.",
        "And when?",
    ]
    *before, last = await session(shop).get_items()
    assert before == sent
    assert last["content"][0]["text"] == "Tomorrow."
    model.assert_complete()


async def test_it_keeps_to_the_protocol(shop: TenantMemory) -> None:
    assert isinstance(session(shop), Session)
    assert session(shop).session_id == "s1"
    assert session(shop).session_settings == SessionSettings()
    assert session(shop, session_settings={"limit": 2}).session_settings == SessionSettings(limit=2)


async def test_items_come_back_as_they_were_and_none_is_changed(shop: TenantMemory) -> None:
    given_items = json.loads(json.dumps(ITEMS))
    await session(shop).add_items(given_items)
    assert given_items == ITEMS
    assert await session(shop).get_items() == ITEMS
    assert [await session(shop).pop_item() for _ in ITEMS] == ITEMS[::-1]
    assert await session(shop).pop_item() is None
    assert await session(shop).get_items() == []


LETTERS = st.text("abc \"'\\{}[]:,\u00e9", max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | LETTERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["content", "output", "summary", "arguments", "text", "type", "name"])


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.dictionaries(NAMES, VALUES | st.lists(st.dictionaries(NAMES, VALUES))), max_size=4)
)
def test_any_item_of_json_comes_back(items: list[Any]) -> None:
    async def there_and_back() -> None:
        conversation = session(Memory(redactor=None).for_tenant("shop"))
        await conversation.add_items(items)
        assert await conversation.get_items() == items

    asyncio.run(there_and_back())


async def test_what_is_stored_and_given_back_is_masked(stored: Memory, superuser: Any) -> None:
    shop = stored.for_tenant("shop")
    arguments = '{"phone": 9845012345, "list": [9845012345], "name": "Ann"}'
    await session(shop).add_items(
        [
            *said("call 98450 12345"),
            {"type": "function_call", "call_id": "c", "name": "dial", "arguments": arguments},
            {"type": "function_call_output", "call_id": "c", "output": "rang 9845012345"},
        ]
    )
    asked, call, output = (dict(item) for item in await session(shop).get_items())
    assert asked["content"] == "call [PHONE:****2345]"
    # What a model's adapter parses is still JSON.
    assert json.loads(call["arguments"]) == {
        "phone": "[PHONE:****2345]",
        "list": ["[PHONE:****2345]"],
        "name": "Ann",
    }
    assert output["output"] == "rang [PHONE:****2345]"
    assert await mentions(superuser, "9845012345", "98450 12345") == {}


async def test_ids_of_providers_are_no_identifiers_to_the_redactor() -> None:
    conversation = session(Memory().for_tenant("shop"))
    shapes = [
        lambda: f"msg_{secrets.token_hex(25)}",
        lambda: f"call_{secrets.token_urlsafe(18)}",
        lambda: secrets.token_hex(16),
        lambda: f"gAAAAAB{secrets.token_urlsafe(900)}",
    ]
    items: list[Any] = [
        {"type": "reasoning", "id": shape(), "call_id": shape(), "encrypted_content": shape()}
        for shape in shapes
        for _ in range(20)
    ]
    await conversation.add_items(items)
    assert await conversation.get_items() == items


async def test_a_limit_takes_the_newest_in_order(
    shop: TenantMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_agents, "_PAGE", 2)
    await session(shop).add_items(said("a", "b", "c"))
    await session(shop).add_items(said("d", "e"))
    assert await session(shop).get_items() == said("a", "b", "c", "d", "e")
    for limit, texts in ((1, "e"), (3, "cde"), (4, "bcde"), (9, "abcde"), (0, ""), (-1, "")):
        assert await session(shop).get_items(limit) == said(*texts)
    limited = session(shop, session_settings=SessionSettings(limit=2))
    assert await limited.get_items() == said("d", "e")
    assert await limited.get_items(limit=1) == said("e")


async def test_nothing_comes_between_the_items_of_one_call(shop: TenantMemory) -> None:
    batches = [said(*(f"{batch} {number}" for number in range(8))) for batch in range(4)]
    await asyncio.gather(*(session(shop).add_items(batch) for batch in batches))
    items = await session(shop).get_items()
    found = [items[start : start + 8] for start in range(0, 32, 8)]
    assert sorted(map(str, found)) == sorted(map(str, batches))


async def test_sessions_people_and_tenants_do_not_meet(memory: Memory) -> None:
    shop, bank = memory.for_tenant("shop"), memory.for_tenant("bank")
    apart = {
        "one": session(shop),
        "other id": session(shop, "s2"),
        "other person": session(shop, people=BOB),
        "both": session(shop, people=[ANN, BOB], name="s3"),
        "other tenant": session(bank),
        # Masked alike, were they metadata.
        "phone": session(shop, "9845012345"),
        "other phone": session(shop, "9900012345"),
    }
    for name, conversation in apart.items():
        await conversation.add_items(said(name))
    for name, conversation in apart.items():
        assert await conversation.get_items() == said(name)
    await apart["one"].clear_session()
    assert await apart["one"].get_items() == []
    for name in apart.keys() - {"one"}:
        assert await apart[name].get_items() == said(name)


async def summary(shop: TenantMemory, conversation: MemorySession) -> None:
    items = await shop.records(kinds=conversation.kind)
    made = await shop.derive(kind="summary", text="okapi in brief", sources=items)
    await shop.derive(kind="belief", text="okapi in general", sources=made)


@pytest.mark.parametrize("erasure", ["clear", "pop", "forget"])
async def test_an_erasure_leaves_nothing_of_the_items_nor_of_what_was_made_from_them(
    stored: Memory, superuser: Any, erasure: str
) -> None:
    shop = stored.for_tenant("shop")
    beside = await neighbours(stored)
    if erasure == "forget":  # which takes her other session too
        await beside.pop(0).clear_session()
    before = await rows(superuser)
    conversation = session(shop)
    await conversation.add_items(said("okapi"))
    await summary(shop, conversation)
    assert (await mentions(superuser, "okapi"))["records"] == 3
    if erasure == "clear":
        await conversation.clear_session()
    elif erasure == "pop":
        assert await conversation.pop_item() == said("okapi")[0]
    else:
        await shop.forget(subject_key=ANN)
    assert await conversation.get_items() == []
    assert await mentions(superuser, "okapi") == {}
    assert await rows(superuser) == before
    assert await broken_rules(superuser) == {}
    for other in beside:
        assert await other.get_items() == said("zebra one", "zebra two")
    stones = await shop.erasure_history(subject_key=ANN, limit=1)
    assert [(stone.memories, stone.derived) for stone in stones] == [(1, 2)]


async def test_two_who_pop_get_two_items(shop: TenantMemory) -> None:
    await session(shop).add_items(said("a", "b", "c"))
    popped = await asyncio.gather(*(session(shop).pop_item() for _ in range(4)))
    assert sorted(str(item) for item in popped if item) == sorted(map(str, said("a", "b", "c")))
    assert popped.count(None) == 1


async def test_a_session_of_two_people_goes_with_either(shop: TenantMemory) -> None:
    for gone in (ANN, BOB):
        conversation = session(shop, people=[ANN, BOB])
        await conversation.add_items(said("together"))
        await session(shop, "s2", BOB if gone == ANN else ANN).add_items(said("alone"))
        await shop.forget(subject_key=gone)
        assert await conversation.get_items() == []
        assert await session(shop, "s2", BOB if gone == ANN else ANN).get_items() == said("alone")


async def test_a_hold_keeps_the_items_and_a_block_refuses_new_ones(shop: TenantMemory) -> None:
    conversation = session(shop)
    await conversation.add_items(said("kept"))
    await shop.hold(subject_key=ANN)
    with pytest.raises(LegalHoldError):
        await conversation.pop_item()
    with pytest.raises(LegalHoldError):
        await conversation.clear_session()
    assert await conversation.get_items() == said("kept")
    await shop.forget(subject_key=BOB, block_future=True)
    with pytest.raises(SubjectBlockedError):
        await session(shop, people=BOB).add_items(said("late"))
    await conversation.add_items(said("allowed"))
    assert await session(shop, people=BOB).get_items() == []


def nest(depth: int) -> Any:
    found: Any = "a secret"
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": nest(100_000)},
        {"content": (secret for secret in "a secret")},
        "a secret",
        {"content": "a secret" * 8_193},
        {"content": b"a secret"},
        {"content": "secret\0"},
    ],
    ids=["too deep", "no copy", "no mapping", "too long", "no JSON", "NUL"],
)
async def test_a_wrong_item_stores_none_and_is_not_quoted(shop: TenantMemory, wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^items\.1") as refused:
        await session(shop).add_items([*said("first"), wrong])
    assert "secret" not in str(refused.value)
    assert await session(shop).get_items() == []
    await session(shop).add_items(said("first", "x" * 65_536))
    assert len(await session(shop).get_items()) == 2


@pytest.mark.parametrize("people", [[], "", None])
def test_a_session_is_about_somebody(people: Any) -> None:
    with pytest.raises(InvalidInputError):
        session(Memory().for_tenant("shop"), people=people)


async def test_items_of_a_session_with_a_lifetime_expire(shop: TenantMemory) -> None:
    await session(shop, lifetime=timedelta(days=30)).add_items(said("for a month"))
    await session(shop, lifetime=timedelta(microseconds=1)).add_items(said("gone"))
    assert await session(shop).get_items() == said("for a month")
    assert (await shop.expire()).counts.memories == 1
    for wrong in (timedelta(), 30):
        with pytest.raises(InvalidInputError, match="lifetime"):
            session(shop, lifetime=wrong)


async def test_ids_grow_within_a_session(shop: TenantMemory) -> None:
    for number in range(3):
        await session(shop).add_items(said(f"{number}", f"{number}"))
    found = await shop.records(kinds=session(shop).kind)
    assert all(newer.record_id > older.record_id for newer, older in pairwise(found))
