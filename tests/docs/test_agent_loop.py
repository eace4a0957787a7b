"""The agent of the examples forgets: in the database, in its window, and while it thinks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from memory import LegalHoldError, Memory, PartialErasureError, PostgresStore
from rawsql import Connection
from samples import example, load
from servers import Database
from stores import broken_rules, mentions

loop = load("agent_loop")
SECRETS = ("cobalt", "cracked")
QUESTION = "Which kettle was ordered together?"

Talks = Callable[..., Any]


@contextlib.asynccontextmanager
async def opened(database: Database) -> AsyncIterator[Memory]:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as service:
        yield service


@pytest.fixture
async def agent(database: Database) -> AsyncIterator[Any]:
    """An agent that Asha and Li have told something, the last of it about both."""
    async with opened(database) as service:
        agent = loop.Agent(service.for_tenant("shop"), loop.ScriptedModel())
        await agent.turn(loop.LI, "Please deliver my parcels after six in the evening")
        await agent.turn(loop.ASHA, "My cobalt kettle arrived cracked")
        await agent.turn(loop.ASHA, "Li ordered the cobalt kettle together with me", loop.LI)
        yield agent


async def rows_of_li(superuser: Connection) -> list[str]:
    """The rows of everything that is about Li alone."""
    rows = await superuser.fetch(
        """
        select r::text as row from memory.records as r where not exists (
            select from memory.record_subjects as l
            where (l.tenant_key, l.record_id) = (r.tenant_key, r.record_id)
                and l.subject_key <> $1) order by 1
        """,
        loop.LI,
    )
    return [row["row"] for row in rows]


def window(agent: Any) -> str:
    return " ".join(record.text for record in agent.window)


def test_the_example_runs_for_a_newcomer() -> None:
    output = example("agent_loop.py")
    _, _, after = output.partition("in the middle of the conversation.")
    assert "3 memories and 9 derived went; of 1 other person too" in after
    assert after.count(loop.NOTHING) == 2
    assert not any(secret in after for secret in SECRETS)


async def test_what_the_example_says_is_so_in_every_table(
    database: Database, superuser: Connection
) -> None:
    async with opened(database) as service:
        receipt = await loop.talk(loop.Agent(service.for_tenant("shop"), loop.ScriptedModel()))
    assert await mentions(superuser, *SECRETS) == {}
    assert await mentions(superuser, "after six") != {}
    (stone,) = await superuser.fetch(
        "select erasure_id, memories, derived from memory.tombstones where memories = 3"
    )
    assert tuple(stone) == (receipt.erasure_id, 3, 9)
    assert await broken_rules(superuser) == {}


async def test_the_turn_after_the_forget_knows_nothing_and_the_neighbour_is_whole(
    agent: Any, superuser: Connection
) -> None:
    assert "cobalt" in await agent.turn(loop.ASHA, QUESTION)
    before = await rows_of_li(superuser)
    assert "after six" in "".join(before)
    assert set(await mentions(superuser, *SECRETS)) >= {"records", "postings"}
    await agent.forget(loop.ASHA)
    assert not any(secret in window(agent) for secret in SECRETS)
    assert await mentions(superuser, *SECRETS, loop.ASHA) == {}
    left = await rows_of_li(superuser)
    # What is new is Li's summary, which had been about Asha too.
    assert set(before) <= set(left)
    assert len(left) == len(before) + 1
    assert await agent.turn(loop.ASHA, QUESTION) == loop.NOTHING


async def test_without_the_refresh_the_window_would_answer(agent: Any) -> None:
    """The trap is real: the database is clean, and the agent still knows."""

    async def nothing() -> None:
        pass

    agent.refresh = nothing
    await agent.memory.forget(subject_key=loop.ASHA)
    prompts: list[str] = []

    class Listening(loop.ScriptedModel):  # type: ignore[misc]
        async def answer(self, known: Sequence[str], said: str) -> str:
            prompts.extend(known)
            return "?"

    agent.model = Listening()
    assert await agent.turn(loop.ASHA, QUESTION) == loop.WITHDRAWN  # the database sees to that
    assert "cobalt" in " ".join(prompts)


async def test_what_another_process_erased_goes_from_the_window_too(
    agent: Any, database: Database
) -> None:
    assert "cobalt" in window(agent)
    async with opened(database) as elsewhere:
        await elsewhere.forget("shop", subject_key=loop.ASHA)
    assert await agent.turn(loop.LI, QUESTION) == loop.NOTHING
    assert "cobalt" not in window(agent)
    assert "after six" in window(agent)


class Thinking(loop.ScriptedModel):  # type: ignore[misc, name-defined]
    """Reads its prompt and takes as long as it is made to."""

    def __init__(self) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def answer(self, known: Sequence[str], said: str) -> str:
        answer: str = await super().answer(known, said)
        self.asked.set()
        await self.go.wait()
        return answer


@pytest.mark.parametrize("who", [loop.ASHA, loop.LI])
async def test_an_answer_under_way_is_neither_given_nor_stored(
    agent: Any, superuser: Connection, who: str
) -> None:
    agent.model = Thinking()
    turn = asyncio.create_task(agent.turn(who, QUESTION))
    await agent.model.asked.wait()
    await agent.memory.forget(subject_key=loop.ASHA)
    agent.model.go.set()
    assert await turn == loop.WITHDRAWN
    assert await mentions(superuser, *SECRETS) == {}
    assert "cobalt" not in window(agent)
    # Li's question is Li's, and stays.
    asked = (await mentions(superuser, QUESTION)).get("records", 0)
    assert asked == (who == loop.LI)
    assert "after six" in await agent.turn(loop.LI, "When do you deliver my parcels?")


async def test_an_erasure_that_does_not_touch_the_prompt_lets_the_answer_pass(agent: Any) -> None:
    agent.model = Thinking()
    turn = asyncio.create_task(agent.turn(loop.LI, "When do you deliver my parcels?"))
    await agent.model.asked.wait()
    await agent.memory.forget(subject_key="customer:mo")
    agent.model.go.set()
    assert "after six" in await turn


async def test_the_summary_rolls_under_one_key_and_goes_in_every_version(
    agent: Any, superuser: Connection
) -> None:
    versions = """
        select version, superseded_at is null as current, text from memory.records
        where kind = 'summary' and record_key = $1 order by version
    """
    key = f"summary:{loop.ASHA}"
    rows = await superuser.fetch(versions, key)
    assert [(row["version"], row["current"]) for row in rows] == [(1, False), (2, True)]
    assert rows[1]["text"] == (
        "My cobalt kettle arrived cracked | Li ordered the cobalt kettle together with me"
    )
    await agent.forget(loop.ASHA)
    assert await superuser.fetch(versions, key) == []
    for kept in await superuser.fetch(versions, f"summary:{loop.LI}"):
        assert kept["text"] == "Please deliver my parcels after six in the evening"
    assert kept["current"]


async def summary_of(agent: Any, person: str) -> str:
    return " ".join(record.text for record in await agent.summary(person))


async def test_turns_at_once_lose_no_line_of_the_summary(agent: Any) -> None:
    lines = [f"Number {number} is my parcel" for number in range(4)]
    others = loop.Agent(agent.memory, agent.model)
    turns = [(agent, others)[at % 2].turn(loop.LI, line) for at, line in enumerate(lines)]
    assert set(await asyncio.gather(*turns)) == {"Noted."}
    text = await summary_of(agent, loop.LI)
    assert all(line in text for line in (*lines, "after six"))
    # No turn dropped what another put into the window meanwhile.
    assert sum(line in window(agent) + window(others) for line in lines) == len(lines)


async def test_two_who_forget_at_once_both_get_a_receipt(agent: Any, superuser: Connection) -> None:
    await agent.turn(loop.ASHA, "Mo likes the cobalt kettle as well", "customer:mo")
    await agent.turn("customer:mo", "Please ring twice")
    agents = [agent, *(loop.Agent(agent.memory, agent.model) for _ in range(3))]
    receipts = await asyncio.gather(*(one.forget(loop.ASHA) for one in agents))
    assert sorted(receipt.counts.memories for receipt in receipts) == [0, 0, 0, 4 - 1]
    assert [one.owed for one in agents] == [set()] * 4
    assert await mentions(superuser, *SECRETS) == {}
    assert "after six" in await summary_of(agent, loop.LI)
    assert "ring twice" in await summary_of(agent, "customer:mo")


async def test_what_stops_an_erasure_does_not_stop_what_follows(
    agent: Any, superuser: Connection
) -> None:
    about_both = {"text": "Mo likes okapis", "subject_keys": [loop.ASHA, "customer:mo"]}
    held = await agent.memory.remember(**about_both)
    await agent.memory.hold(subject_key="customer:mo")
    with pytest.raises(LegalHoldError):
        await agent.forget(loop.ASHA)
    assert not any(secret in window(agent) for secret in SECRETS)
    assert await mentions(superuser, *SECRETS) == {}
    assert set(await mentions(superuser, "okapis")) == {"records", "postings"}
    assert "after six" in await summary_of(agent, loop.LI)
    assert agent.owed == set()
    assert await agent.memory.get(record_id=held.record.record_id) is not None


async def test_an_index_that_owes_does_not_stop_what_follows(agent: Any) -> None:
    [told] = await agent.memory.records(subject_keys=loop.ASHA, origins="remembered", limit=1)
    await agent.memory.register_artefact(adapter="cache", artefact_id="1", sources=told)
    with pytest.raises(PartialErasureError):
        await agent.forget(loop.ASHA)
    assert not any(secret in window(agent) for secret in SECRETS)
    current = await agent.memory.records(subject_keys=loop.LI, kinds="summary")
    assert ["after six" in record.text for record in current] == [True]


async def test_a_model_that_fails_costs_no_receipt_and_stays_owed(agent: Any) -> None:
    class Failing(loop.ScriptedModel):  # type: ignore[misc]
        async def sum_up(self, lines: Sequence[str]) -> str:
            raise OSError

    agent.model = Failing()
    assert (await agent.forget(loop.ASHA)).complete
    assert agent.owed == {loop.LI}
    agent.model = loop.ScriptedModel()
    assert "after six" in await agent.turn(loop.LI, "When do you deliver my parcels?")
    assert agent.owed == set()
    current = await agent.memory.records(subject_keys=loop.LI, kinds="summary")
    assert ["after six" in record.text for record in current] == [True]
