"""Agent memory you can actually erase: the database enforces it, whoever issues the DELETE.

The examples in docstrings are for ``python -m asyncio`` or a notebook, where ``await`` stands at
the top level; in a script, put them into ``async def main()`` and call ``asyncio.run(main())``.
``url``, ``owner_url`` and ``pepper`` in them are yours.
"""

from __future__ import annotations

from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING

from memory import fingerprint, maintenance, redaction, tombstones
from memory.certifiable import IndexState, Remaining
from memory.certificates import certificate
from memory.embedding import HashingEmbedder
from memory.errors import (
    ConflictError,
    InstallError,
    InvalidInputError,
    LegalHoldError,
    MemoryServiceError,
    PartialErasureError,
    ProvenanceRequiredError,
    RetryableError,
    StoreUnavailableError,
    SubjectBlockedError,
    TenantRequiredError,
    UnknownRecordError,
    UnknownSourceError,
)
from memory.graphs import Lineage, LineageNode
from memory.maintenance.checking import check
from memory.maintenance.checks.faults import CheckReport, Fault
from memory.maintenance.counts import fold_counts
from memory.maintenance.indexes import Maintained
from memory.maintenance.reembedding import Reembedded, reembed
from memory.maintenance.replaying import Replayed, replay
from memory.maintenance.tombstones import export_tombstones
from memory.maintenance.verify import verify_install
from memory.portability import Exported, ExportedDecision, ExportedRecord
from memory.ports import DerivedIndex, Embedder, ErasureEvent, EventSink, Redactor
from memory.proofs import Proof, prove
from memory.service import Item, Memory, TenantMemory
from memory.stores.in_memory import InMemoryStore
from memory.stores.postgres import PostgresStore
from memory.timelines import Moment, Timeline, TimelineEvent
from memory.types import (
    Action,
    Anchor,
    Capabilities,
    Check,
    Counts,
    Decision,
    Derived,
    Finding,
    Hit,
    Operator,
    Origin,
    Purged,
    Readiness,
    Reason,
    Recall,
    Receipt,
    Record,
    Release,
    Remembered,
    Scope,
    Strategy,
    SubjectMatch,
    Tombstone,
    VectorIndex,
)

if TYPE_CHECKING:
    from memory import embedded as embedded
    from memory import migrate as migrate

__all__ = [
    "Action",
    "Anchor",
    "Capabilities",
    "Check",
    "CheckReport",
    "ConflictError",
    "Counts",
    "Decision",
    "Derived",
    "DerivedIndex",
    "Embedder",
    "ErasureEvent",
    "EventSink",
    "Exported",
    "ExportedDecision",
    "ExportedRecord",
    "Fault",
    "Finding",
    "HashingEmbedder",
    "Hit",
    "InMemoryStore",
    "IndexState",
    "InstallError",
    "InvalidInputError",
    "Item",
    "LegalHoldError",
    "Lineage",
    "LineageNode",
    "Maintained",
    "Memory",
    "MemoryServiceError",
    "Moment",
    "Operator",
    "Origin",
    "PartialErasureError",
    "PostgresStore",
    "Proof",
    "ProvenanceRequiredError",
    "Purged",
    "Readiness",
    "Reason",
    "Recall",
    "Receipt",
    "Record",
    "Redactor",
    "Reembedded",
    "Release",
    "Remaining",
    "Remembered",
    "Replayed",
    "RetryableError",
    "Scope",
    "StoreUnavailableError",
    "Strategy",
    "SubjectBlockedError",
    "SubjectMatch",
    "TenantMemory",
    "TenantRequiredError",
    "Timeline",
    "TimelineEvent",
    "Tombstone",
    "UnknownRecordError",
    "UnknownSourceError",
    "VectorIndex",
    "__version__",
    "certificate",
    "check",
    "embedded",
    "export_tombstones",
    "fingerprint",
    "fold_counts",
    "maintenance",
    "migrate",
    "prove",
    "redaction",
    "reembed",
    "replay",
    "tombstones",
    "verify_install",
]

__version__ = version("erasable-memory")


def __getattr__(name: str) -> ModuleType:
    """Import what only deployments and trials need when it is asked for.

    Alembic takes longer to import than everything else together.
    """
    if name == "migrate":
        import memory.migrate as migrations  # noqa: PLC0415 - Alembic is slow to import

        return migrations
    if name == "embedded":
        import memory.embedded as server  # noqa: PLC0415 - imports Alembic too

        return server
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
