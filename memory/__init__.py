"""Agent memory you can actually erase: the database enforces it, whoever issues the DELETE."""

from __future__ import annotations

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
from memory.ports import DerivedIndex, Embedder, ErasureEvent, EventSink, Redactor
from memory.service import Item, Memory, TenantMemory
from memory.stores.in_memory import InMemoryStore
from memory.types import (
    Anchor,
    Capabilities,
    Counts,
    Derived,
    Finding,
    Hit,
    Purged,
    Readiness,
    Recall,
    Receipt,
    Record,
    Remembered,
    Tombstone,
)

__all__ = [
    "Anchor",
    "Capabilities",
    "ConflictError",
    "Counts",
    "Derived",
    "DerivedIndex",
    "Embedder",
    "ErasureEvent",
    "EventSink",
    "Finding",
    "HashingEmbedder",
    "Hit",
    "InMemoryStore",
    "InstallError",
    "InvalidInputError",
    "Item",
    "LegalHoldError",
    "Memory",
    "MemoryServiceError",
    "PartialErasureError",
    "ProvenanceRequiredError",
    "Purged",
    "Readiness",
    "Recall",
    "Receipt",
    "Record",
    "Redactor",
    "Remembered",
    "RetryableError",
    "StoreUnavailableError",
    "SubjectBlockedError",
    "TenantMemory",
    "TenantRequiredError",
    "Tombstone",
    "UnknownRecordError",
    "UnknownSourceError",
]
