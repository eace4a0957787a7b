"""Tombstones, decisions and the debts of external indexes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from memory import ddl

revision = "memory_0002"
down_revision = "memory_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pending_evidence",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "xid", sa.Text(), server_default=sa.text("(pg_current_xact_id())::text"), nullable=False
        ),
        sa.Column("erasure_id", sa.UUID(), nullable=False),
        sa.Column("subject_hash", sa.Text(collation="C"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("memories", sa.BigInteger(), nullable=False),
        sa.Column("derived", sa.BigInteger(), nullable=False),
        sa.Column("provenance_edges", sa.BigInteger(), nullable=False),
        sa.Column("artefacts", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "reason in ('subject_request', 'retention_policy', 'operator')", name="reason_known"
        ),
        sa.CheckConstraint(
            "scope in ('subject', 'kinds', 'record', 'retention', 'tenant')", name="scope_known"
        ),
        sa.CheckConstraint(
            "octet_length(subject_hash) = 64"
            " and translate(subject_hash, '0123456789abcdef', '') = ''",
            name="subject_hash_is_hash",
        ),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint(
            "tenant_key",
            "xid",
            "erasure_id",
            "subject_hash",
            "reason",
            "scope",
            name="pending_evidence_pkey",
        ),
        schema="memory",
    )

    op.create_table(
        "tombstones",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("erasure_id", sa.UUID(), nullable=False),
        sa.Column("subject_hash", sa.Text(collation="C"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("memories", sa.BigInteger(), nullable=False),
        sa.Column("derived", sa.BigInteger(), nullable=False),
        sa.Column("provenance_edges", sa.BigInteger(), nullable=False),
        sa.Column("artefacts", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("format", sa.SmallInteger(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "octet_length(digest) = 64 and translate(digest, '0123456789abcdef', '') = ''",
            name="digest_is_hash",
        ),
        sa.CheckConstraint(
            "previous = '' or octet_length(previous) = 64"
            " and translate(previous, '0123456789abcdef', '') = ''",
            name="previous_is_hash",
        ),
        sa.CheckConstraint(
            "reason in ('subject_request', 'retention_policy', 'operator')", name="reason_known"
        ),
        sa.CheckConstraint(
            "scope in ('subject', 'kinds', 'record', 'retention', 'tenant')", name="scope_known"
        ),
        sa.CheckConstraint("subject_hash ~ '^[0-9a-f]{64}$'", name="subject_hash_is_hash"),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.CheckConstraint(
            "seq > 0 and memories >= 0 and derived >= 0"
            " and provenance_edges >= 0 and artefacts >= 0",
            name="counts_positive",
        ),
        sa.PrimaryKeyConstraint("tenant_key", "seq", name="tombstones_pkey"),
        schema="memory",
    )
    op.create_index(
        "tombstones_person",
        "tombstones",
        ["tenant_key", "subject_hash", "erasure_id"],
        unique=False,
        schema="memory",
    )

    op.create_table(
        "chain_heads",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint("tenant_key", name="chain_heads_pkey"),
        schema="memory",
    )

    op.create_table(
        "decisions",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("seq", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("subject_hash", sa.Text(collation="C"), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("erasure_id", sa.UUID(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("scope", sa.Text(), nullable=True),
        sa.Column("kinds", sa.Text(), nullable=True),
        sa.Column("record_id", sa.UUID(), nullable=True),
        sa.CheckConstraint(
            "action in ('block', 'readmit', 'hold', 'release', 'request', 'complete')",
            name="action_known",
        ),
        sa.CheckConstraint(
            "kinds ~ '^[a-z][a-z0-9_.-]{0,62}( [a-z][a-z0-9_.-]{0,62})*$'", name="kinds_are_codes"
        ),
        sa.CheckConstraint(
            "reason in ('subject_request', 'retention_policy', 'operator')", name="reason_known"
        ),
        sa.CheckConstraint(
            "action <> 'request' or erasure_id is not null and reason is not null"
            " and scope is not null",
            name="request_is_whole",
        ),
        sa.CheckConstraint("scope in ('subject', 'kinds', 'record')", name="scope_known"),
        sa.CheckConstraint("subject_hash ~ '^[0-9a-f]{64}$'", name="subject_hash_is_hash"),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint("tenant_key", "seq", name="decisions_pkey"),
        schema="memory",
    )
    op.create_index(
        "decisions_person",
        "decisions",
        ["tenant_key", "subject_hash", "seq"],
        unique=False,
        schema="memory",
    )
    op.create_index(
        "decisions_erasure",
        "decisions",
        ["tenant_key", "erasure_id"],
        unique=False,
        schema="memory",
        postgresql_where=sa.text("erasure_id is not null"),
    )

    op.create_table(
        "artefacts",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("adapter", sa.Text(collation="C"), nullable=False),
        sa.Column("artefact_id", sa.Text(collation="C"), nullable=False),
        sa.Column("record_id", sa.UUID(), nullable=False),
        sa.Column(
            "registered_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "adapter <> '' and octet_length(adapter) <= 256", name="adapter_bounded"
        ),
        sa.CheckConstraint(
            "artefact_id <> '' and octet_length(artefact_id) <= 1024", name="artefact_id_bounded"
        ),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint(
            "tenant_key", "adapter", "artefact_id", "record_id", name="artefacts_pkey"
        ),
        schema="memory",
    )
    op.create_index(
        "artefacts_record",
        "artefacts",
        ["tenant_key", "record_id"],
        unique=False,
        schema="memory",
        postgresql_where=sa.text("record_id is not null"),
    )

    op.create_table(
        "purges",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("adapter", sa.Text(collation="C"), nullable=False),
        sa.Column("artefact_id", sa.Text(collation="C"), nullable=False),
        sa.Column("erasure_id", sa.UUID(), nullable=False),
        sa.Column(
            "subject_hashes",
            postgresql.ARRAY(sa.Text(collation="C")),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column(
            "requested_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("next_try_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease", sa.UUID(), nullable=True),
        sa.Column("leased_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("leased_pid", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "adapter <> '' and octet_length(adapter) <= 256", name="adapter_bounded"
        ),
        sa.CheckConstraint(
            "artefact_id <> '' and octet_length(artefact_id) <= 1024", name="artefact_id_bounded"
        ),
        sa.CheckConstraint(
            "last_error ~ '^[A-Za-z_][A-Za-z0-9_.]{0,127}$'", name="last_error_is_class"
        ),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint("tenant_key", "adapter", "artefact_id", name="purges_pkey"),
        schema="memory",
    )
    op.create_index(
        "purges_erasure", "purges", ["tenant_key", "erasure_id"], unique=False, schema="memory"
    )
    op.create_index(
        "purges_next",
        "purges",
        ["tenant_key", "adapter", "attempts", "artefact_id"],
        unique=False,
        schema="memory",
    )

    op.create_table(
        "purge_receipts",
        sa.Column("tenant_key", sa.Text(collation="C"), nullable=False),
        sa.Column("seq", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("adapter", sa.Text(collation="C"), nullable=False),
        sa.Column("erasure_id", sa.UUID(), nullable=False),
        sa.Column("artefacts", sa.BigInteger(), nullable=False),
        sa.Column(
            "purged_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "adapter <> '' and octet_length(adapter) <= 256", name="adapter_bounded"
        ),
        sa.CheckConstraint(
            "tenant_key <> '' and octet_length(tenant_key) <= 256", name="tenant_key_bounded"
        ),
        sa.PrimaryKeyConstraint("tenant_key", "seq", name="purge_receipts_pkey"),
        schema="memory",
    )
    op.create_index(
        "purge_receipts_erasure",
        "purge_receipts",
        ["tenant_key", "erasure_id"],
        unique=False,
        schema="memory",
    )

    op.create_table(
        "artefact_claims",
        sa.Column("artefact_hash", sa.Text(collation="C"), nullable=False),
        sa.Column("claim_hash", sa.Text(collation="C"), nullable=False),
        sa.CheckConstraint("artefact_hash ~ '^[0-9a-f]{64}$'", name="artefact_hash_is_hash"),
        sa.CheckConstraint("claim_hash ~ '^[0-9a-f]{64}$'", name="claim_hash_is_hash"),
        sa.PrimaryKeyConstraint("artefact_hash", "claim_hash", name="artefact_claims_pkey"),
        schema="memory",
    )

    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    # Under FORCE the owner sees no tombstone without a tenant, and a plain "exists" would be false.
    op.execute("alter table memory.tombstones no force row level security")
    op.execute(
        """
        do $$
        begin
            if exists (select from memory.tombstones) then
                raise exception 'a downgrade would destroy tombstones: evidence of erasures'
                    using errcode = 'ME016', hint = 'drop schema memory cascade, if you mean it';
            end if;
        end $$
        """
    )
    op.execute("drop trigger seal on memory.pending_evidence")
    op.execute("drop function memory.unregister")
    op.execute("drop function memory.seal")
    op.execute("drop function memory.tombstone_digest")
    op.drop_table("artefact_claims", schema="memory")
    op.drop_table("purge_receipts", schema="memory")
    op.drop_table("purges", schema="memory")
    op.drop_table("artefacts", schema="memory")
    op.drop_table("decisions", schema="memory")
    op.drop_table("chain_heads", schema="memory")
    op.drop_table("tombstones", schema="memory")
    op.drop_table("pending_evidence", schema="memory")
    op.execute("drop function memory.refuse_change")
