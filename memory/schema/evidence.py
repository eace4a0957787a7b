"""What remains after an erasure: tombstones, decisions, and the debts of external indexes."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from memory.schema.columns import Key, Time, bounded, hashed, hashed_often, metadata, now, tenant

__all__ = [
    "artefact_claims",
    "artefacts",
    "chain_heads",
    "decisions",
    "pending_evidence",
    "purge_receipts",
    "purges",
    "tombstones",
]

_reasons = "reason in ('subject_request', 'retention_policy', 'operator')"
_scopes = "scope in ('subject', 'kinds', 'record', 'retention', 'tenant')"


def _evidence() -> list[Column[object]]:
    return [
        Column("erasure_id", UUID(as_uuid=True), nullable=False),
        Column("subject_hash", Key, nullable=False),
        Column("reason", Text, nullable=False),
        Column("scope", Text, nullable=False),
        Column("memories", BigInteger, nullable=False),
        Column("derived", BigInteger, nullable=False),
        Column("provenance_edges", BigInteger, nullable=False),
        Column("artefacts", BigInteger, nullable=False),
    ]


pending_evidence = Table(
    "pending_evidence",
    metadata,
    tenant(),
    Column("xid", Text, nullable=False, server_default=text("(pg_current_xact_id())::text")),
    *_evidence(),
    PrimaryKeyConstraint(
        "tenant_key",
        "xid",
        "erasure_id",
        "subject_hash",
        "reason",
        "scope",
        name="pending_evidence_pkey",
    ),
    bounded("tenant_key", 256),
    hashed_often(),
    CheckConstraint(_reasons, name="reason_known"),
    CheckConstraint(_scopes, name="scope_known"),
)

tombstones = Table(
    "tombstones",
    metadata,
    tenant(),
    Column("seq", BigInteger, nullable=False),
    *_evidence(),
    Column("erased_at", Time, nullable=False),
    Column("format", SmallInteger, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
    PrimaryKeyConstraint("tenant_key", "seq", name="tombstones_pkey"),
    bounded("tenant_key", 256),
    hashed(),
    hashed_often("digest"),
    hashed_often("previous", or_empty=True),
    CheckConstraint(_reasons, name="reason_known"),
    CheckConstraint(_scopes, name="scope_known"),
    CheckConstraint(
        "seq > 0 and memories >= 0 and derived >= 0 and provenance_edges >= 0 and artefacts >= 0",
        name="counts_positive",
    ),
    Index("tombstones_person", "tenant_key", "subject_hash", "erasure_id"),
)

chain_heads = Table(
    "chain_heads",
    metadata,
    tenant(),
    Column("seq", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    PrimaryKeyConstraint("tenant_key", name="chain_heads_pkey"),
    bounded("tenant_key", 256),
)

# What was decided about a person. A request is an erasure that a hold defers, in codes and ids;
# a "complete" of the same erasure says that it was carried out.
decisions = Table(
    "decisions",
    metadata,
    tenant(),
    Column("seq", BigInteger, Identity(always=True), nullable=False),
    Column("subject_hash", Key, nullable=False),
    Column("action", Text, nullable=False),
    Column("at", Time, nullable=False, server_default=now),
    Column("erasure_id", UUID(as_uuid=True)),
    Column("reason", Text),
    Column("scope", Text),
    Column("kinds", Text),
    Column("record_id", UUID(as_uuid=True)),
    PrimaryKeyConstraint("tenant_key", "seq", name="decisions_pkey"),
    bounded("tenant_key", 256),
    hashed(),
    CheckConstraint(
        "action in ('block', 'readmit', 'hold', 'release', 'request', 'complete')",
        name="action_known",
    ),
    CheckConstraint(_reasons, name="reason_known"),
    CheckConstraint("scope in ('subject', 'kinds', 'record')", name="scope_known"),
    CheckConstraint(
        "kinds ~ '^[a-z][a-z0-9_.-]{0,62}( [a-z][a-z0-9_.-]{0,62})*$'", name="kinds_are_codes"
    ),
    CheckConstraint(
        "action <> 'request' or erasure_id is not null and reason is not null"
        " and scope is not null",
        name="request_is_whole",
    ),
    Index("decisions_person", "tenant_key", "subject_hash", "seq"),
    Index(
        "decisions_erasure",
        "tenant_key",
        "erasure_id",
        postgresql_where=text("erasure_id is not null"),
    ),
)

# No foreign key: the insert trigger locks the records, which saves a check per erased row.
artefacts = Table(
    "artefacts",
    metadata,
    tenant(),
    Column("adapter", Key, nullable=False),
    Column("artefact_id", Key, nullable=False),
    Column("record_id", UUID(as_uuid=True), nullable=False),
    Column("registered_at", Time, nullable=False, server_default=now),
    PrimaryKeyConstraint(
        "tenant_key", "adapter", "artefact_id", "record_id", name="artefacts_pkey"
    ),
    bounded("tenant_key", 256),
    bounded("adapter", 256),
    bounded("artefact_id", 1024),
    Index(
        "artefacts_record",
        "tenant_key",
        "record_id",
        postgresql_where=text("record_id is not null"),
    ),
)

purges = Table(
    "purges",
    metadata,
    tenant(),
    Column("adapter", Key, nullable=False),
    Column("artefact_id", Key, nullable=False),
    Column("erasure_id", UUID(as_uuid=True), nullable=False),
    Column("subject_hashes", ARRAY(Key), nullable=False, server_default=text("'{}'")),
    Column("requested_at", Time, nullable=False, server_default=now),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("last_error", Text),
    Column("next_try_at", Time),
    Column("lease", UUID(as_uuid=True)),
    Column("leased_at", Time),
    Column("leased_until", Time),
    Column("leased_pid", Integer),
    PrimaryKeyConstraint("tenant_key", "adapter", "artefact_id", name="purges_pkey"),
    bounded("tenant_key", 256),
    bounded("adapter", 256),
    bounded("artefact_id", 1024),
    CheckConstraint("last_error ~ '^[A-Za-z_][A-Za-z0-9_.]{0,127}$'", name="last_error_is_class"),
    Index("purges_erasure", "tenant_key", "erasure_id"),
    Index("purges_next", "tenant_key", "adapter", "attempts", "artefact_id"),
)

purge_receipts = Table(
    "purge_receipts",
    metadata,
    tenant(),
    Column("seq", BigInteger, Identity(always=True), nullable=False),
    Column("adapter", Key, nullable=False),
    Column("erasure_id", UUID(as_uuid=True), nullable=False),
    Column("artefacts", BigInteger, nullable=False),
    Column("purged_at", Time, nullable=False, server_default=now),
    PrimaryKeyConstraint("tenant_key", "seq", name="purge_receipts_pkey"),
    bounded("tenant_key", 256),
    bounded("adapter", 256),
    Index("purge_receipts_erasure", "tenant_key", "erasure_id"),
)

artefact_claims = Table(
    "artefact_claims",
    metadata,
    Column("artefact_hash", Key, nullable=False),
    Column("claim_hash", Key, nullable=False),
    PrimaryKeyConstraint("artefact_hash", "claim_hash", name="artefact_claims_pkey"),
    hashed("artefact_hash"),
    hashed("claim_hash"),
)
