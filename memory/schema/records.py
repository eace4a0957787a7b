"""Records, the people they are about, what they were made from, and the terms they hold."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, REAL, UUID

from memory.schema.columns import Key, Time, belongs, bounded, hashed_often, metadata, now, tenant

__all__ = [
    "installation",
    "postings",
    "provenance",
    "record_subjects",
    "records",
    "subjects",
    "tenant_counts",
    "tenants",
]

installation = Table(
    "installation",
    metadata,
    Column("singleton", Boolean, nullable=False, server_default=text("true")),
    Column("pepper_check", Text),
    Column("installed_at", Time, nullable=False, server_default=now),
    PrimaryKeyConstraint("singleton", name="installation_pkey"),
    CheckConstraint("singleton", name="only_one"),
)

tenants = Table(
    "tenants",
    metadata,
    tenant(),
    Column("first_seen", Time, nullable=False, server_default=now),
    PrimaryKeyConstraint("tenant_key", name="tenants_pkey"),
    bounded("tenant_key", 256),
)

records = Table(
    "records",
    metadata,
    tenant(),
    Column("record_id", UUID(as_uuid=True), nullable=False),
    Column("origin", Text, nullable=False, server_default=text("'remembered'")),
    Column("kind", Text, nullable=False, server_default=text("'episodic'")),
    Column("text", Text, nullable=False),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'")),
    Column("redacted", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("embedding", ARRAY(REAL)),
    Column("embedding_dims", Integer, Computed("cardinality(embedding)", persisted=True)),
    Column("embedding_model", Key),
    Column("record_key", Key),
    Column("version", Integer, nullable=False, server_default=text("1")),
    Column("term_count", Integer, nullable=False, server_default=text("0")),
    Column("occurred_at", Time, nullable=False, server_default=now),
    Column("created_at", Time, nullable=False, server_default=now),
    Column("expires_at", Time),
    Column("superseded_at", Time),
    Column("held", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant_key", "record_id", name="records_pkey"),
    bounded("tenant_key", 256),
    bounded("record_key", 1024),
    CheckConstraint("origin in ('remembered', 'derived')", name="origin_known"),
    CheckConstraint(
        # A regular expression here would cost each write a fortieth more.
        "kind <> '' and octet_length(kind) <= 63"
        " and translate(left(kind, 1), 'abcdefghijklmnopqrstuvwxyz', '') = ''"
        " and translate(kind, 'abcdefghijklmnopqrstuvwxyz0123456789_.-', '') = ''",
        name="kind_is_code",
    ),
    CheckConstraint("octet_length(text) between 1 and 65536", name="text_bounded"),
    CheckConstraint("jsonb_typeof(metadata) = 'object'", name="metadata_is_object"),
    CheckConstraint("version > 0 and term_count >= 0", name="counts_positive"),
    CheckConstraint(
        # A NULL or NaN among the values makes a comparison with all of them other than true.
        "embedding is null or (cardinality(embedding) >= 1 and cardinality(embedding) <= 16000"
        " and array_ndims(embedding) = 1 and array_lower(embedding, 1) = 1"
        " and ('1e15'::real >= all (embedding)) is true"
        " and ('-1e15'::real <= all (embedding)) is true"
        " and ('1e-18'::real <= any (embedding) or '-1e-18'::real >= any (embedding)))",
        name="embedding_is_vector",
    ),
    # One current version per key: the loser of a race fails here.
    Index(
        "records_current",
        "tenant_key",
        "record_key",
        unique=True,
        postgresql_where=text("superseded_at is null and record_key is not null"),
    ),
    Index(
        "records_versions",
        "tenant_key",
        "record_key",
        "version",
        postgresql_where=text("record_key is not null"),
    ),
    # Counts what a vector can be compared with, and what it cannot, without reading a record.
    Index(
        "records_embedded",
        "tenant_key",
        "embedding_dims",
        "embedding_model",
        postgresql_include=["expires_at", "superseded_at"],
        postgresql_where=text("embedding_dims is not null"),
    ),
    Index("records_recent", "tenant_key", "occurred_at", postgresql_include=["record_id"]),
    Index(
        "records_due",
        "tenant_key",
        "expires_at",
        "record_id",
        postgresql_where=text("expires_at is not null"),
    ),
)

subjects = Table(
    "subjects",
    metadata,
    tenant(),
    Column("subject_hash", Key, nullable=False),
    Column("blocked", Boolean, nullable=False, server_default=text("false")),
    Column("held", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant_key", "subject_hash", name="subjects_pkey"),
    Index("subjects_held", "tenant_key", "subject_hash", postgresql_where=text("held")),
    bounded("tenant_key", 256),
    hashed_often(),
)

record_subjects = Table(
    "record_subjects",
    metadata,
    tenant(),
    Column("record_id", UUID(as_uuid=True), nullable=False),
    Column("subject_key", Key, nullable=False),
    Column("subject_hash", Key, nullable=False),
    Column("inherited", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant_key", "record_id", "subject_key", name="record_subjects_pkey"),
    belongs("record_id", "link_record"),
    bounded("tenant_key", 256),
    bounded("subject_key", 1024),
    hashed_often(),
    # With the hash in the key, "one hash per key" is two probes at the ends of a range. The
    # predicate is always true; it keeps the index from queries that do not name the person (see
    # the notes on plans in the migrations).
    Index(
        "record_subjects_person",
        "tenant_key",
        "subject_key",
        "subject_hash",
        postgresql_include=["record_id", "inherited"],
        postgresql_where=text("subject_key is not null"),
    ),
)

provenance = Table(
    "provenance",
    metadata,
    tenant(),
    Column("derived_id", UUID(as_uuid=True), nullable=False),
    Column("source_id", UUID(as_uuid=True), nullable=False),
    PrimaryKeyConstraint("tenant_key", "derived_id", "source_id", name="provenance_pkey"),
    belongs("derived_id", "provenance_derived"),
    belongs("source_id", "provenance_source"),
    bounded("tenant_key", 256),
    CheckConstraint("derived_id <> source_id", name="not_its_own_source"),
    Index(
        "provenance_sources",
        "tenant_key",
        "source_id",
        postgresql_include=["derived_id"],
        postgresql_where=text("source_id is not null"),
    ),
)

# No foreign key: it cost a third of the bulk rate. The cascade deletes postings, check() watches.
postings = Table(
    "postings",
    metadata,
    tenant(),
    Column("term", Key, nullable=False),
    Column("record_id", UUID(as_uuid=True), nullable=False),
    Column("frequency", SmallInteger, nullable=False, server_default=text("1")),
    Column("term_count", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint(
        "tenant_key",
        "term",
        "record_id",
        name="postings_pkey",
        postgresql_include=["frequency", "term_count"],
    ),
    bounded("tenant_key", 256),
    bounded("term", 128),
    Index(
        "postings_record",
        "tenant_key",
        "record_id",
        postgresql_where=text("record_id is not null"),
    ),
)

tenant_counts = Table(
    "tenant_counts",
    metadata,
    tenant(),
    Column("delta_id", BigInteger, Identity(always=True), nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("terms", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant_key", "delta_id", name="tenant_counts_pkey"),
    bounded("tenant_key", 256),
)
