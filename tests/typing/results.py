"""The documented use of what the verbs return and raise. Checked by mypy, never run."""

from __future__ import annotations

from typing import Literal, assert_never, assert_type
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory import (
    Action,
    Anchor,
    ConflictError,
    Counts,
    Decision,
    Derived,
    Exported,
    ExportedDecision,
    ExportedRecord,
    Finding,
    Hit,
    InstallError,
    InvalidInputError,
    LegalHoldError,
    Lineage,
    LineageNode,
    Memory,
    MemoryServiceError,
    Origin,
    PartialErasureError,
    PostgresStore,
    ProvenanceRequiredError,
    Reason,
    Recall,
    Receipt,
    Record,
    Release,
    Remembered,
    RetryableError,
    Scope,
    StoreUnavailableError,
    Strategy,
    SubjectBlockedError,
    SubjectMatch,
    TenantRequiredError,
    Tombstone,
    UnknownRecordError,
    UnknownSourceError,
)


async def stores(engine: AsyncEngine, connection: AsyncConnection) -> None:
    for store in (
        PostgresStore("postgresql://your_app_role@host/db"),
        PostgresStore("postgresql://your_app_role@host/db", pool_size=2, max_overflow=0),
        PostgresStore(engine, pooler=True),
        PostgresStore.joined(connection),
    ):
        await Memory(store).close()


def records(told: Remembered, made: Derived, found: Recall) -> None:
    assert_type(told.redactions, tuple[Finding, ...])
    assert_type(made.record, Record)
    assert_type(found.hits, tuple[Hit, ...])
    assert_type([hit.score for hit in found.hits], list[float])
    assert_type(made.record.origin, Origin)
    assert_type(made.record.sources, tuple[UUID, ...])
    assert_type(found.strategy, Strategy)


def erasures(receipt: Receipt, tombstone: Tombstone, decision: Decision, done: Release) -> None:
    assert_type(receipt.counts, Counts)
    assert_type(receipt.counts.records, int)
    assert_type(receipt.anchor, Anchor | None)
    assert_type(receipt.summary(), list[tuple[str, object]])
    assert_type(tombstone.reason, Reason)
    assert_type(tombstone.scope, Scope)
    assert_type(decision.action, Action)
    assert_type(done.receipts, tuple[Receipt, ...])


def kinds_of_entries(entry: Exported) -> str:
    if isinstance(entry, ExportedRecord):
        return entry.text
    if isinstance(entry, ExportedDecision):
        return entry.action
    if isinstance(entry, Tombstone):
        return entry.subject_hash
    assert_never(entry)


def drawn(graph: Lineage) -> None:
    assert_type(graph.nodes, tuple[LineageNode, ...])


def every_code_has_its_type(match: SubjectMatch) -> None:
    assert_type(match, Literal["any", "all"])
    wrong: Reason = "curiosity"  # type: ignore[assignment]
    del wrong


async def errors(memory: Memory) -> MemoryServiceError | None:
    try:
        await memory.forget("acme", subject_key="p")
    except (LegalHoldError, PartialErasureError) as stopped:
        assert_type(stopped.receipt, Receipt)
    except (TenantRequiredError, ProvenanceRequiredError, InvalidInputError) as wrong:
        assert_type((wrong.field, wrong.rule), tuple[str, str])
    except StoreUnavailableError as away:
        assert_type(away.sqlstate, str | None)
    except (
        ConflictError,
        InstallError,
        RetryableError,
        SubjectBlockedError,
        UnknownSourceError,
        UnknownRecordError,
    ) as error:
        return error
    return None
