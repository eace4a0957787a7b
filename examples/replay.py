"""Replay a file of conversations: remember, mask, derive, recall, erase everybody, and prove it.

    python examples/replay.py FILE [--database URL] [--inspector URL]

FILE holds one turn a line, in JSON: ``{"dialogue", "turn", "speaker", "text", "spans"}``, where a
span labels characters of the text: ``{"slot", "start", "end"}`` (end exclusive). Each turn is about
the dialogue's user and about every name that is labelled in it. Needs the ``examples`` extra.
A file that cannot be replayed is refused with one line and exit code 2.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
from conversations import FileError, Turn, extract, people, read
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from memory import (
    HashingEmbedder,
    InvalidInputError,
    Item,
    Memory,
    PostgresStore,
    Receipt,
    Record,
    TenantMemory,
    embedded,
)

# A shorter text ("Yes.", "subject") may stand in a row that has nothing to do with it.
SEARCHABLE = 20


@dataclass
class Replay:
    """What one run has stored and counted."""

    memory: TenantMemory
    inspector: asyncpg.Connection[Any]
    progress: Progress
    bar: TaskID
    told: list[Record] = field(default_factory=list)
    derived: list[Record] = field(default_factory=list)
    masked: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    watched: int = 0

    @contextmanager
    def step(self, name: str, advance: int = 1) -> Iterator[None]:
        """Time one call under a name and move the bar."""
        self.progress.update(self.bar, description=name)
        start = time.perf_counter()
        yield
        self.seconds[name].append(time.perf_counter() - start)
        self.progress.advance(self.bar, advance)

    async def derive(self, kind: str, text: str, sources: list[Record]) -> Record:
        with self.step(f"derive {kind}"):
            made = await self.memory.derive(kind=kind, text=text, sources=sources)
        self.derived.append(made.record)
        self.masked.update(finding.kind for finding in made.redactions)
        return made.record


async def store(run: Replay, dialogues: dict[str, list[Turn]]) -> None:
    """Remember every dialogue; derive a summary of each, digests of ten, a rolling summary."""
    rolling: Record | None = None
    summaries: list[Record] = []
    for number, turns in enumerate(dialogues.values(), 1):
        items = [
            Item(
                text=turn["text"],
                subject_keys=people(turn),
                metadata={"turn": turn["turn"], "speaker": turn["speaker"]},
            )
            for turn in turns
        ]
        with run.step("remember_many", len(items)):
            told = await run.memory.remember_many(items=items)
        run.told += [one.record for one in told]
        run.masked.update(finding.kind for one in told for finding in one.redactions)
        records = [one.record for one in told]
        summary = await run.derive("summary", extract((r.text for r in records), 4), records)
        summaries.append(summary)
        sources = [summary] if rolling is None else [rolling, summary]
        rolling = await run.derive("rolling", extract((r.text for r in sources), 12), sources)
        if len(summaries) == 10 or number == len(dialogues):
            await run.derive("digest", extract((r.text for r in summaries), 10), summaries)
            summaries = []


async def recall(run: Replay, dialogues: dict[str, list[Turn]]) -> None:
    """Ask for what each user opened with, by meaning, within what is held about them."""
    for name, turns in dialogues.items():
        with run.step("recall"):
            found = await run.memory.recall(text=turns[0]["text"], subject_keys=f"user:{name}")
        assert found.hits, f"nothing recalled about user:{name}: {found.note}"


def in_order(run: Replay, dialogues: dict[str, list[Turn]]) -> list[str]:
    """Return everybody: the first user, then the most told of each kind of name, then the rest."""
    told = Counter(key for record in run.told for key in record.subject_keys)
    kinds = {key.partition(":")[0]: key for key, _ in reversed(told.most_common())}
    kinds["user"] = f"user:{next(iter(dialogues))}"
    watched = [kinds.pop("user"), *kinds.values()]
    run.watched = len(watched)
    return list(dict.fromkeys([*watched, *told]))


async def erase(run: Replay, keys: list[str]) -> list[Receipt]:
    """Forget everybody; the first few under the eyes of raw SQL."""
    receipts = []
    for key in keys[: run.watched]:
        plan = await run.memory.forget(subject_key=key, dry_run=True)
        wanted, before = await closure(run, key), set(await column(run, "record_id"))
        with run.step("forget"):
            receipts.append(await run.memory.forget(subject_key=key, expect=plan.closure))
        gone = before - set(await column(run, "record_id"))
        assert gone == wanted, f"{key}: {len(gone)} records went, {len(wanted)} had to"
        assert len(wanted) == receipts[-1].counts.records == plan.counts.records, f"{key}: counts"
        await search(run, {key}, set(map(str, wanted)))
    for key in keys[run.watched :]:
        with run.step("forget"):
            receipts.append(await run.memory.forget(subject_key=key))
    return receipts


def erased(run: Replay, keys: list[str], receipts: list[Receipt]) -> Table:
    table = Table("erased", "memories", "derived", "edges", "depth", "others", "ms")
    for at in range(run.watched):
        table.add_row(keys[at], *figures(run, receipts, slice(at, at + 1)))
    rest = slice(run.watched, None)
    if keys[rest]:
        table.add_row(f"the other {len(keys[rest])}", *figures(run, receipts, rest))
    table.add_row("together", *figures(run, receipts, slice(None)))
    return table


def figures(run: Replay, receipts: list[Receipt], which: slice) -> list[str]:
    counts = [receipt.counts for receipt in receipts[which]]
    return [
        f"{sum(count.memories for count in counts):,}",
        f"{sum(count.derived for count in counts):,}",
        f"{sum(count.provenance_edges for count in counts):,}",
        f"{max(receipt.cascade_depth for receipt in receipts[which]):,}",
        f"{max(receipt.bystanders for receipt in receipts[which]):,}",
        f"{sum(run.seconds['forget'][which]) * 1e3:,.1f}",
    ]


async def closure(run: Replay, key: str) -> set[uuid.UUID]:
    """Compute by SQL of our own what must go with a person."""
    rows = await run.inspector.fetch(
        """
        with recursive gone (id) as (
            select record_id from memory.record_subjects
            where tenant_key = $1 and subject_key = $2 and not inherited
            union
            select p.derived_id from memory.provenance as p join gone on gone.id = p.source_id
            where p.tenant_key = $1
        )
        select id from gone
        """,
        run.memory.tenant_key,
        key,
    )
    return {row["id"] for row in rows}


async def column(run: Replay, expression: str) -> list[Any]:
    """Return an expression over every record that is stored."""
    query = f"select {expression} as value from memory.records where tenant_key = $1"
    return [row["value"] for row in await run.inspector.fetch(query, run.memory.tenant_key)]


async def search(run: Replay, keys: set[str], contents: set[str]) -> int:
    """Fail if a row holds a trace, in any column of any table that may be read; count those tables.

    A key has to be the whole column: ``name:ann`` is not in ``name:anna``. Contents may be a part.
    """
    tables = await run.inspector.fetch(
        """
        select format('memory.%I', c.relname) as name,
            string_agg(format('%I::text', a.attname), ', ' order by a.attnum) as columns,
            bool_or(a.attname = 'tenant_key') as has_tenant
        from pg_class as c
        join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relnamespace = 'memory'::regnamespace and c.relkind in ('r', 'p', 'm')
            and has_table_privilege(c.oid, 'select')
        group by c.relname
        """
    )
    found = {}
    for table in tables:
        whose = "tenant_key = $1" if table["has_tenant"] else "$1::text is not null"
        rows = await run.inspector.fetch(
            f"select array_remove(array[{table['columns']}], null)"
            f" from {table['name']} where {whose}",
            run.memory.tenant_key,
        )
        found[table["name"]] = sum(
            not keys.isdisjoint(values) or any(content in row for content in contents)
            for values, row in ((values, "\n".join(values)) for (values,) in rows)
        )
    assert not any(found.values()), f"not erased, rows by table: {found}"
    return len(found)


async def prove(run: Replay, held: list[str], keys: list[str], console: Console) -> None:
    """Search every column of every table for all that was stored, but for the shortest texts."""
    records = run.told + run.derived
    texts = {record.text for record in records if len(record.text) >= SEARCHABLE}
    contents = {*held, *texts, *(str(record.record_id) for record in records)}
    tables = await search(run, set(keys), contents)
    history = "select count(*) from memory.tombstones where tenant_key = $1"
    tombstones = await run.inspector.fetchval(history, run.memory.tenant_key)
    console.print(
        f"Raw SQL over every column of {tables} tables: of {len(contents | set(keys)):,} keys, ids,"
        f" vectors\nand texts (from {SEARCHABLE} characters) none is left.\n"
        f"What is left: {tombstones:,} tombstones."
    )


def stored(run: Replay) -> Table:
    table = Table("what", "count")
    table.add_row("turns remembered", f"{len(run.told):,}")
    for kind, count in sorted(Counter(record.kind for record in run.derived).items()):
        table.add_row(f"derived: {kind}", f"{count:,}")
    for kind, count in sorted(run.masked.items()):
        table.add_row(f"masked: {kind}", f"{count:,}")
    return table


def timed(run: Replay) -> Table:
    table = Table("call", "calls", "seconds", "median ms", "slowest ms")
    for name, seconds in run.seconds.items():
        middle, most = statistics.median(seconds) * 1e3, max(seconds) * 1e3
        row = (f"{len(seconds):,}", f"{sum(seconds):.2f}", f"{middle:.1f}", f"{most:.1f}")
        table.add_row(name, *row)
    return table


async def replay(
    dialogues: dict[str, list[Turn]], database: str, inspector: asyncpg.Connection[Any]
) -> None:
    console = Console()
    turns = [turn for turns in dialogues.values() for turn in turns]
    everybody = {key for turn in turns for key in people(turn)}
    calls = len(turns) + 3 * len(dialogues) + -(-len(dialogues) // 10) + len(everybody)
    pepper = os.environ.get("MEMORY_SUBJECT_PEPPER", "replay")
    tenant = f"replay-{uuid.uuid4().hex[:8]}"
    # For an inspector that is no superuser; the connection is ours alone.
    await inspector.execute("select set_config('app.current_tenant', $1, false)", tenant)
    store_ = PostgresStore(database)
    columns = (TextColumn("{task.description:<14}"), BarColumn(), MofNCompleteColumn())
    async with Memory(store_, embedder=HashingEmbedder(), subject_pepper=pepper) as memory:
        with Progress(*columns, console=console) as progress:
            bar = progress.add_task("", total=calls)
            run = Replay(memory.for_tenant(tenant), inspector, progress, bar)
            await store(run, dialogues)
            await recall(run, dialogues)
            held, keys = await column(run, "embedding::text"), in_order(run, dialogues)
            receipts = await erase(run, keys)
        console.print(stored(run), erased(run, keys, receipts), timed(run))
        await prove(run, held, keys, console)


@asynccontextmanager
async def databases(arguments: argparse.Namespace) -> AsyncIterator[tuple[str, str]]:
    """Yield the URL to work on and the one to look with."""
    if arguments.database:
        yield arguments.database, arguments.inspector or arguments.database
        return
    async with embedded.serve() as server:
        yield server.url, server.superuser_url


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path, help="conversations, one turn a line in JSON")
    parser.add_argument("--database", help="the application's URL; default: a server of its own")
    parser.add_argument("--inspector", help="URL for the proof, best a superuser's")
    arguments = parser.parse_args()
    if not arguments.file.is_file():
        parser.exit(2, f"{arguments.file}: is not a file\n")
    try:
        dialogues = read(arguments.file)
        async with databases(arguments) as (database, inspector_url):
            inspector = await asyncpg.connect(inspector_url)
            try:
                await replay(dialogues, database, inspector)
            finally:
                await inspector.close()
    except (FileError, InvalidInputError) as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
