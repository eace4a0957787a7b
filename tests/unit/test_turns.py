"""A batch does not hold the event loop: between any two texts others may run, in every stage."""

from __future__ import annotations

import asyncio

import pytest

from memory import HashingEmbedder, Memory, turns
from memory.redaction import walk

# What is done for each text: checked, redacted (the text and what lies in its metadata), held to
# the limits, embedded, its vector checked, made a draft of.
STAGES = 8


@pytest.fixture
def every_turn(monkeypatch):
    """Every opportunity to let others run is taken."""
    monkeypatch.setattr(turns, "_SLICE", 0)
    monkeypatch.setattr(walk, "_SLICE", 0)


async def others_ran(call):
    """How often another task had its turn while the call ran."""
    count, done = 0, False

    async def other():
        nonlocal count
        while not done:
            await asyncio.sleep(0)
            count += 1

    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    await call
    done = True
    await task
    return count


@pytest.mark.usefixtures("every_turn")
async def test_others_run_between_any_two_texts_in_every_stage():
    memory = Memory(embedder=HashingEmbedder(16), subject_pepper="pepper")
    item = {"text": "tea at noon", "subject_keys": "ann", "metadata": {"a": "b"}}
    counts = [
        await others_ran(memory.remember_many("acme", items=[item] * number))
        for number in (100, 200)
    ]
    assert counts[1] - counts[0] >= 100 * STAGES


@pytest.mark.usefixtures("every_turn")
async def test_others_run_within_metadata_that_holds_nothing_to_mask():
    memory = Memory(subject_pepper="pepper")
    counts = [
        await others_ran(
            memory.remember("acme", text="tea", subject_keys="ann", metadata={"a": ["b"] * number})
        )
        for number in (100, 200)
    ]
    assert counts[1] - counts[0] >= 100


async def test_a_slice_that_has_not_passed_is_not_given_up():
    clock = turns.Turns()
    clock._due += 60

    async def many():
        for _ in range(1_000):
            await clock.give()

    assert await others_ran(many()) <= 2
