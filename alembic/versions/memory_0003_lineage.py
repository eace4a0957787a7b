"""Rules of lineage: what a record is about and what it came from."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0003"
down_revision = "memory_0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for trigger, table in (
        ("identity_fixed", "records"),
        ("counted", "records"),
        ("complete", "records"),
        ("link_fixed", "record_subjects"),
        ("link_kept", "record_subjects"),
        ("edge_fixed", "provenance"),
        ("edge_kept", "provenance"),
        ("inherit", "provenance"),
    ):
        op.execute(f"drop trigger {trigger} on memory.{table}")
    for function in (
        "edge_added",
        "edge_kept",
        "link_kept",
        "record_complete",
        "record_added",
        "refuse_identity",
        "each",
    ):
        op.execute(f"drop function memory.{function}")
