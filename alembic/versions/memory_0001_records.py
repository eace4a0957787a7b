"""Records, the people they are about, provenance and postings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from memory import ddl

revision = "memory_0001"
down_revision = None
branch_labels = ("memory",)
depends_on = None


def upgrade() -> None:
    # In a host's own history no env.py of ours has made the schema. "if not exists" would want the
    # privilege to create it even where it is there.
    op.execute(
        """
        do $$
        begin
            if to_regnamespace('memory') is null then
                create schema memory;
            end if;
        end $$
        """
    )
    op.create_table(
        "installation",
        sa.Column("singleton", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("pepper_check", sa.Text(), nullable=True),
        sa.Column(
            "installed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("singleton", name="only_one"),
        sa.PrimaryKeyConstraint("singleton", name="installation_pkey"),
        schema="memory",
    )

    op.create_table(
        "tenants",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "first_seen",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint("tenant_key", name="tenants_pkey"),
        schema="memory",
    )

    op.create_table(
        "records",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("record_id", sa.UUID(), nullable=False),
        sa.Column("origin", sa.Text(), server_default=sa.text("'remembered'"), nullable=False),
        sa.Column("kind", sa.Text(), server_default=sa.text("'episodic'"), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column(
            "redacted", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("embedding", postgresql.ARRAY(sa.REAL()), nullable=True),
        sa.Column(
            "embedding_dims",
            sa.Integer(),
            sa.Computed("cardinality(embedding)", persisted=True),
            nullable=True,
        ),
        sa.Column("embedding_model", sa.Text(collation="C"), nullable=True),
        sa.Column("record_key", sa.Text(collation="C"), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("term_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "occurred_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("superseded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("held", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.CheckConstraint(
            # A NULL or NaN among the values makes a comparison with all of them other than true.
            "embedding is null or (cardinality(embedding) >= 1 and cardinality(embedding) <= 16000"
            " and array_ndims(embedding) = 1 and array_lower(embedding, 1) = 1"
            " and ('1e15'::real >= all (embedding)) is true"
            " and ('-1e15'::real <= all (embedding)) is true"
            " and ('1e-18'::real <= any (embedding) or '-1e-18'::real >= any (embedding)))",
            name="embedding_is_vector",
        ),
        sa.CheckConstraint("jsonb_typeof(metadata) = 'object'", name="metadata_is_object"),
        sa.CheckConstraint(
            # A regular expression here would cost each write a fortieth more.
            "kind <> '' and octet_length(kind) <= 63"
            " and translate(left(kind, 1), 'abcdefghijklmnopqrstuvwxyz', '') = ''"
            " and translate(kind, 'abcdefghijklmnopqrstuvwxyz0123456789_.-', '') = ''",
            name="kind_is_code",
        ),
        sa.CheckConstraint("origin in ('remembered', 'derived')", name="origin_known"),
        sa.CheckConstraint(
            "record_key <> '' and octet_length(record_key) <= 1024", name="record_key_bounded"
        ),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.CheckConstraint("octet_length(text) between 1 and 65536", name="text_bounded"),
        sa.CheckConstraint("version > 0 and term_count >= 0", name="counts_positive"),
        schema="memory",
    )
    op.create_index(
        "records_current",
        "records",
        ["tenant_key", "record_key"],
        unique=True,
        schema="memory",
        postgresql_where=sa.text("superseded_at is null and record_key is not null"),
    )
    op.create_index(
        "records_embedded",
        "records",
        ["tenant_key", "embedding_dims", "embedding_model"],
        unique=False,
        schema="memory",
        postgresql_include=["expires_at", "superseded_at"],
        postgresql_where=sa.text("embedding_dims is not null"),
    )
    op.create_index(
        "records_due",
        "records",
        ["tenant_key", "expires_at", "record_id"],
        unique=False,
        schema="memory",
        postgresql_where=sa.text("expires_at is not null"),
    )
    op.create_index(
        "records_recent",
        "records",
        ["tenant_key", "occurred_at"],
        unique=False,
        schema="memory",
        postgresql_include=["record_id"],
    )
    op.create_index(
        "records_versions",
        "records",
        ["tenant_key", "record_key", "version"],
        unique=False,
        schema="memory",
        postgresql_where=sa.text("record_key is not null"),
    )

    # After the other indexes: where two look equally cheap, as while the table is small, the
    # planner takes the newest, and a cached plan that reads the whole tenant would outlive that.
    op.create_primary_key("records_pkey", "records", ["tenant_key", "record_id"], schema="memory")

    op.create_table(
        "subjects",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("subject_hash", sa.Text(collation="C"), nullable=False),
        sa.Column("blocked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("held", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.CheckConstraint(
            "octet_length(subject_hash) = 64"
            " and translate(subject_hash, '0123456789abcdef', '') = ''",
            name="subject_hash_is_hash",
        ),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint("tenant_key", "subject_hash", name="subjects_pkey"),
        schema="memory",
    )

    op.create_index(
        "subjects_held",
        "subjects",
        ["tenant_key", "subject_hash"],
        unique=False,
        schema="memory",
        postgresql_where=sa.text("held"),
    )

    op.create_table(
        "record_subjects",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("record_id", sa.UUID(), nullable=False),
        sa.Column("subject_key", sa.Text(collation="C"), nullable=False),
        sa.Column("subject_hash", sa.Text(collation="C"), nullable=False),
        sa.Column("inherited", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.CheckConstraint(
            "octet_length(subject_hash) = 64"
            " and translate(subject_hash, '0123456789abcdef', '') = ''",
            name="subject_hash_is_hash",
        ),
        sa.CheckConstraint(
            "subject_key <> '' and octet_length(subject_key) <= 1024", name="subject_key_bounded"
        ),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_key", "record_id"],
            ["memory.records.tenant_key", "memory.records.record_id"],
            name="link_record",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint(
            "tenant_key", "record_id", "subject_key", name="record_subjects_pkey"
        ),
        schema="memory",
    )
    op.create_index(
        "record_subjects_person",
        "record_subjects",
        ["tenant_key", "subject_key", "subject_hash"],
        unique=False,
        schema="memory",
        postgresql_include=["record_id", "inherited"],
        postgresql_where=sa.text("subject_key is not null"),
    )

    op.create_table(
        "provenance",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("derived_id", sa.UUID(), nullable=False),
        sa.Column("source_id", sa.UUID(), nullable=False),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.CheckConstraint("derived_id <> source_id", name="not_its_own_source"),
        sa.ForeignKeyConstraint(
            ["tenant_key", "derived_id"],
            ["memory.records.tenant_key", "memory.records.record_id"],
            name="provenance_derived",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["tenant_key", "source_id"],
            ["memory.records.tenant_key", "memory.records.record_id"],
            name="provenance_source",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("tenant_key", "derived_id", "source_id", name="provenance_pkey"),
        schema="memory",
    )
    op.create_index(
        "provenance_sources",
        "provenance",
        ["tenant_key", "source_id"],
        unique=False,
        schema="memory",
        postgresql_include=["derived_id"],
        postgresql_where=sa.text("source_id is not null"),
    )

    op.create_table(
        "postings",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("term", sa.Text(collation="C"), nullable=False),
        sa.Column("record_id", sa.UUID(), nullable=False),
        sa.Column("frequency", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("term_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.CheckConstraint("term <> '' and octet_length(term) <= 128", name="term_bounded"),
        sa.PrimaryKeyConstraint(
            "tenant_key",
            "term",
            "record_id",
            name="postings_pkey",
            postgresql_include=["frequency", "term_count"],
        ),
        schema="memory",
    )
    op.create_index(
        "postings_record",
        "postings",
        ["tenant_key", "record_id"],
        unique=False,
        schema="memory",
        postgresql_where=sa.text("record_id is not null"),
    )

    op.create_table(
        "tenant_counts",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("delta_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint("tenant_key", "delta_id", name="tenant_counts_pkey"),
        schema="memory",
    )

    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for function in ("lock_subject", "hash_of", "require_fresh_snapshots", "check_tenant"):
        op.execute(f"drop function memory.{function}")
    op.drop_table("tenant_counts", schema="memory")
    op.drop_table("postings", schema="memory")
    op.drop_table("provenance", schema="memory")
    op.drop_table("record_subjects", schema="memory")
    op.drop_table("subjects", schema="memory")
    op.drop_table("records", schema="memory")
    op.drop_table("tenants", schema="memory")
    op.drop_table("installation", schema="memory")
