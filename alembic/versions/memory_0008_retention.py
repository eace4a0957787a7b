"""Erasing in batches: what retention says, and whole tenants."""

from __future__ import annotations

from alembic import op

from memory import ddl

revision = "memory_0008"
down_revision = "memory_0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in ddl.statements(__file__):
        op.execute(statement)


def downgrade() -> None:
    for function in ("sweep", "sweep_batch"):
        op.execute(f"drop function memory.{function}")
