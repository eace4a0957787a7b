"""The documented use of the API. Checked by mypy, never run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, assert_never, assert_type
from uuid import UUID

from agents.memory import Session
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore
from mcp.server import MCPServer
from sqlalchemy.ext.asyncio import AsyncEngine

import memory
from memory import (
    Anchor,
    Capabilities,
    CheckReport,
    Decision,
    Derived,
    DerivedIndex,
    Embedder,
    ErasureEvent,
    EventSink,
    Exported,
    ExportedRecord,
    Fault,
    Finding,
    HashingEmbedder,
    IndexState,
    InMemoryStore,
    Item,
    Lineage,
    Maintained,
    Memory,
    Moment,
    Proof,
    Purged,
    Readiness,
    Recall,
    Receipt,
    Record,
    Redactor,
    Reembedded,
    Release,
    Remaining,
    Remembered,
    Replayed,
    TenantMemory,
    Timeline,
    TimelineEvent,
    Tombstone,
    VectorIndex,
)
from memory.cli import main
from memory.integrations.importing import Imported, from_langgraph, from_mem0
from memory.integrations.langgraph import ErasableStore, LangChainEmbedder, Subjects
from memory.integrations.mcp_server import memory_server
from memory.integrations.minilm import MiniLMEmbedder
from memory.integrations.openai_agents import MemorySession
from memory.ports import Store


class MyEmbedder:
    model = "mine"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


class MyRedactor:
    def redact(self, text: str) -> tuple[str, list[Finding]]:
        return text, []


class MyIndex:
    name = "vectors"

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        return len(artefact_ids)


class MySink:
    async def publish(self, event: ErasureEvent) -> None:
        del event


class MyArray:
    def tolist(self) -> list[float]:
        return [1.0]


def plugs_fit() -> None:
    embedder: Embedder = MyEmbedder()
    hashing: Embedder = HashingEmbedder()
    local: Embedder = MiniLMEmbedder(threads=2)
    redactor: Redactor = MyRedactor()
    index: DerivedIndex = MyIndex()
    sink: EventSink = MySink()
    store: Store = InMemoryStore()
    Memory(
        store,
        embedder=embedder,
        redactor=redactor,
        indexes=[index],
        events=sink,
        subject_pepper=b"pepper",
        clock=lambda: datetime.now(UTC),
        purge_timeout=timedelta(seconds=10),
    )
    Memory(embedder=hashing, redactor=None, postings=False)
    Memory(embedder=local)


async def writes(memory: Memory, record: Record) -> None:
    assert_type(await memory.remember("acme", text="x", subject_keys="p"), Remembered)
    assert_type(
        await memory.remember_many(
            "acme",
            items=[
                Item(text="x", subject_keys=["p", "q"], embedding=MyArray()),
                {"text": "y", "subject_keys": "p"},
            ],
        ),
        list[Remembered],
    )
    await memory.remember("acme", text="x", subject_keys="p", searchable=False)
    assert_type(
        await memory.postpone("acme", record_ids=[record], expires_at=datetime.now(UTC)), int
    )
    assert_type(
        await memory.derive(
            "acme",
            kind="summary",
            text="x",
            sources=[record, record.record_id, "0190a9c0-0000-7000-8000-000000000000"],
            artefacts=[("vectors", "id")],
        ),
        Derived,
    )
    assert_type(
        await memory.supersede("acme", record_id=record.record_id, subject_keys="p"), Remembered
    )
    assert_type(await memory.relate("acme", record_id=record.record_id, subject_keys="p"), Record)
    await memory.register_artefact("acme", adapter="vectors", artefact_id="id", sources=record)


async def reads(memory: Memory, record: Record) -> None:
    assert_type(await memory.recall("acme", text="x", strategy="auto"), Recall)
    assert_type(await memory.recall("acme", origins="derived", strategy="recent"), Recall)
    assert_type(
        await memory.recall(
            "acme",
            text="x",
            subject_keys=["p", "q"],
            subject_match="all",
            min_score=0.3,
            include_superseded=True,
            neighbours=0.25,
            strategy="hybrid",
        ),
        Recall,
    )
    assert_type(await memory.get("acme", record_id=record.record_id), Record | None)
    assert_type(await memory.history("acme", record_key="k"), list[Record])
    assert_type(await memory.records("acme", after=record, limit=10), list[Record])
    assert_type(await memory.records("acme", include_superseded=True), list[Record])
    assert_type(await memory.history("acme", record_key="k", include_expired=True), list[Record])
    assert_type(await memory.record_keys("acme", prefix="a", after="ab", limit=10), list[str])
    await memory.records("acme", record_keys=["k"], where=[(("trip", "days"), ">", 3)])
    await memory.recall("acme", key_prefix="k", where=[("city", "!=", "Pune")])
    assert_type(await memory.erasure_history("acme"), list[Tombstone])
    assert_type(
        await memory.erasure_history("acme", subject_key="p", before=9, limit=1), list[Tombstone]
    )
    assert_type(memory.subject_fingerprint("acme", subject_key="p"), str)
    assert_type(await memory.capabilities(), Capabilities)
    assert_type(await memory.ready(), Readiness)


async def shows(memory: Memory) -> None:
    stream = memory.export("acme", subject_key="p", vectors=True)
    assert_type(stream, AsyncGenerator[Exported, None])
    async for entry in memory.for_tenant("acme").export(subject_key="p"):
        entry.to_dict()
        if isinstance(entry, ExportedRecord):
            assert_type(entry.sources, tuple[UUID, ...])


async def serves() -> None:
    async with memory.embedded.serve() as server:
        assert_type(server.operator_url, str)
        await memory.migrate.upgrade(server.owner_url)


async def draws(memory: Memory, record: Record) -> None:
    graph = await memory.lineage("acme", record_id=record)
    assert_type(graph, Lineage)
    assert_type(graph.svg(labels={record.record_id: record.text}), str)
    assert_type((await memory.for_tenant("acme").lineage(subject_key="p")).mermaid(), str)
    evidence = await memory.timeline("acme", subject_key="p", limit=10)
    assert_type(evidence, Timeline)
    assert_type(evidence.moments, tuple[Moment, ...])
    assert_type((evidence.svg(), evidence.text()), tuple[str, str])
    moment = evidence.moments[0]
    assert_type(moment.event, TimelineEvent)
    assert_type((moment.heading, moment.detail), tuple[str, str])
    assert_type(evidence.to_dict(), dict[str, Any])


async def erases(memory: Memory, record_id: UUID) -> None:
    rehearsal = await memory.forget("acme", subject_key="p", kinds=["profile"], dry_run=True)
    assert_type(rehearsal, Receipt)
    assert_type(rehearsal.title, str)
    assert_type(
        await memory.forget("acme", subject_key="p", kinds="profile", expect=rehearsal.closure),
        Receipt,
    )
    assert_type(await memory.forget_record("acme", record_id=record_id, reason="operator"), Receipt)
    assert_type(await memory.purge_outstanding("acme"), Purged)
    assert_type(await memory.purge_outstanding("acme", due_only=True), Purged)


async def decides(memory: Memory) -> None:
    assert_type(await memory.forget("acme", subject_key="p", block_future=True), Receipt)
    assert_type(await memory.readmit("acme", subject_key="p"), Decision)
    assert_type(await memory.hold("acme", subject_key="p"), Decision)
    assert_type(await memory.release("acme", subject_key="p"), Release)
    assert_type(await memory.decisions("acme", limit=10), list[Decision])
    assert_type(await memory.expire("acme"), Receipt)
    assert_type(await memory.expire("acme", kinds=["chat"], older_than=timedelta(days=90)), Receipt)
    assert_type(await memory.forget_tenant("acme", confirm="acme", reason="operator"), Receipt)


async def tenant_is_bound(memory: Memory, record: Record) -> None:
    tenant = memory.for_tenant("acme")
    assert_type(tenant, TenantMemory)
    assert_type(await tenant.remember(text="x", subject_keys="p"), Remembered)
    assert_type(await tenant.recall(text="x", limit=3), Recall)
    assert_type(await tenant.derive(kind="summary", text="x", sources=record), Derived)
    assert_type(await tenant.forget(subject_key="p"), Receipt)
    assert_type(tenant.subject_fingerprint(subject_key="p"), str)
    # With warn_unused_ignores each of these fails the check if the mistake is no longer seen.
    await tenant.forget("p")  # type: ignore[call-arg]
    await tenant.recall(subject_match="every")  # type: ignore[arg-type]
    await tenant.recall(limit="3")  # type: ignore[arg-type]
    await tenant.remember("acme", text="x", subject_keys="p")  # type: ignore[misc]


async def closes() -> None:
    async with Memory() as memory:
        await memory.remember("acme", text="x", subject_keys="p")


async def proves(owner_url: str, lines: list[str]) -> None:
    async for line in memory.export_tombstones(owner_url, tenant_key="acme"):
        assert_type(line, str)
    verified = memory.tombstones.verify(lines)
    proof = memory.prove(lines, anchor=Anchor(seq=1, digest="0" * 64), subject_hash="0" * 64)
    assert_type(proof, Proof)
    assert_type(proof.tombstones, tuple[Tombstone, ...])
    assert_type(verified.anchors, Mapping[str, Anchor])
    report = await memory.check(owner_url, anchors=verified.anchors, tombstones=lines)
    assert_type(report, CheckReport)
    assert_type(report.faults, tuple[Fault, ...])
    assert_type(await memory.replay(owner_url, lines, anchors=verified.anchors), Replayed)


async def certifies(service: Memory, owner_url: str, receipt: Receipt) -> None:
    stones = await service.erasure_history("acme", subject_key="p")
    states = await memory.maintenance.purges_of(
        owner_url,
        tenant_key="acme",
        erasure_id=receipt.erasure_id,
        subject_hash=stones[0].subject_hash,
    )
    assert_type(states, tuple[IndexState, ...])
    left = await memory.maintenance.remaining_of(owner_url, subject_key="p", evidence=stones)
    assert_type(left, Remaining)
    page = memory.certificate(stones, indexes=states, deferred=False, remaining=left)
    assert_type(page, str)
    page = memory.certificate(
        stones[0],
        receipt=receipt,
        anchor=receipt.anchor,
        controller="Acme",
        reference="4711",
        backups_until=date(2026, 12, 31),
        issued_at=datetime.now(UTC),
    )
    assert_type(page, str)


async def vectors_of_a_tenant(owner_url: str, embedder: Embedder) -> None:
    indexes = memory.maintenance.indexes

    def told(step: str, done: int, total: int) -> None:
        assert total == 0 or done <= total

    index = await indexes.build_index(
        owner_url,
        dimensions=384,
        halfvec=True,
        m=16,
        ef_construction=64,
        memory="2GB",
        progress=told,
    )
    assert_type(index, VectorIndex)
    assert_type(await indexes.list_indexes(owner_url), tuple[VectorIndex, ...])
    done = await indexes.maintain(owner_url, progress=told)
    assert_type(done, Maintained)
    assert_type((done.reindex_seconds, done.vacuum_seconds), tuple[float, float])
    again = await memory.reembed(owner_url, embedder, tenant_key="shop", progress=told)
    assert_type(again, Reembedded)
    await memory.reembed(owner_url, embedder, missing=True, unnamed=True, wordless=True)
    assert_type(await indexes.drop_index(owner_url, dimensions=768), bool)


def the_hosts_own_command_line(index: DerivedIndex, embedder: Embedder) -> None:
    assert_never(main(indexes=[index], embedder=embedder))


def frameworks_take_them(shop: TenantMemory) -> None:
    conversation: Session = MemorySession("s1", shop, subject_keys="p", lifetime=timedelta(days=30))
    server: MCPServer[object] = memory_server(shop, subject_keys=["p"], read_only=True)
    del conversation, server


async def langgraph(shop: TenantMemory, embeddings: Embeddings) -> None:
    Memory(embedder=LangChainEmbedder(embeddings, model="theirs"))
    store: BaseStore = ErasableStore(shop, subjects=1, ttl={"default_ttl": 60})
    about = ErasableStore(
        shop,
        subjects=lambda namespace, key, value: [namespace[0], str(value["who"])],
        fields=["text"],
        strategy="hybrid",
        reason="subject_request",
    )
    await store.aput(("users", "p"), "k", {"text": "x"})
    about_whom: Subjects = lambda namespace, key, value: key  # noqa: E731
    ErasableStore(shop, subjects=about_whom)
    assert_type(await about.arecord(("users", "p"), "k"), Record | None)
    assert_type(await about.sweep_ttl(), int)


async def moving_in(shop: TenantMemory, engine: AsyncEngine) -> None:
    moved = await from_langgraph(ErasableStore(shop, subjects=1), engine, schema="public")
    assert_type(moved, Imported)
    assert_type(await from_mem0(shop, engine, table="mem0", kind="fact", vectors=False), Imported)
    assert_type(moved.skipped["nobody"], int)
    operator: memory.Operator = "<="
    await shop.records(where=[("n", operator, 3)])
