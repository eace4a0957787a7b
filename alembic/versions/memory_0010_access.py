"""Row level security, privileges and the functions that the application may call."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0010"
down_revision = "memory_0009"
branch_labels = None
depends_on = None

_TENANT_TABLES = (
    "records",
    "record_subjects",
    "provenance",
    "postings",
    "subjects",
    "tenants",
    "tenant_counts",
    "pending_evidence",
    "tombstones",
    "chain_heads",
    "decisions",
    "artefacts",
    "purges",
    "purge_receipts",
)


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    # Row level security stays on: without policies nobody but a superuser sees a row.
    for table in (*_TENANT_TABLES, "artefact_claims", "installation"):
        op.execute(f"drop trigger no_truncate on memory.{table}")
    for table in _TENANT_TABLES:
        op.execute(f"drop policy tenant on memory.{table}")
    op.execute("drop trigger hold_kept on memory.records")
    for trigger in ("decision_kept", "decision_stays", "subject_fixed"):
        op.execute(f"drop trigger {trigger} on memory.subjects")
    op.execute("drop policy owner_walks on memory.tenants")
    op.execute("drop policy owner_only on memory.artefact_claims")
    op.execute("drop policy owner_only on memory.installation")
    for function in (
        "grant_operator",
        "grant_app",
        "pepper_matches",
        "claim_installation",
        "decision_kept",
        "refuse_truncate",
    ):
        op.execute(f"drop function memory.{function}")
