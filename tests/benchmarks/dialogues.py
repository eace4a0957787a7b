# ruff: noqa: T201 - a report is printed
"""How often each strategy finds the turns that answer a question, on real conversations.

    python tests/benchmarks/dialogues.py FILE [--database URL] [--json FILE]

FILE is JSON Lines of ``{dialogue, turn, speaker, text}`` (``questions.py`` says which). Every turn
is remembered, about one user per dialogue, in one tenant; questions are asked across the tenant. A
question is answered at k if one of its turns is among the first k. The model runs here (extra
``local``). The store is in this process unless the URL of a migrated database is given; what is
stored there is forgotten again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from memory import Memory, PostgresStore, TenantMemory
from memory.integrations.minilm import MiniLMEmbedder
from questions import QUESTIONS, Question

DEPTHS = (5, 10)
WAYS: Mapping[str, dict[str, Any]] = {
    "overlap": {"strategy": "lexical"},
    "keyword": {"strategy": "keyword"},
    "vector": {"strategy": "vector"},
    "hybrid": {"strategy": "hybrid"},
    "hybrid + .25 neighbours": {"strategy": "hybrid", "neighbours": 0.25},
    "hybrid + .5 neighbours": {"strategy": "hybrid", "neighbours": 0.5},
}
TENANT = "benchmark-dialogues"
BATCH = 500


def read(file: Path) -> dict[str, tuple[str, str]]:
    """Return the user and the text of each ``dialogue:turn``, in the order of the file."""
    turns = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        turns[f"{said['dialogue']}:{said['turn']}"] = (f"user:{said['dialogue']}", said["text"])
    missing = {turn for question in QUESTIONS for turn in question.evidence} - turns.keys()
    if missing:
        sys.exit(
            f"{file.name} is not the file of these questions: {len(missing)} turns are missing"
        )
    return turns


async def remember(tenant: TenantMemory, turns: Mapping[str, tuple[str, str]]) -> dict[UUID, str]:
    """Store every turn; return which turn a record is."""
    names = list(turns)
    known = {}
    for start in range(0, len(names), BATCH):
        batch = names[start : start + BATCH]
        items = [{"subject_keys": turns[name][0], "text": turns[name][1]} for name in batch]
        told = await tenant.remember_many(items=items)
        known |= {one.record.record_id: name for one, name in zip(told, batch, strict=True)}
    return known


async def rank(
    tenant: TenantMemory, known: Mapping[UUID, str], question: Question, how: dict[str, Any]
) -> int | None:
    """Return at which place, from 1, the first evidence stands, if it is among those asked for."""
    found = await tenant.recall(text=question.text, limit=max(DEPTHS), **how)
    places = (
        place
        for place, hit in enumerate(found.hits, 1)
        if known[hit.record.record_id] in question.evidence
    )
    return next(places, None)


def shares(ranks: Sequence[int | None]) -> dict[str, float]:
    """Return the share of questions that are answered at each depth."""
    return {
        f"at_{depth}": sum(place is not None and place <= depth for place in ranks) / len(ranks)
        for depth in DEPTHS
    }


async def measured(tenant: TenantMemory, turns: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    known = await remember(tenant, turns)
    groups = list(dict.fromkeys(question.group for question in QUESTIONS))
    found: dict[str, Any] = {
        "turns": len(turns),
        "questions": {group: sum(q.group == group for q in QUESTIONS) for group in groups},
    }
    for name, how in WAYS.items():
        ranks = [(q.group, await rank(tenant, known, q, how)) for q in QUESTIONS]
        found[name] = {"all": shares([place for _, place in ranks])}
        for group in groups:
            found[name][group] = shares([place for of, place in ranks if of == group])
    return found


def table(found: Mapping[str, Any]) -> list[str]:
    groups = {"all": len(QUESTIONS), **found["questions"]}
    heads = "".join(f"{f'{group} ({number})':>16}" for group, number in groups.items())
    lines = [f"{found['turns']:,} turns; evidence in the first 5 / 10", f"{'':<26}{heads}"]
    for name in WAYS:
        cells = "".join(
            f"{found[name][group]['at_5']:>9.2f} / {found[name][group]['at_10']:.2f}"
            for group in groups
        )
        lines.append(f"{name:<26}{cells}")
    return lines


async def run(file: Path, url: str | None) -> dict[str, Any]:
    store = PostgresStore(url) if url else None
    embedder = MiniLMEmbedder(threads=2)
    turns = read(file)
    # Redaction would mask the numbers that some turns are about.
    memory = Memory(store, embedder=embedder, redactor=None, subject_pepper="bench")
    async with memory:
        tenant = memory.for_tenant(TENANT)
        try:
            return await measured(tenant, turns)
        finally:
            for user in dict.fromkeys(user for user, _ in turns.values()):
                await tenant.forget(subject_key=user)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare strategies of recall on conversations.")
    parser.add_argument("file", type=Path, help="the conversations, as JSON Lines")
    parser.add_argument("--database", help="the URL of a migrated database; default: none")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    arguments = parser.parse_args()
    found = asyncio.run(run(arguments.file, arguments.database))
    print("\n".join(table(found)))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
